"""``diff``: outputs that were recorded elsewhere, compared."""

import argparse
import math
from pathlib import Path
from typing import TYPE_CHECKING

from harness.cli.help import CommandHelp
from harness.cli.options import add_format
from harness.cli.terminal import say

if TYPE_CHECKING:
    from harness.project import Project

HELP = CommandHelp(
    "diff",
    "compare outputs that exist already, by the rules of a run",
    "Compare outputs that were recorded elsewhere, on a fleet of GPUs say, by the same tolerances as a run. Nothing is"
    " loaded or called.",
    (
        ("old/ new/", "folders of .safetensors or .npz files, one a model"),
        ("ranker-2.1.npz ranker-2.6.npz --tolerance 1e-3", "one model, whose outputs may differ by that share"),
        ("golden ../other/golden --format markdown", "two golden folders, for a pull request"),
    ),
    "0 the same within tolerance, 1 some output is not, 4 it cannot be told",
    "guide/golden-records.md",
)


def add_options(command: argparse.ArgumentParser) -> None:
    from harness.report.formats import REVIEW

    command.add_argument(
        "old", type=Path, metavar="OLD", help="golden folder, file of outputs, or folder of such files"
    )
    command.add_argument("new", type=Path, metavar="NEW", help="the same, of the other side")
    command.add_argument(
        "--tolerance", type=_share, metavar="SHARE", help="of the largest value; default: by dtype, as in a run"
    )
    add_format(command, REVIEW.names, "markdown: for a pull request")
    command.add_argument(
        "--all", dest="every_row", action="store_true", help="every output that differs, on the console"
    )


def _share(text: str) -> float:
    try:
        share = float(text)
    except ValueError:
        share = math.nan
    if not 0 < share <= 0.1:
        raise argparse.ArgumentTypeError(f"expected a number above 0 and at most 0.1, got {text}")
    return share


def call(parsed: argparse.Namespace, project: "Project") -> object:
    from harness.apps.diff.diff import diff
    from harness.report.formats import REVIEW, Shown

    review = diff(project, parsed.old, parsed.new, tolerance=parsed.tolerance)
    say(REVIEW.render(parsed.format, review, Shown(every_row=parsed.every_row)))
    return review
