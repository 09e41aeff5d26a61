"""Cells of a finished run: repeated, or searched in runs of their own."""
