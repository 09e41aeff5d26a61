"""The report as GitHub's workflow commands: annotations of a run and of the lines that declare its models.

Of one step, 10 errors, 10 warnings and 10 notices are shown, the first ones
(https://github.com/actions/toolkit/blob/main/docs/problem-matchers.md); the runner forwards 4,096 characters of a
message (``ExecutionContext`` of actions/runner). So the worst stand first, and the last one of each level says how many
there was no room for.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from harness.core.findings import Severity, weight
from harness.core.outcome import Status
from harness.core.report import RunReport
from harness.core.text import first_few, prose, visible
from harness.core.verdict import Cause, CellVerdict
from harness.report.ci.checks import DECISION, Check, State, checks, declared, file_and_line
from harness.report.documents.causes import models_words
from harness.report.text.table import table_rows
from harness.report.words.phrases import phrase, scenario_words, shorten
from harness.report.words.policy import let_pass
from harness.report.words.to_upgrade import owners_of
from harness.verdict.counting import cause_word
from harness.verdict.waivers.uses import waiver_notes

A_LEVEL = 10
"""Annotations of one level that GitHub shows of a step."""
MESSAGE_LIMIT, TITLE_LIMIT = 4_000, 200
_LINE_LIMIT = 600

LEVELS = {
    State.RED: "error",
    State.OPEN: "error",
    State.RULED: "warning",
    State.ASIDE: "warning",
    State.BEFORE: "notice",
    State.WAIVED: "notice",
    State.ABSENT: "notice",
}


class Annotation(NamedTuple):
    """One annotation as raw texts; ``place`` is ``file:line``, ``file``, or empty."""

    level: str
    title: str
    message: str
    place: str = ""


def render_annotations(report: RunReport, *, directory: str = "", places: Mapping[str, str] | None = None) -> str:
    """Return one workflow command per line: the decision, each cause once, then what else is not green.

    Args:
        report: what to show.
        directory: where the run lies, as the reader would type it; ``reports/RUN`` if empty.
        places: model -> ``file:line`` of its declaration, relative to the root of the repository; a model that is not
            in it is annotated without a place. None: as the report has them, where these are relative.
    """
    known = declared(report) if places is None else places
    in_causes = {cell for cause in report.causes for cell in cause.cells if cause.status is not Status.PASS}
    shown = [check for check in checks(report, directory=directory) if _shown(check) and check.name not in in_causes]
    whole, *rest = [_annotation(check, known) for check in shown]
    found = [whole, *(_of_cause(report, cause, known) for cause in report.causes), *rest]
    found = [*_of_waivers(report), *_of_requests(report), *found, *_warned_cells(report, known)]
    lines = [_command(item) for level in ("error", "warning", "notice") for item in _fitting(found, level)]
    return "".join(f"{line}\n" for line in lines)


def _shown(check: Check) -> bool:
    return check.state is not State.GREEN or check.suite == DECISION


def _annotation(check: Check, places: Mapping[str, str]) -> Annotation:
    lines = [check.message, *(f"{label}: {text}" for label, text in check.lines if text not in check.message)]
    return Annotation(
        level=LEVELS.get(check.state, "notice"),
        title=check.title,
        message="\n".join(shorten(prose(line), _LINE_LIMIT) for line in lines if line) or check.raw,
        place=places.get(check.model, ""),
    )


def _of_cause(report: RunReport, cause: Cause, places: Mapping[str, str]) -> Annotation:
    """Return one cause, where its clearest model is declared."""
    lines = [
        f"models: {models_words(cause)}",
        *(f"owner: {owner}" for owner in owners_of(report, cause)),
        *(f"{label}: {text}" for label, text in cause.evidence),
        *([f"fix: {cause.fix}"] if cause.fix else []),
        *(f"{label}: {command}" for label, command in cause.commands),
    ]
    return Annotation(
        level="warning" if cause.status is Status.PASS else "error",
        title=f"{cause_word(cause)}: {cause.title}",
        message="\n".join(shorten(prose(line), _LINE_LIMIT) for line in lines),
        place=places.get(cause.models[0], ""),
    )


def _of_waivers(report: RunReport) -> list[Annotation]:
    """Return which waivers need somebody: a few lines, before the warnings of which there may be hundreds."""
    notes = waiver_notes(report.waivers)
    return [Annotation("warning", "waivers", shorten(prose(note), _LINE_LIMIT)) for note in notes]


def _of_requests(report: RunReport) -> list[Annotation]:
    guessed = report.baseline.now_guessed if report.baseline is not None else ()
    words = f"given in the baseline, guessed now: {first_few(guessed, A_LEVEL)}"
    return [Annotation("warning", "requests", words)] if guessed else []


def _warned_cells(report: RunReport, places: Mapping[str, str]) -> list[Annotation]:
    """Return what is only warned of in cells that pass, which have no annotation else."""
    cells = [cell for row in table_rows(report) for cell in row.cells]
    in_causes = {cell for cause in report.causes for cell in cause.cells}
    return [
        Annotation(
            level="warning",
            title=f"{kind}: {cell.model}, {scenario_words(cell.scenario)}",
            message=shorten(prose(message), _LINE_LIMIT),
            place=places.get(cell.model, ""),
        )
        for cell in cells
        if cell.status is Status.PASS
        for kind, message in _warned(cell, in_causes=cell.cell in in_causes)
    ]


def _warned(cell: CellVerdict, *, in_causes: bool) -> Iterator[tuple[str, str]]:
    """Yield (kind, message) of what a cell that passes warns of, or else what the policy let pass without a word."""
    told = (Severity.WARN,) if in_causes else (Severity.NAMED, Severity.WARN)
    warned = [(item.kind, phrase(item)) for item in cell.findings if weight(cell, item.kind) in told]
    yield from warned
    if let_pass(cell) and not warned:
        yield "let pass", f"let pass by the policy: {let_pass(cell)}"


def _fitting(found: Sequence[Annotation], level: str) -> list[Annotation]:
    """Return the first annotations of a level that there is room for, and one that counts the rest."""
    wanted = [item for item in found if item.level == level]
    if len(wanted) <= A_LEVEL:
        return wanted
    rest = len(wanted) - A_LEVEL + 1
    words = f"GitHub shows {A_LEVEL} of a step; all are in report.html and report.json, the worst in the step summary"
    return [*wanted[: A_LEVEL - 1], Annotation(level, f"and {rest} more {level}s", words)]


def _command(item: Annotation) -> str:
    """Return one line that the runner obeys; nothing inside a text can end a property or the line."""
    properties = []
    file, line = file_and_line(item.place)
    properties += [f"file={_property(file)}"] if file else []
    properties += [f"line={line}"] if line else []
    properties.append(f"title={_property(shorten(prose(item.title), TITLE_LIMIT))}")
    return f"::{item.level} {','.join(properties)}::{_data(shorten(item.message, MESSAGE_LIMIT))}"


def _data(text: str) -> str:
    """Return a message, whose lines are our own, as the runner's ``ActionCommand`` unescapes it."""
    return "%0A".join(visible(line).replace("%", "%25") for line in text.split("\n"))


def _property(text: str) -> str:
    return visible(text).replace("%", "%25").replace(":", "%3A").replace(",", "%2C")
