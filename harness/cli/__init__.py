"""The command line: finds the commands in ``harness.apps``, parses what was typed, and says how it ended."""

from harness.cli.entry import main

__all__ = ["main"]
