"""What every format of a matrix says: marks, reasons per model, predictions against what happened."""

import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from harness.core.outcome import Status
from harness.core.prediction import PredictedLoad, Prediction
from harness.core.releases import BACKWARD, FORWARD, GIVEN, SAME, Matrix, MatrixCell
from harness.core.text import counted
from harness.verdict.matrix import Pair
from harness.verdict.prediction import confusion_by_direction, is_wrong

LEGEND = (
    "loads and answers the same / models exported; X an upgrade breaks some, x a rollback does, ? some undecided, "
    "= some do no better where they come from, - nothing to load"
)
DIRECTIONS = {"all": "all pairs", BACKWARD: "to a newer release", FORWARD: "to an older one", SAME: "its own release"}
LOADING_WORDS = {PredictedLoad.LOADED: "loaded", PredictedLoad.REFUSED: "refused", PredictedLoad.UNKNOWN: "no answer"}
CELL_WORDS: Mapping[Status, str] = {
    Status.PASS: "ok",
    Status.FAIL: "FAIL",
    Status.INCONCLUSIVE: "open",
    Status.SAME_FAIL: "same",
    Status.UNSUPPORTED: "-",
    Status.XFAIL: "known",
    Status.XPASS: "cured",
}


def pair_text(pair: Pair) -> str:
    """Return ``63/65``: models that load and answer the same, of those that there is an artifact of."""
    return f"{pair.passed}/{pair.tested}" if pair.tested else "-"


def pair_mark(pair: Pair) -> str:
    """Return the mark of a pair: see ``LEGEND``."""
    mark = _mark(pair.status, pair.direction)
    return "=" if not mark and pair.broken_before else mark


def cell_mark(cell: MatrixCell) -> str:
    """Return the mark of one model in one pair."""
    return _mark(cell.status, cell.direction) if cell.exported else "-"


def _mark(status: Status, direction: str) -> str:
    if status is Status.FAIL:
        return "x" if direction == FORWARD else "X"
    return {Status.PASS: "", Status.SAME_FAIL: "=", Status.UNSUPPORTED: "-"}.get(status, "?")


@dataclass(frozen=True, kw_only=True)
class Reason:
    """Why a model is not green in some pairs that fail alike; ``text`` and ``predicted`` are those of the first."""

    what: str
    cells: tuple[MatrixCell, ...]
    text: str
    predicted: str
    command: str


@dataclass(frozen=True, kw_only=True)
class Trouble:
    """A model that is not green everywhere: all its cells, and the reasons, worst first."""

    model: str
    cells: tuple[MatrixCell, ...]
    reasons: tuple[Reason, ...]


def troubles(matrix: Matrix) -> list[Trouble]:
    """Return the models that are not green everywhere: broken upgrades first, then by how many pairs are red."""
    by_model: dict[str, list[MatrixCell]] = {}
    for cell in matrix.cells:
        by_model.setdefault(cell.model, []).append(cell)
    found = [
        Trouble(model=model, cells=tuple(cells), reasons=tuple(_reasons(cells, matrix)))
        for model, cells in by_model.items()
        if any(cell.status is not Status.PASS for cell in cells)
    ]
    return sorted(found, key=lambda trouble: _weight(trouble.cells))


def _weight(cells: Sequence[MatrixCell]) -> tuple[int, ...]:
    marks = [cell_mark(cell) for cell in cells]
    return tuple(-marks.count(mark) for mark in ("X", "x", "?", "=", "-"))


def _reasons(cells: Sequence[MatrixCell], matrix: Matrix) -> list[Reason]:
    groups: dict[tuple[str, str], list[MatrixCell]] = {}
    for cell in cells:
        if cell.status is not Status.PASS:
            # A failed export is one fact, not one per loader.
            key = (cell_mark(cell), cell.kind or cell.status.value) if cell.exported else ("-", cell.reason)
            groups.setdefault(key, []).append(cell)
    order = ("X", "x", "?", "=", "-")
    return [
        _reason(groups[key], matrix) for key in sorted(groups, key=lambda key: (order.index(key[0]), -len(groups[key])))
    ]


