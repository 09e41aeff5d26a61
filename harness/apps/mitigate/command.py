"""``mitigate``: what mitigates a red cell."""

import argparse
from typing import TYPE_CHECKING

from harness.cli.help import CommandHelp
from harness.cli.options import add_cell, add_models, add_out, add_running, add_sides
from harness.cli.terminal import say, width
from harness.core.errors import ConfigError

if TYPE_CHECKING:
    from harness.project import Project

HELP = CommandHelp(
    "mitigate",
    "assess which settings mitigate a red cell, and their price; changes nothing",
    "Assess what mitigates a red cell; nothing is changed. Finds the smallest sets of settings that do, what each "
    "costs against the old release, and the lines to paste for Python, C++, Triton or the environment; where none "
    "does, rewrites of the guilty operators.",
    (
        ("--artifact ranker.pt --old 2.1.2 --new 2.6.0", "what mitigates it, what it costs, and lines to paste"),
        ("--cell CELL_ID", "the same for a red cell of the last run"),
    ),
    "0 nothing to mitigate, 1 a mitigation was found, 4 none was found",
    "guide/mitigating.md",
)


def add_options(command: argparse.ArgumentParser) -> None:
    from harness.serving.scenarios import CELL_SCENARIOS

    add_cell(command)
    command.add_argument(
        "--scenario",
        dest="sought",
        choices=CELL_SCENARIOS,
        metavar="NAME",
        help=f"which of its cells is to be mitigated (default: alone): {', '.join(CELL_SCENARIOS)}",
    )
    command.add_argument("--pairs", action="store_true", help="try pairs of settings also where one setting mitigates")
    command.add_argument("--anyway", action="store_true", help="search also where both releases fail alike")
    add_sides(command)
    add_models(command)
    add_running(command, "--device", "--jobs", "--profile", "--new-profile", "--deadline")
    command.add_argument(
        "--latency",
        choices=("off", "quick", "thorough"),
        help="how long the measurement of costs may take; beside a cell or --resume too (default: as its run was told)",
    )
    command.add_argument("--resume", metavar="RUN", help="go on with an interrupted search")
    add_out(command)


def call(parsed: argparse.Namespace, project: "Project") -> object:
    from harness.apps.mitigate.mitigate import mitigate, without_latency
    from harness.apps.rerun.selected import selected_cell
    from harness.project import shown_path
    from harness.report.documents.diagnosis import mitigation_document
    from harness.report.formats import on_terminal

    selected = selected_cell(
        without_latency(project), parsed.verb, run=parsed.run, cell=parsed.cell_id, key=parsed.cell, model=parsed.model
    )
    if selected is not None and parsed.sought is not None:
        raise ConfigError("--scenario beside a cell, which has its own", "leave it out")
    mitigated = mitigate(
        project,
        model=parsed.model,
        selected=selected,
        scenario=parsed.sought or "alone",
        pairs=parsed.pairs,
        anyway=parsed.anyway,
    )
    document = mitigation_document(mitigated.found, directory=shown_path(mitigated.folder))
    say(on_terminal(document, width=width(), most_lines=0))
    return mitigated.found
