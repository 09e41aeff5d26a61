"""``gate``: a finished run, judged by another policy."""

import argparse

from harness.arguments.runs import REPORT_FORMATS
from harness.arguments.shared import add_baseline, add_out, add_policy


def add_gate(verb: argparse.ArgumentParser) -> None:
    """Add which run, by which policy and which waivers."""
    verb.add_argument("run", metavar="RUN", help="a run's folder or name, or 'last'; one from CI will do")
    add_policy(verb)
    verb.add_argument("--waivers", metavar="FILE", help="waivers, in place of golden/waivers.toml")
    add_baseline(verb)
    verb.add_argument(
        "--format",
        choices=REPORT_FORMATS,
        default="console",
        metavar="FORMAT",
        help=f"{', '.join(REPORT_FORMATS)} (default: console), as of report",
    )
    add_out(verb)
