"""Outputs that were recorded elsewhere, compared."""
