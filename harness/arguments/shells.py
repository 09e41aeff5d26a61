"""``completion``: what a shell can be taught of this command line."""

import argparse

SHELLS = ("bash", "fish", "zsh")


def add_completion(verb: argparse.ArgumentParser) -> None:
    """Add which shell."""
    verb.add_argument("shell", choices=SHELLS, metavar="SHELL", help=f"one of {', '.join(SHELLS)}")
