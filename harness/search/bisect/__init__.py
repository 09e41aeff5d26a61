"""Whose doing a difference, an error, a hang or a slowdown is: which operator, or which few."""
