"""``matrix``: models over many releases."""

import argparse
from typing import TYPE_CHECKING

from harness.cli.help import CommandHelp
from harness.cli.options import add_format, add_models, add_running
from harness.cli.terminal import say, shown

if TYPE_CHECKING:
    from harness.project import Project

HELP = CommandHelp(
    "matrix",
    "load what every release exports in every other one",
    "Load what every release exports in every other one, and show which upgrades and which rollbacks are safe. "
    "What is known already is not measured again.",
    (
        ("--releases 2.1.2 2.6.0 --artifacts models", "your files in both"),
        ("--releases 2.1.2 2.6.0 2.15.0", "the configured models, in every pair of three"),
    ),
    "0 every pair is green, 1 an upgrade breaks something, 4 not decided",
    "guide/matrix.md",
)


def add_options(command: argparse.ArgumentParser) -> None:
    from harness.report.formats import MATRIX

    command.add_argument(
        "--releases",
        dest="named",
        nargs="+",
        default=[],
        metavar="RELEASE",
        help="releases, or the NAMEs of --env, in this order (default: the configured ones)",
    )
    command.add_argument(
        "--golden-in",
        metavar="RELEASE",
        help="whose answers given artifacts are compared with (default: --old of the configuration)",
    )
    add_models(command)
    add_running(command, "--device", "--jobs", "--profile", "--deadline")
    command.add_argument("--fresh", action="store_true", help="ask again what earlier runs with the same --out found")
    add_format(command, MATRIX.names)
    command.add_argument("--out", metavar="DIR", help="results that later runs go on with (default: reports/matrix)")


def call(parsed: argparse.Namespace, project: "Project") -> object:
    from harness.apps.matrix.matrix import matrix
    from harness.project import shown_path
    from harness.report.formats import MATRIX
    from harness.verdict.matrix import judge_matrix

    result, folder = matrix(project, parsed.named, parsed.golden_in, fresh=parsed.fresh)
    say(MATRIX.render(parsed.format, result, shown(shown_path(folder))))
    return judge_matrix(result).outcome
