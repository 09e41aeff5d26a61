"""``mitigate``: what cures a red cell."""

import argparse
from collections.abc import Sequence

from harness.cli.help import CommandHelp
from harness.cli.options import add_cell, add_models, add_out, add_running, add_sides, options_of
from harness.cli.terminal import say, width
from harness.core.errors import ConfigError
from harness.serving.scenarios import CELL_SCENARIOS

HELP = CommandHelp(
    "Find the smallest sets of settings that cure a red cell, what each costs against the old release, and the "
    "lines to paste for Python, C++, Triton or the environment; where none does, rewrites of the guilty operators.",
    (
        ("--artifact ranker.pt --old 2.1.2 --new 2.6.0", "what cures it, what it costs, and lines to paste"),
        ("--cell CELL_ID", "the same for a red cell of the last run"),
    ),
    "0 nothing to cure, 1 a cure was found, 4 none was found",
    "guide/curing.md",
)


def add_options(command: argparse.ArgumentParser) -> None:
    """Add which cell is to be cured."""
    add_cell(command)
    command.add_argument(
        "--scenario",
        dest="sought",
        choices=CELL_SCENARIOS,
        metavar="NAME",
        help=f"which of its cells is to be cured (default: alone): {', '.join(CELL_SCENARIOS)}",
    )
    command.add_argument("--pairs", action="store_true", help="try pairs of settings also where one setting cures")
    add_sides(command)
    add_models(command)
    add_running(command, "--device", "--jobs", "--profile", "--new-profile", "--deadline")
    command.add_argument(
        "--latency", choices=("off", "quick", "thorough"), help="how long the measurement of costs may take"
    )
    command.add_argument("--resume", metavar="RUN", help="go on with an interrupted search")
    add_out(command)


def call(parsed: argparse.Namespace, arguments: Sequence[str]) -> int:
    """Search what cures a red cell."""
    from harness.machine.progress import Progress
    from harness.report.documents.diagnosis import curing_document
    from harness.report.formats import on_terminal
    from harness.run.cell.mitigate import mitigate
    from harness.run.cell.selected import selected_cell
    from harness.run.options import shown_path
    from harness.verdict.mitigation import exit_code

    options, verb = options_of(parsed, arguments), str(parsed.verb)
    selected = selected_cell(options, verb, run=parsed.run, cell=parsed.cell_id, key=parsed.cell, model=parsed.model)
    if selected is not None and parsed.sought is not None:
        raise ConfigError("--scenario beside a cell, which has its own", "leave it out")
    cured = mitigate(
        options,
        Progress(),
        model=parsed.model,
        selected=selected,
        scenario=parsed.sought or "alone",
        pairs=parsed.pairs,
    )
    document = curing_document(cured.found, directory=shown_path(cured.folder))
    say(on_terminal(document, width=width(), most_lines=0))
    return exit_code(cured.found)
