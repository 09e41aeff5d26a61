"""The command line: in ``commands`` one module per command, with its options, its help, its call and its exit code.

A command's module is imported when it is typed, and what does its work when it is called: ``--help`` waits for neither.
"""

from harness.cli.entry import main

__all__ = ["main"]
