"""A version matrix as a document: what it amounts to, the map, why models are not green, and the predictions."""

import shlex
from collections.abc import Mapping, Sequence

from harness.core.outcome import Status
from harness.core.prediction import PredictedLoad, Prediction
from harness.core.releases import BACKWARD, FORWARD, GIVEN, SAME, Matrix, MatrixCell
from harness.core.text import counted
from harness.report.document import (
    BAD,
    DETAIL,
    FIRST,
    GOOD,
    OPEN,
    QUIET,
    USUAL,
    Cell,
    Document,
    Fact,
    Part,
    Row,
    Table,
    Verdict,
    facts,
)
from harness.report.words.phrases import exit_words, seconds
from harness.verdict.matrix import Pair, judge_matrix
from harness.verdict.prediction import confusion_by_direction, is_wrong

LEGEND = (
    "loads and answers the same / models exported; X an upgrade breaks some, x a rollback does, ? some undecided, "
    "= some do no better where they come from, - nothing to load"
)
CORNER = "exported in / loaded in"
ORDER = ("X", "x", "?", "=", "-", "")
TONES = {"X": BAD, "x": BAD, "?": OPEN, "=": QUIET, "-": QUIET, "": GOOD}
DIRECTIONS = {"all": "all pairs", BACKWARD: "to a newer release", FORWARD: "to an older one", SAME: "its own release"}
LOADING_WORDS = {PredictedLoad.LOADED: "loaded", PredictedLoad.REFUSED: "refused", PredictedLoad.UNKNOWN: "no answer"}
CELL_WORDS: Mapping[Status, str] = {
    Status.PASS: "ok",
    Status.FAIL: "FAIL",
    Status.INCONCLUSIVE: "open",
    Status.SAME_FAIL: "same",
    Status.UNSUPPORTED: "-",
    Status.XFAIL: "known",
    Status.XPASS: "mitigated",
}
MODELS_SHOWN, WRONG_SHOWN = 20, 20
"""On a terminal that is not asked for all."""


def matrix_document(matrix: Matrix, *, directory: str = "") -> Document:
    """Return the document; ``directory`` is where its results lie, as a reader would type it."""
    verdict = judge_matrix(matrix)
    code = int(verdict.exit_code)
    known = f"{matrix.known} of {counted(matrix.asked, 'result')} were known already; {seconds(matrix.wall_s)}"
    head = [*verdict.sentences, prediction_words(matrix), *matrix.notes, known]
    return Document(
        title="Version matrix",
        eyebrow="TorchScript upgrade gate: releases",
        verdict=Verdict(means=f"exit code {code}: {exit_words(code)}", tone={0: GOOD, 1: BAD}.get(code, OPEN)),
        full="matrix.json",
        parts=(
            Part(
                title="",
                blocks=(
                    *facts((("", text) for text in head), FIRST),
                    *([Fact("results in", directory, FIRST, "path")] if directory else []),
                ),
            ),
            Part(title="Versions", id="matrix", blocks=(_map(matrix), Fact("", LEGEND, FIRST))),
            Part(title="Not green everywhere", noun="model", importance=USUAL, blocks=tuple(_troubles(matrix))),
            Part(
                title="The static check against what happened",
                noun="prediction",
                importance=USUAL,
                blocks=_predictions(matrix),
            ),
        ),
    )


def _map(matrix: Matrix) -> Table:
    """Return the map: exporters down, loaders across."""
    pairs, loaders = judge_matrix(matrix).pairs, [release.name for release in matrix.releases]
    rows = tuple(
        Row(cells=(exporter, *(_pair(pairs[exporter, loader]) for loader in loaders)), importance=FIRST)
        for exporter in matrix.exporters
    )
    return Table(heads=(CORNER, *loaders), rows=rows, noun="release")


def _pair(pair: Pair) -> Cell:
    """Return ``63/65 X``: models that load and answer the same, of those that there is an artifact of, and the mark."""
    mark = _mark(pair.status, pair.direction) or ("=" if pair.broken_before else "")
    text = f"{pair.passed}/{pair.tested}" if pair.tested else "-"
    return Cell(text if mark == "-" else f"{text} {mark}".rstrip(), tone=TONES[mark])


def _mark(status: Status, direction: str) -> str:
    if status is Status.FAIL:
        return "x" if direction == FORWARD else "X"
    return {Status.PASS: "", Status.SAME_FAIL: "=", Status.UNSUPPORTED: "-"}.get(status, "?")


def cell_mark(cell: MatrixCell) -> str:
    """Return the mark of one model in one pair."""
    return _mark(cell.status, cell.direction) if cell.exported else "-"


def _troubles(matrix: Matrix) -> list[Part]:
    """Return the models that are not green everywhere: broken upgrades first, then by how many pairs are red."""
    by_model: dict[str, list[MatrixCell]] = {}
    for cell in matrix.cells:
        by_model.setdefault(cell.model, []).append(cell)

    def weight(model: str) -> tuple[int, ...]:
        marks = [cell_mark(cell) for cell in by_model[model]]
        return tuple(-marks.count(mark) for mark in ORDER[:-1])

    red = [model for model, cells in by_model.items() if any(cell.status is not Status.PASS for cell in cells)]
    return [
        _trouble(model, by_model[model], matrix, USUAL if at < MODELS_SHOWN else DETAIL)
        for at, model in enumerate(sorted(red, key=weight))
    ]


