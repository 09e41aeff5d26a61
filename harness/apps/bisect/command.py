"""``bisect``: what causes a red cell, or which release first shows it."""

import argparse
from typing import TYPE_CHECKING

from harness.cli.help import CommandHelp
from harness.cli.options import add_cell, add_format, add_models, add_running, add_sides
from harness.cli.terminal import say, shown
from harness.core.errors import ConfigError

if TYPE_CHECKING:
    from harness.project import Project

HELP = CommandHelp(
    "bisect",
    "find whose doing a red cell is, what fixes it, and since which release it is",
    "Find what causes a red cell: the operator and its source line, or the smallest set of nodes that shows it, "
    "and what fixes it. With --over releases: the first torch release that shows it.",
    (
        ("--artifact ranker.pt --old 2.1.2 --new 2.6.0", "which operator causes it, and what fixes it"),
        ("--cell CELL_ID", "the same for a red cell of the last run"),
        ("--cell CELL_ID --over releases", "since which torch release"),
        ("--artifact ranker.pt --over releases", "the same for a file"),
    ),
    "0 nothing to find, 1 found, 3 an end of the range or the index is unavailable, 4 not found or not decided",
    "guide/bisecting-a-difference.md",
)


def add_options(command: argparse.ArgumentParser) -> None:
    from harness.report.formats import FIRST_BAD

    add_cell(command)
    add_sides(command)
    command.add_argument(
        "--over",
        choices=("releases",),
        help="search since when it is bad: over the torch releases from the old to the new one",
    )
    command.add_argument(
        "--releases",
        dest="named",
        nargs="+",
        default=[],
        metavar="RELEASE",
        help="of --over: releases to choose from, or NAMEs of --env (default: all that the package index has in "
        "between)",
    )
    command.add_argument(
        "--builds", type=int, metavar="N", help="of --over: environments to build between (default: what halving needs)"
    )
    add_models(command)
    add_running(command, "--device", "--jobs", "--profile", "--new-profile", "--deadline")
    command.add_argument(
        "--latency",
        choices=("off", "quick", "thorough"),
        help="search what is slower, too (default: off)",
    )
    command.add_argument(
        "--no-price",
        dest="price",
        action="store_false",
        help="do not time what a fix costs (timing takes some seconds for each patched archive)",
    )
    command.add_argument(
        "--resume", metavar="RUN", help="go on with an interrupted bisect; with --over, repeat the command instead"
    )
    add_format(command, FIRST_BAD.names)
    command.add_argument(
        "--out",
        metavar="DIR",
        help="where runs are kept (default: reports), and what later searches --over go on with (default: "
        "reports/matrix)",
    )


def call(parsed: argparse.Namespace, project: "Project") -> object:
    from harness.apps.bisect.bisect import RESULT, bisect
    from harness.apps.bisect.first_bad import first_bad
    from harness.apps.rerun.selected import selected_cell
    from harness.project import shown_path
    from harness.report.formats import BISECTION, FIRST_BAD, ShownBisection

    selected = selected_cell(
        project, parsed.verb, run=parsed.run, cell=parsed.cell_id, key=parsed.cell, model=parsed.model
    )
    if parsed.over is not None:
        first = first_bad(
            project, model=parsed.model, selected=selected, releases=parsed.named, build_limit=parsed.builds
        )
        say(FIRST_BAD.render(parsed.format, first, shown()))
        return first
    if parsed.named or parsed.builds is not None:
        raise ConfigError("--releases and --builds belong to --over", "such as bisect --over releases")
    searched = bisect(project, model=parsed.model, selected=selected, price=parsed.price)
    stored = searched.folder / RESULT
    result = ShownBisection(found=searched.found, stored=lambda: stored.read_text(encoding="utf-8"))
    say(BISECTION.render(parsed.format, result, shown(shown_path(searched.folder))))
    return searched.found
