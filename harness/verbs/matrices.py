"""``matrix``: models over many releases."""

import argparse
from collections.abc import Callable, Sequence

from harness.commands.matrix import FinishedMatrix
from harness.commands.matrix import matrix as ask_all
from harness.commands.options import shown_path
from harness.releases.matrix_judging import judge_matrix
from harness.report.json.matrix import dump_matrix
from harness.report.markdown.matrix import render_matrix_markdown
from harness.report.text.matrix import render_heat_map
from harness.system.progress import Progress
from harness.verbs.shared import colour, options_of, say, width


def matrix(parsed: argparse.Namespace, arguments: Sequence[str]) -> int:
    """Ask every release about every model."""
    options = options_of(parsed, arguments)
    finished = ask_all(options, parsed.named, parsed.golden_in, Progress(), fresh=parsed.fresh)
    say(MATRIX_FORMATS[parsed.format](finished))
    return judge_matrix(finished.matrix).exit_code


def _heat_map(finished: FinishedMatrix) -> str:
    return render_heat_map(finished.matrix, judge_matrix(finished.matrix), width=width(), colour=colour())


MATRIX_FORMATS: dict[str, Callable[[FinishedMatrix], str]] = {
    "console": _heat_map,
    "json": lambda finished: dump_matrix(finished.matrix, judge_matrix(finished.matrix)),
    "markdown": lambda finished: render_matrix_markdown(
        finished.matrix, judge_matrix(finished.matrix), directory=shown_path(finished.folder)
    ),
}
