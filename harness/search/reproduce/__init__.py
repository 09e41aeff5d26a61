"""Standalone reproducers: one folder, one script, run in both releases before it is shown."""
