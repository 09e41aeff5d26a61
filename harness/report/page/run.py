"""What the page says of the run as a whole, below the models, and how often such runs err."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from harness.core.migration import RunMigration
from harness.core.outcome import Outcome
from harness.core.prediction import RollbackAnswer
from harness.core.report import RunReport
from harness.core.text import prose, visible
from harness.core.timeline import Timeline
from harness.machine.typed import decoded
from harness.report.page.figures import Budget, Figure
from harness.report.page.parts import BAD, GOOD, LINES_SHOWN, OPEN, Fact, TableLine, tone
from harness.report.page.timeline_chart import PHASES, common_end, timeline_chart
from harness.report.text.scenarios import facts_words, legend, scenario_rows
from harness.report.words.migration import run_migration_words
from harness.report.words.phrases import scenario_words, seconds, shorten
from harness.report.words.red_cells import side_lines
from harness.report.words.summary import missed_words, title_words
from harness.verdict.migration import WORST_FIRST


@dataclass(frozen=True, kw_only=True, slots=True)
class CalibrationLine:
    """One thing that was asked of the gate and measured; ``short`` says by how much it is not met, empty where it is.

    ``nox -s calibrate -- page`` writes them; ``docs/calibration.md`` says how they were measured.
    """

    what: str
    asked: str
    found: str
    short: str = ""


def calibration_lines(data: str) -> tuple[CalibrationLine, ...]:
    """Return the lines of ``calibration.json``."""
    lines: tuple[CalibrationLine, ...] = decoded(data, tuple[CalibrationLine, ...])
    return lines


_TEXT_LIMIT = 1200


@dataclass(frozen=True, kw_only=True, slots=True)
class TimelineView:
    """The timelines of one scenario and server group, old above new; ``red``: some process did not complete."""

    title: str
    state: str
    red: bool
    figures: tuple[Figure, ...]


@dataclass(frozen=True, kw_only=True, slots=True)
class RunView:
    """Sections about the run; empty ones are left out of the page."""

    title: str
    scenarios: tuple[TableLine, ...]
    scenario_notes: tuple[Fact, ...]
    timelines: tuple[TimelineView, ...]
    differences: tuple[tuple[str, str, str], ...]
    numerics: tuple[tuple[str, str, str, str], ...]
    planted_defects: tuple[TableLine, ...]
    planted_defects_caught: tuple[TableLine, ...]
    rollback: tuple[TableLine, ...]
    can_roll_back: int
    migration: tuple[TableLine, ...]
    migration_words: str
    migration_command: str
    trust: tuple[tuple[str, ...], ...]
    events: tuple[tuple[str, ...], ...]
    notes: tuple[Fact, ...]
    shares: tuple[tuple[str, str, float], ...]


def run_view(report: RunReport, budget: Budget) -> RunView:
    """Return what the page says of the run as a whole; ``budget`` is spent on the timelines."""
    notes = [*side_lines(report), *(("note", note) for note in report.notes)]
    shares = sorted(report.time_shares_s.items(), key=lambda item: (-item[1], item[0]))
    found = report.migration
    whole = max(report.wall_s, sum(report.time_shares_s.values()), 1e-9)
    return RunView(
        title=prose(title_words(report)),
        scenarios=tuple(_scenarios(report)),
        scenario_notes=tuple((label, prose(text)) for label, text in legend(report.scenarios)),
        timelines=tuple(_timelines(report.timelines, budget)),
        differences=tuple(
            (visible(name), visible(a), visible(b)) for name, (a, b) in sorted(report.environment_differences.items())
        ),
        numerics=tuple(
            (visible(name), visible(a), visible(b), visible(c)) for name, (a, b, c) in sorted(report.numerics.items())
        ),
        planted_defects=tuple(_planted_defects(report, caught=False)),
        planted_defects_caught=tuple(_planted_defects(report, caught=True)),
        rollback=tuple(_rollback(report)),
        can_roll_back=sum(item.answer is RollbackAnswer.YES for item in report.rollback.models)
        if report.rollback
        else 0,
        migration=tuple(_migration(found)) if found is not None else (),
        migration_words=prose(run_migration_words(found)) if found is not None and found.models else "",
        migration_command=visible(found.command) if found is not None else "",
        trust=tuple(_trust(report))[:LINES_SHOWN],
        events=tuple(_events(report)),
        notes=tuple((label, shorten(prose(text), _TEXT_LIMIT)) for label, text in notes[:LINES_SHOWN]),
        shares=tuple((visible(name), seconds(spent), 100 * spent / whole) for name, spent in shares),
    )


def _events(report: RunReport) -> Iterator[tuple[str, ...]]:
    """Yield what happened to the machine, the gravest first."""
    for event in report.during_run.events if report.during_run is not None else ():
        texts = (event.name, event.read, event.so_what, event.do_this)
        yield tuple(shorten(prose(text), _TEXT_LIMIT) for text in texts)


def _trust(report: RunReport) -> Iterator[tuple[str, ...]]:
    """Yield why each golden record that stood in for the old release is trusted."""
    for item in sorted(report.trust, key=lambda one: one.model):
        texts = (item.model, item.release, item.accepted.isoformat(), item.by, item.reason, item.run, item.record[:12])
        yield tuple(shorten(prose(text), 200) for text in texts)


def _scenarios(report: RunReport) -> Iterator[TableLine]:
    for row in scenario_rows(report):
        *texts, word = facts_words(row, compact=False)
        first = (visible(scenario_words(row.facts.scenario)), shorten(visible(row.facts.group), 40))
        yield TableLine(texts=(*first, *texts), status=word, tone=tone(row.status))


def _timelines(found: Sequence[Timeline], budget: Budget) -> Iterator[TimelineView]:
    """Yield the timelines by scenario and group, those first in which something did not complete."""
    together: dict[tuple[str, str], list[Timeline]] = {}
    for item in found:
        together.setdefault((item.scenario, item.group), []).append(item)
    views = [_together(scenario, group, items) for (scenario, group), items in together.items()]
    for title, red, items in sorted(views, key=lambda view: not view[1]):
        end_ns = common_end(items)
        figures = budget.fit(_timeline(item, end_ns) for item in items)
        if figures:
            state = ", ".join(dict.fromkeys(item.outcome.value.replace("_", " ") for item in items if _ended(item)))
            yield TimelineView(title=title, state=state, red=red, figures=figures)


def _together(scenario: str, group: str, items: list[Timeline]) -> tuple[str, bool, list[Timeline]]:
    return f"{visible(scenario_words(scenario))}, {shorten(visible(group), 60)}", any(map(_ended, items)), items


def _ended(item: Timeline) -> bool:
    return item.outcome is not Outcome.COMPLETED


def _timeline(item: Timeline, end_ns: int) -> Figure:
    state = item.outcome.value.replace("_", " ") + (f": {item.hang.value}" if item.hang is not None else "")
    threads = len({span.thread for span in item.spans})
    more = f"; {item.left_out} shorter phases are not drawn" if item.left_out else ""
    phases = {span.phase for span in item.spans if span.finished}
    legend = [(name, words) for name, words in PHASES.items() if name in phases]
    legend += [("other", "other phases")] if phases - set(PHASES) else []
    legend += [("stuck", "did not end")] if any(not span.finished for span in item.spans) else []
    return Figure(
        title=f"{item.side} release, {threads} {'thread' if threads == 1 else 'threads'}",
        svg=timeline_chart(item, end_ns),
        note=f"round {item.round}: {state}{more}",
        legend=tuple(legend),
        wide=True,
    )


def _planted_defects(report: RunReport, *, caught: bool) -> Iterator[TableLine]:
    for item in report.judgement.planted_defects:
        if item.caught is not caught:
            continue
        words = (visible(item.name), item.expected or "nothing: a healthy twin", ", ".join(item.reported) or "nothing")
        note = prose(item.note) if caught else prose(missed_words(item))
        texts = tuple(shorten(prose(text), 200) for text in (*words, note))
        yield TableLine(texts=texts, status="caught" if caught else "MISSED", tone=GOOD if caught else BAD)


def _rollback(report: RunReport) -> Iterator[TableLine]:
    """Yield the models that may not be rolled back, those first that cannot."""
    found = report.rollback.models if report.rollback is not None else ()
    shut = [item for item in found if item.answer is not RollbackAnswer.YES]
    for item in sorted(shut, key=lambda model: (model.answer is not RollbackAnswer.NO, model.model))[:LINES_SHOWN]:
        texts = (visible(item.model), shorten(prose(item.reason), 400), visible(item.command))
        yield TableLine(texts=texts, status=item.answer.value, tone=BAD if item.answer is RollbackAnswer.NO else OPEN)


def _migration(found: RunMigration) -> Iterator[TableLine]:
    """Yield the models that could not leave TorchScript as they are, the worst outcome first."""
    for item in sorted(found.stopped, key=lambda model: WORST_FIRST.index(model.outcome))[:LINES_SHOWN]:
        texts = (visible(item.model), shorten(prose(item.reason), 400), shorten(prose(item.cure), 400))
        yield TableLine(texts=texts, status=item.outcome.value, tone=OPEN)
