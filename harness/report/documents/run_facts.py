"""What else a run says: rollback, leaving TorchScript, the static check, environments, planted defects, timelines."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from harness.core.outcome import Outcome
from harness.core.prediction import ModelRollback, PredictedModel, RollbackAnswer
from harness.core.report import RunReport
from harness.core.text import counted
from harness.core.timeline import Timeline
from harness.machine.typed import decoded
from harness.report.document import (
    ALL,
    BAD,
    DETAIL,
    FIRST,
    GOOD,
    OPEN,
    QUIET,
    Block,
    Cell,
    Charts,
    Fact,
    Figure,
    Part,
    Row,
    Table,
    commands,
    facts,
    placed,
)
from harness.report.documents.migration import run_migration_words
from harness.report.words.phrases import NOT_MEASURED, phrase_static, scenario_words, shorten
from harness.report.words.predictions import (
    NAMED,
    back_heading,
    closed_rollbacks,
    place,
    rollback_lines,
    wrong_predictions,
)
from harness.report.words.summary import common_words, numerics_words, run_words
from harness.verdict.migration import WORST_FIRST

BLOCKS_SHOWN, ROWS_SHOWN = 50, 400
ANSWER_TONES = {RollbackAnswer.YES: GOOD, RollbackAnswer.NO: BAD, RollbackAnswer.UNKNOWN: OPEN}


def rollback_part(report: RunReport, where: str) -> Part:
    """Return each model that cannot be rolled back, or of which that is not known."""
    found = report.rollback
    if found is None or not found.models:
        return Part(title="Rollback")
    closed = tuple(
        _closed(report, item, where, DETAIL if at < BLOCKS_SHOWN else ALL)
        for at, item in enumerate(closed_rollbacks(found))
    )
    return Part(title="Rollback", id="rollback", importance=DETAIL, noun="model", blocks=closed)


def rollback_tone(report: RunReport) -> str:
    """Return the tone of whether one can roll back; a no that gates nothing is open."""
    found = report.rollback
    if found is None or not found.models:
        return OPEN
    return OPEN if found.answer is RollbackAnswer.NO and not found.gates else ANSWER_TONES[found.answer]


def _closed(report: RunReport, item: ModelRollback, where: str, importance: int) -> Part:
    word, subject = back_heading(report, item)
    artifact = place(item.artifact, where) if item.artifact else ""
    return Part(
        title=subject,
        word=word,
        tone=OPEN,
        importance=importance,
        blocks=(
            *facts(rollback_lines(item), DETAIL),
            *facts([("artifact", artifact)], DETAIL, form="path"),
            *commands([("shows", item.command)], DETAIL),
        ),
    )


def migration_part(report: RunReport) -> Part:
    """Return what the models stop at that could not leave TorchScript, and the command that says more."""
    found = report.migration
    if found is None:
        return Part(title="Leaving TorchScript")
    stopped = sorted(found.stopped, key=lambda model: WORST_FIRST.index(model.outcome))
    rows = tuple(
        Row(
            cells=(item.model, item.reason, item.advice, Cell(item.outcome.value, tone=OPEN)),
            importance=DETAIL if at < ROWS_SHOWN else ALL,
        )
        for at, item in enumerate(stopped)
    )
    table = Table(heads=("model", "why", "instead", "outcome"), rows=rows, noun="model", importance=DETAIL)
    blocks: tuple[Block, ...] = (
        Fact("", run_migration_words(found), ALL),
        *([table] if rows else []),
        *commands([("says more", found.command)], FIRST),
    )
    return Part(title="Leaving TorchScript", id="migration", importance=FIRST, blocks=blocks if found.models else ())


def static_part(report: RunReport, where: str) -> Part:
    """Return each wrong prediction, our bug whatever the decision is; then all beside what happened, folded."""
    wrong = [
        Part(
            title=subject,
            word="WRONG PREDICTION",
            tone=BAD,
            importance=placed(FIRST + 5, at, 60) if at < 2 else DETAIL,
            blocks=(*facts(lines, FIRST + 10), *commands([("shows", command)], FIRST + 10)),
        )
        for at, (subject, lines, command) in enumerate(wrong_predictions(report, where))
    ]
    predicted = [(model.model, model.static) for model in report.models if model.static is not None]
    sides = [side for side in ("old", "new") if any(side in static.sides for _, static in predicted)]
    rows = []
    for at, (model, static) in enumerate(predicted):
        found = [static.sides.get(side) for side in sides]
        notes = "; ".join(dict.fromkeys(text for item in found if item is not None for text in _notes(item)))
        importance = DETAIL if at < ROWS_SHOWN else ALL
        rows.append(Row(cells=(model, *map(_beside, found), notes or NOT_MEASURED), importance=importance))
    heads = ("model", *(getattr(report, side).name for side in sides), "worth knowing")
    table = Table(heads=heads, rows=tuple(rows), noun="model", importance=DETAIL)
    title = f"{counted(len(rows), 'model')}: predicted, and what happened"
    fold = [Part(title=title, folded=True, importance=DETAIL, blocks=(table,))] if rows else []
    return Part(title="Static check", id="static", importance=FIRST, noun="wrong prediction", blocks=(*wrong, *fold))


def _beside(predicted: PredictedModel | None) -> Cell:
    if predicted is None:
        return Cell(NOT_MEASURED)
    wrong = predicted.agreed is False
    text = f"{predicted.prediction}: {predicted.happened}{' WRONG' if wrong else ''}"
    return Cell(text, tone=BAD if wrong else "")


def _notes(predicted: PredictedModel) -> Iterator[str]:
    if predicted.note:
        yield predicted.note
    found = predicted.verdict.findings if predicted.verdict is not None else ()
    yield from (phrase_static(finding) for finding in found[:NAMED])
    if len(found) > NAMED:
        yield f"and {len(found) - NAMED} more in {predicted.release}"


def environments_part(report: RunReport) -> Part:
    """Return what was asked of which environments, what differs, and why golden records are trusted."""
    differences = tuple(
        Row(cells=(name, old, new)) for name, (old, new) in sorted(report.environment_differences.items())
    )
    trust = tuple(
        Row(
            cells=(
                item.model,
                item.release,
                item.accepted.isoformat(),
                item.by,
                item.reason,
                item.run,
                item.record[:12],
            )
        )
        for item in sorted(report.trust, key=lambda item: item.model)
    )
    heads = ("model", "torch", "accepted", "by", "reason", "from run", "sha256")
    trusted = Part(
        title="Golden records that stood in for the old release, and why they are trusted",
        folded=True,
        importance=ALL,
        blocks=(Table(heads=heads, rows=trust),),
    )
    table = Table(heads=("field", report.old.name, report.new.name), rows=differences, importance=ALL)
    asked = [("upgrade", run_words(report)), ("both", common_words(report)), ("numerics", numerics_words(report))]
    blocks: tuple[Block, ...] = (
        *facts(asked, DETAIL),
        *([table] if differences else []),
        *([trusted] if trust else []),
    )
    return Part(title="Environments", id="environments", importance=DETAIL, blocks=blocks)


def planted_part(report: RunReport) -> Part:
    """Return the planted defects, those first that were not seen."""
    heads = ("planted defect", "expected", "reported", "remark", "result")
    rows = tuple(
        Row(
            cells=(
                item.name,
                item.expected or "nothing: a healthy twin",
                ", ".join(item.reported) or "nothing",
                item.note,
                Cell("caught", tone=GOOD) if item.caught else Cell("MISSED", tone=BAD),
            )
        )
        for item in sorted(report.judgement.planted_defects, key=lambda item: item.caught)
    )
    nothing = Fact("", "None ran: nothing shows that this run would have seen a defect.", ALL)
    block = Table(heads=heads, rows=rows, importance=ALL) if rows else nothing
    return Part(title="Planted defects", id="planted_defects", importance=ALL, blocks=(block,))


@dataclass(frozen=True, kw_only=True, slots=True)
class CalibrationLine:
    """One thing that was asked of the gate and measured; ``short`` says by how much it is not met, empty where it is.

    ``nox -s calibrate -- page`` writes them; ``docs/calibration.md`` says how they were measured.
    """

    what: str
    asked: str
    found: str
    short: str = ""


def calibration_part(data: str) -> Part:
    """Return how often this version of the gate errs."""
    lines: Sequence[CalibrationLine] = decoded(data, tuple[CalibrationLine, ...]) if data else ()
    rows = tuple(
        Row(
            cells=(
                line.what,
                line.asked,
                line.found,
                Cell(f"not met: {line.short}", tone=OPEN) if line.short else Cell("met", tone=GOOD),
            )
        )
        for line in lines
    )
    caption = "Measured once for this version, on planted faults and healthy twins; not in this run"
    table = Table(heads=("asked", "at least, or at most", "measured", "result"), rows=rows, caption=caption)
    title = "What this version of the gate finds, and how often it errs, on faults of known size"
    fold = Part(title=title, folded=True, importance=ALL, blocks=(table,))
    return Part(title="Calibration", id="calibration", importance=ALL, blocks=(fold,) if rows else ())


def timelines(report: RunReport) -> Iterator[Part]:
    """Yield the timelines by scenario and group, old above new, those first in which something did not complete."""
    together: dict[tuple[str, str], list[Timeline]] = {}
    for item in report.timelines:
        together.setdefault((item.scenario, item.group), []).append(item)

    def ended(item: Timeline) -> bool:
        return item.outcome is not Outcome.COMPLETED

    for (scenario, group), items in sorted(together.items(), key=lambda pair: not any(map(ended, pair[1]))):
        state = ", ".join(dict.fromkeys(item.outcome.value.replace("_", " ") for item in items if ended(item)))
        yield Part(
            title=f"{scenario_words(scenario)}, {shorten(group, 60)}",
            word=state,
            tone=BAD if state else QUIET,
            folded=True,
            opened=bool(state),
            kind="timelines",
            importance=ALL,
            blocks=(Charts(lambda items=items: _timelines(items)),),  # type: ignore[misc]
        )


def _timelines(items: Sequence[Timeline]) -> Iterator[Figure]:
    from harness.report.charts.timeline_chart import common_end, timeline_figure  # noqa: PLC0415  only a page draws

    end_ns = common_end(items)
    yield from (timeline_figure(item, end_ns) for item in items)