def _reason(cells: Sequence[MatrixCell], matrix: Matrix) -> Reason:
    first = cells[0]
    predicted = ""
    if first.predicted is not None and first.kind == "load_error":
        predicted = f"{first.predicted}{f' ({first.why_predicted})' if first.why_predicted else ''}"
    return Reason(
        what=f"{CELL_WORDS[first.status]} {first.kind}".rstrip() if first.exported else "not exported",
        cells=tuple(cells),
        text=first.reason,
        predicted=predicted,
        command=command(first, matrix) if first.status is Status.FAIL else "",
    )


def command(cell: MatrixCell, matrix: Matrix) -> str:
    """Return the command that repeats one cell, with everything that ``compat`` reports."""
    old = matrix.golden_in if cell.exporter == GIVEN else cell.exporter
    known = dict.fromkeys(pair for name in (old, cell.loader) for pair in matrix.command_words.get(name, ()))
    words = (*(word for pair in known for word in pair), "--old", old, "--new", cell.loader, "-k", cell.model)
    return f"{matrix.command} {shlex.join(words)}"


def pairs_words(reason: Reason) -> str:
    """Return the pairs of a reason: ``2.1.2 -> 2.6.0, 2.15.0; 2.6.0 -> 2.15.0``."""
    loaders: dict[str, list[str]] = {}
    for cell in reason.cells:
        loaders.setdefault(cell.exporter, []).append(cell.loader)
    if not reason.cells[0].exported:
        return ", ".join(loaders)
    return "; ".join(f"{exporter} -> {', '.join(names)}" for exporter, names in loaders.items())


CONFUSION_HEAD = ("pairs", "predicted", *LOADING_WORDS.values())


def confusion_rows(matrix: Matrix) -> list[list[str]]:
    """Return a line per direction and prediction with ``CONFUSION_HEAD``'s counts; all pairs first, in full."""
    lines = []
    for name, counts in confusion_by_direction(matrix.cells).items():
        label = DIRECTIONS[name]
        for predicted in Prediction:
            numbers = [counts[predicted][happened] for happened in PredictedLoad]
            if name == "all" or any(numbers):
                lines.append([label, str(predicted), *map(str, numbers)])
                label = ""
    return lines


def prediction_words(matrix: Matrix) -> str:
    """Return in words how good the static check was."""
    tested = [cell for cell in matrix.cells if cell.predicted is not None]
    wrong = [cell for cell in tested if is_wrong(cell)]
    if not tested:
        return "nothing was predicted: no archive with code could be read"
    unknown = sum(cell.predicted is Prediction.UNKNOWN for cell in tested)
    open_ = f"; {unknown} unknown" if unknown else ""
    if wrong:
        wrong_of_all = f"{len(wrong)} of {counted(len(tested), 'prediction')} wrong"
        return f"{wrong_of_all}{open_}; a wrong one is a bug of ours: report it"
    return f"no prediction of {len(tested)} was wrong{open_}"


def wrong_words(cell: MatrixCell) -> str:
    """Return one wrong prediction in one line."""
    why = f" ({cell.why_predicted})" if cell.why_predicted else ""
    what = LOADING_WORDS[cell.happened]
    return f"{cell.model}, {cell.exporter} -> {cell.loader}: predicted {cell.predicted}{why}, {what}: {cell.reason}"


def wrong_predictions(matrix: Matrix) -> list[MatrixCell]:
    """Return the cells with a wrong prediction."""
    return [cell for cell in matrix.cells if is_wrong(cell)]


def known_words(matrix: Matrix) -> str:
    """Return how much of the matrix was known before."""
    return f"{matrix.known} of {counted(matrix.asked, 'result')} were known already"
