"""The sections of the markdown report on predictions and on the way back."""

from collections.abc import Iterator

from harness.domain.foretold import Foretold, ModelRollback, RollbackReport
from harness.domain.report import RunReport
from harness.render.foretold import (
    NAMED,
    back_heading,
    closed_ways,
    finding_words,
    place,
    rollback_words,
    static_words,
    way_back_lines,
    wrong_predictions,
)
from harness.render.markdown_text import CELL_LIMIT, bullets, code, command_block, escape, folded, table_line
from harness.render.red_cells import run_directory
from harness.render.words import NOT_MEASURED, counted

# Models that are told in full, and rows of a folded table.
_TOLD = 50
_ROWS_SHOWN = 400


def rollback_section(report: RunReport, directory: str) -> list[str]:
    """Return whether one can roll back, each model that cannot, and a folded table; nothing where nobody asked."""
    found = report.rollback
    if found is None:
        return []
    where = run_directory(report, directory)
    closed = closed_ways(found)
    rest = len(closed) - _TOLD
    return [
        "",
        "## Rollback",
        "",
        escape(rollback_words(report)),
        *[_way_back(report, item, where) for item in closed[:_TOLD]],
        *(["", f"And {rest} more, in `report.json`."] if rest > 0 else []),
        *([_ways_back(found)] if found.models else []),
    ]


def _way_back(report: RunReport, item: ModelRollback, directory: str) -> str:
    word, subject = back_heading(report, item)
    lines = ["", f"### {word}: {escape(subject, CELL_LIMIT)}", "", *bullets(way_back_lines(item))]
    lines += [f"- **artifact** {code(place(item.artifact, directory))}"] if item.artifact else []
    return "\n".join([*lines, *(["", *command_block(item.command)] if item.command else [])])


def _ways_back(found: RollbackReport) -> str:
    lines = [table_line(("model", "predicted", "happened", "probe", "can be rolled back")), table_line(["---"] * 5)]
    for item in found.models[:_ROWS_SHOWN]:
        told = item.foretold
        happened = told.happened if told is not None and found.method == "probed" else NOT_MEASURED
        texts = (
            item.model,
            told.prediction if told is not None else NOT_MEASURED,
            happened,
            item.verdict.status.value if item.verdict is not None else NOT_MEASURED,
            item.answer,
        )
        lines.append(table_line(escape(text, CELL_LIMIT) for text in texts))
    return folded(f"rollback of {counted(len(found.models), 'model')}", [*lines, *_more(len(found.models))])


def static_section(report: RunReport, directory: str) -> list[str]:
    """Return each wrong prediction, then all of them beside what happened, folded; nothing where none was made."""
    told = [(model.model, model.static) for model in report.models if model.static is not None]
    if not told:
        return []
    wrong = []
    for subject, lines, command in wrong_predictions(report, run_directory(report, directory)):
        wrong += ["", f"### WRONG PREDICTION: {escape(subject, CELL_LIMIT)}", "", *bullets(lines), ""]
        wrong += command_block(command)
    sides = [(side, getattr(report, side).name) for side in ("old", "new") if any(side in it.sides for _, it in told)]
    heads = ("model", *(name for _, name in sides), "worth knowing")
    table = [table_line(escape(head) for head in heads), table_line(["---"] * len(heads))]
    for model, static in told[:_ROWS_SHOWN]:
        found = [static.sides.get(side) for side, _ in sides]
        notes = "; ".join(dict.fromkeys(text for item in found if item is not None for text in _notes(item)))
        cells = [escape(text, CELL_LIMIT) for text in (model, *(_beside(item) for item in found))]
        table.append(table_line([*cells, escape(notes or NOT_MEASURED)]))
    summary = f"{counted(len(told), 'model')}: predicted, and what happened"
    table_of_all = folded(summary, [*table, *_more(len(told))])
    return ["", "## Static check", "", escape(static_words(report)), *wrong, table_of_all]


def _beside(told: Foretold | None) -> str:
    if told is None:
        return NOT_MEASURED
    wrong = " WRONG" if told.agreed is False else ""
    return f"{told.prediction}: {told.happened}{wrong}"


def _notes(told: Foretold) -> Iterator[str]:
    if told.note:
        yield told.note
    found = told.verdict.findings if told.verdict is not None else ()
    yield from (finding_words(finding) for finding in found[:NAMED])
    if len(found) > NAMED:
        yield f"and {len(found) - NAMED} more in {told.release}"


def _more(count: int) -> list[str]:
    rest = count - _ROWS_SHOWN
    return ["", f"And {rest} more models, in `report.json`."] if rest > 0 else []
