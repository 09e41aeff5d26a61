"""Models over many releases."""
