"""Outputs against golden outputs: structure, tolerances, metrics, order, and the rule that decides."""
