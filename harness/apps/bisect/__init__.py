"""Whose doing a red cell is, or since when it is."""