def _trouble(model: str, cells: Sequence[MatrixCell], matrix: Matrix, importance: int) -> Part:
    by_pair = {(cell.exporter, cell.loader): cell for cell in cells}
    loaders = [release.name for release in matrix.releases]
    rows = []
    for exporter in dict.fromkeys(cell.exporter for cell in cells):
        found = [by_pair[exporter, loader] for loader in loaders]
        rows.append(Row(cells=(exporter, *map(_cell, found))))
    groups: dict[tuple[str, str], list[MatrixCell]] = {}
    for cell in cells:
        if cell.status is not Status.PASS:
            # A failed export is one fact, not one per loader.
            key = (cell_mark(cell), cell.kind or cell.status.value) if cell.exported else ("-", cell.reason)
            groups.setdefault(key, []).append(cell)
    worst_first = sorted(groups, key=lambda key: (ORDER.index(key[0]), -len(groups[key])))
    reasons = [fact for key in worst_first for fact in _reason(groups[key], matrix)]
    return Part(
        title=model,
        importance=importance,
        blocks=(Table(heads=(CORNER, *loaders), rows=tuple(rows), importance=importance), *reasons),
    )


def _cell(cell: MatrixCell) -> Cell:
    mark = cell_mark(cell)
    words = CELL_WORDS[cell.status] if cell.exported else "-"
    return Cell(words if words == mark else f"{words} {mark}".rstrip(), tone=TONES[mark])


def _reason(cells: Sequence[MatrixCell], matrix: Matrix) -> list[Fact]:
    """Return why a model is not green in pairs that fail alike, as the first of them says."""
    first = cells[0]
    what = f"{CELL_WORDS[first.status]} {first.kind}".rstrip() if first.exported else "not exported"
    found = [Fact("", f"{what}: {_pairs_words(cells)}{': ' if first.reason else ''}{first.reason}")]
    if first.predicted is not None and first.kind == "load_error":
        why = f" ({first.why_predicted})" if first.why_predicted else ""
        found.append(Fact("", f"the static check predicted: {first.predicted}{why}"))
    if first.status is Status.FAIL:
        found.append(Fact("", _command(first, matrix), form="command"))
    return found


def _command(cell: MatrixCell, matrix: Matrix) -> str:
    """Return the command that repeats one cell, with everything that ``compat`` reports."""
    old = matrix.golden_in if cell.exporter == GIVEN else cell.exporter
    known = dict.fromkeys(pair for name in (old, cell.loader) for pair in matrix.command_words.get(name, ()))
    words = (*(word for pair in known for word in pair), "--old", old, "--new", cell.loader, "-k", cell.model)
    return f"{matrix.command} {shlex.join(words)}"


def _pairs_words(cells: Sequence[MatrixCell]) -> str:
    """Return ``2.1.2 -> 2.6.0, 2.15.0; 2.6.0 -> 2.15.0``."""
    loaders: dict[str, list[str]] = {}
    for cell in cells:
        loaders.setdefault(cell.exporter, []).append(cell.loader)
    if not cells[0].exported:
        return ", ".join(loaders)
    return "; ".join(f"{exporter} -> {', '.join(names)}" for exporter, names in loaders.items())


def _predictions(matrix: Matrix) -> tuple[Fact | Table, ...]:
    """Return what was predicted against what happened: all pairs in full, then each direction; then what was wrong."""
    wrong = [
        Fact("", _wrong_words(cell), USUAL if at < WRONG_SHOWN else DETAIL) for at, cell in enumerate(_wrong(matrix))
    ]
    if not any(cell.predicted for cell in matrix.cells):
        return tuple(wrong)
    return (confusion_table(matrix), *wrong)


def confusion_table(matrix: Matrix) -> Table:
    """Return how often what was predicted and what happened, by direction."""
    rows = []
    for name, counts in confusion_by_direction(matrix.cells).items():
        label = DIRECTIONS[name]
        for predicted in Prediction:
            numbers = [counts[predicted][happened] for happened in PredictedLoad]
            if name == "all" or any(numbers):
                rows.append(Row(cells=(label, str(predicted), *map(str, numbers))))
                label = ""
    heads = ("pairs", "predicted", *LOADING_WORDS.values())
    return Table(heads=heads, rows=tuple(rows), numbers=(2, 3, 4))


def _wrong(matrix: Matrix) -> list[MatrixCell]:
    return [cell for cell in matrix.cells if is_wrong(cell)]


def prediction_words(matrix: Matrix) -> str:
    """Return in words how good the static check was."""
    tested = [cell for cell in matrix.cells if cell.predicted is not None]
    if not tested:
        return "nothing was predicted: no archive with code could be read"
    unknown = sum(cell.predicted is Prediction.UNKNOWN for cell in tested)
    open_ = f"; {unknown} unknown" if unknown else ""
    wrong = _wrong(matrix)
    if wrong:
        wrong_of_all = f"{len(wrong)} of {counted(len(tested), 'prediction')} wrong"
        return f"{wrong_of_all}{open_}; a wrong one is a bug of ours: report it"
    return f"no prediction of {len(tested)} was wrong{open_}"


def _wrong_words(cell: MatrixCell) -> str:
    why = f" ({cell.why_predicted})" if cell.why_predicted else ""
    what = LOADING_WORDS[cell.happened]
    return (
        f"WRONG: {cell.model}, {cell.exporter} -> {cell.loader}: predicted {cell.predicted}{why}, {what}: {cell.reason}"
    )
