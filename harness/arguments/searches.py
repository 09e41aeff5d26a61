"""``bisect``, ``first-bad`` and ``mitigate``: searches about one red cell."""

import argparse

from harness.arguments.shared import add_cell, add_models, add_out, add_running, add_sides
from harness.domain.plan import SCENARIOS

FIRST_BAD_FORMATS = ("console", "json")


def add_bisect(verb: argparse.ArgumentParser, over: str | None = None) -> None:
    """Add the options of ``bisect``; ``first-bad`` is the same, over releases unless it is told otherwise."""
    add_cell(verb)
    add_sides(verb)
    verb.add_argument(
        "--over",
        metavar="WHAT",
        default=over,
        help="search since when it is bad: over 'releases' of torch, over 'dependencies' (all that differs beside "
        "torch), or over the versions of one of these, such as numpy",
    )
    verb.add_argument(
        "--releases",
        dest="named",
        nargs="+",
        default=[],
        metavar="RELEASE",
        help="of --over: releases to choose from, or NAMEs of --env (default: all that the package index has in "
        "between); versions, where it is over one dependency",
    )
    verb.add_argument(
        "--builds", type=int, metavar="N", help="of --over: environments to build between (default: what halving needs)"
    )
    add_models(verb)
    add_running(verb, "--device", "--jobs", "--profile", "--new-profile", "--deadline")
    verb.add_argument(
        "--latency", choices=("off", "quick", "thorough"), help="search what is slower, too (default: off)"
    )
    verb.add_argument(
        "--resume", metavar="RUN", help="go on with an interrupted bisect; with --over, repeat the command instead"
    )
    verb.add_argument("--format", choices=FIRST_BAD_FORMATS, default="console", help="text, or all of it for a program")
    verb.add_argument(
        "--out",
        metavar="DIR",
        help="where runs are kept (default: reports), and what later searches --over go on with (default: "
        "reports/matrix)",
    )


def add_mitigate(verb: argparse.ArgumentParser) -> None:
    """Add which cell is to be cured."""
    add_cell(verb)
    verb.add_argument(
        "--scenario",
        dest="sought",
        choices=SCENARIOS,
        metavar="NAME",
        help=f"which of its cells is to be cured (default: alone): {', '.join(SCENARIOS)}",
    )
    verb.add_argument("--pairs", action="store_true", help="try pairs of settings also where one setting cures")
    add_sides(verb)
    add_models(verb)
    add_running(verb, "--device", "--jobs", "--profile", "--new-profile", "--deadline")
    verb.add_argument("--latency", choices=("off", "quick", "thorough"), help="how much a price may cost")
    verb.add_argument("--resume", metavar="RUN", help="go on with an interrupted search")
    add_out(verb)
