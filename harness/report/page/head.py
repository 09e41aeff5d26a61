"""The first screen: the decision and why, the counts, the causes, what is worst, open, faster and slow to start."""

import math
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from harness.core.outcome import Decision
from harness.core.prediction import RollbackAnswer
from harness.core.report import CellTrend, RunReport, SideReport
from harness.core.text import counted, prose, visible
from harness.core.verdict import Cause, WaiverState
from harness.report.excess import (
    ModelExcess,
    factor_words,
    slow_starts,
    start_words,
    steady_calls,
)
from harness.report.page.causes import CauseView
from harness.report.page.parts import (
    BAD,
    CHANGE_TONES,
    GOOD,
    OPEN,
    QUIET,
    Fact,
    anchor,
    decision_tone,
    link,
    tone,
)
from harness.report.page.rules import is_soon, waiver_tone
from harness.report.text.table import TableRow, columns, row_cells, table_rows
from harness.report.words.migration import run_migration_words
from harness.report.words.phrases import NO_REASON, NOT_MEASURED, percent, seconds, shorten
from harness.report.words.predictions import rollback_words, static_words
from harness.report.words.red_cells import run_directory
from harness.report.words.summary import (
    but_words,
    common_words,
    cost_words,
    decision_words,
    difference_words,
    run_words,
)
from harness.verdict.counting import OVER_LIMIT, UNDECIDED, counts_of

NOTES_SHOWN = 2
_LIMIT = 150
_ROLLBACK = {
    RollbackAnswer.YES: (GOOD, "yes, of every model"),
    RollbackAnswer.NO: (BAD, "no, of"),
    RollbackAnswer.UNKNOWN: (OPEN, "not known, of"),
}


@dataclass(frozen=True, kw_only=True, slots=True)
class Glance:
    """One line; ``target`` is the section that has the rest, empty where there is none."""

    label: str
    words: str
    tone: str
    target: str = ""


def glances(report: RunReport, rows: Sequence[TableRow]) -> tuple[Glance, ...]:
    """Return the lines of a report, in the order in which somebody who decides wants them."""
    found = (
        *_since(report),
        *_waivers(report),
        *_policy(report),
        *_golden(report),
        *_planted_defects(report),
        *_rollback(report),
        *_migration(report),
        *_machine(report),
        *_not_measured(rows),
        *_notes(report),
    )
    return tuple(found)


def _glance(label: str, words: str, tone: str, target: str = "") -> Glance:
    return Glance(label=label, words=shorten(prose(words), _LIMIT), tone=tone, target=target)


def _planted_defects(report: RunReport) -> Iterator[Glance]:
    planted_defects = report.judgement.planted_defects
    if report.judgement.of_cell:
        return
    if not planted_defects:
        yield _glance(
            "planted defects", "none ran: nothing shows that a defect would have been seen", OPEN, "planted_defects"
        )
        return
    missed = [item.name for item in planted_defects if not item.caught]
    words = f"{len(planted_defects) - len(missed)} of {len(planted_defects)} came out right"
    if missed:
        words = f"MISSED {', '.join(missed)}; {words}"
    yield _glance("planted defects", words, BAD if missed else GOOD, "planted_defects")


def _rollback(report: RunReport) -> Iterator[Glance]:
    found = report.rollback
    if found is None:
        return
    if not found.models:
        yield _glance("rollback", f"not known: {found.reason}", OPEN)
        return
    tone, words = _ROLLBACK[found.answer]
    tone = OPEN if tone == BAD and not found.gates else tone
    shut = [item.model for item in found.models if item.answer is found.answer]
    if found.answer is not RollbackAnswer.YES:
        words += f" {len(shut)} of {counted(len(found.models), 'model')}: {', '.join(shut)}"
    yield _glance("rollback", words + ("" if found.method == "probed" else " (read, not probed)"), tone, "rollback")


def _migration(report: RunReport) -> Iterator[Glance]:
    """Yield how many models could leave TorchScript: no tone, for it decides nothing."""
    if report.migration is not None:
        target = "migration" if report.migration.models else ""
        yield _glance("migrate", run_migration_words(report.migration), QUIET, target)


def _since(report: RunReport) -> Iterator[Glance]:
    """Yield how many cells have changed since another run, the gravest first."""
    found = report.baseline
    if found is None:
        return
    counts = [(change, found.counts.get(change.value, 0)) for change in CellTrend]
    words = ", ".join(f"{count} {change.words}" for change, count in counts if count) or "no cell to compare"
    tones = [CHANGE_TONES[change] for change, count in counts if count]
    tone = next((tone for tone in (BAD, OPEN) if tone in tones), GOOD)
    yield _glance("since baseline", f"{words}; then {found.decision.value}", tone, "baseline")


def _policy(report: RunReport) -> Iterator[Glance]:
    """Yield what another policy than the default made of the run; nothing where it changed nothing."""
    policy = report.policy
    unmet = [item.what for item in policy.demands if not item.met]
    ruled = sum(len(cell.ruled) for cell in report.judgement.cells)
    said = [f"NOT MET: {', '.join(unmet)}"] if unmet else []
    said += [f"{counted(ruled, 'finding')} weighed otherwise"] if ruled else []
    own = policy.regated.decision if policy.regated is not None else report.judgement.decision
    said += [f"the run itself said {own.value}"] if own is not report.judgement.decision else []
    if said:
        yield _glance("policy", "; ".join(said), BAD if unmet else OPEN, "policy")


def _waivers(report: RunReport) -> Iterator[Glance]:
    """Yield how many waivers a run has, and what is to be done about some."""
    uses = report.waivers
    if not uses:
        return
    counts = Counter(use.state for use in uses)
    said = [f"{counts[state]} {state.value}" for state in WaiverState if counts[state]]
    soon = sum(is_soon(use) for use in uses)
    said += [f"{soon} about to expire"] if soon else []
    tones = {waiver_tone(use) for use in uses}
    alert = BAD if BAD in tones else OPEN if soon or OPEN in tones else GOOD
    yield _glance("waivers", ", ".join(said), alert, "waivers")


def _golden(report: RunReport) -> Iterator[Glance]:
    """Yield whose and how old the records are that stood in for the old release."""
    if not report.trust:
        return
    days = sorted(item.accepted.isoformat() for item in report.trust)
    when = days[0] if days[0] == days[-1] else f"{days[0]} to {days[-1]}"
    people = ", ".join(dict.fromkeys(sorted(item.by for item in report.trust if item.by)))
    words = f"{counted(len(report.trust), 'record')}, accepted {when}{f' by {people}' if people else ''}"
    yield _glance("golden", words, QUIET, "environments")


def _machine(report: RunReport) -> Iterator[Glance]:
    """Yield what happened to the machine while the run went on; nothing of a quiet one."""
    events = report.during_run.events if report.during_run is not None else ()
    if events:
        yield _glance("machine", "; ".join(f"{event.name}: {event.read}" for event in events), OPEN, "machine")


def _not_measured(rows: Sequence[TableRow]) -> Iterator[Glance]:
    """Yield the columns of the table that have nothing of any model, then those that have nothing of some."""
    texts = [row_cells(row, compact=True) for row in rows]
    counts = {name: [row[at] for row in texts].count(NOT_MEASURED) for at, name in enumerate(columns(rows))}
    wholly = [name for name, count in counts.items() if count and count == len(rows)]
    partly = [name for name, count in counts.items() if 0 < count < len(rows)]
    said = [", ".join(wholly)] if wholly else []
    said += [f"{', '.join(partly)} of some models"] if partly else []
    if said:
        yield _glance("not measured", "; ".join(said), QUIET, "models")


def _notes(report: RunReport) -> Iterator[Glance]:
    """Yield the first things that a reader must know, and how many more there are."""
    for note in report.notes[:NOTES_SHOWN]:
        yield _glance("note", note, QUIET, "run")
    if len(report.notes) > NOTES_SHOWN:
        yield _glance("note", f"and {len(report.notes) - NOTES_SHOWN} more", QUIET, "run")


SHOWN = 6
"""Causes, and models that are over a limit, on the first screen; the sections below have all."""
NAMED, OF_ONE_CAUSE = 3, 2
_REVISION = 10
_MOST_COSTS = 12
_NAME_LIMIT, _WORDS_LIMIT = 60, 110


@dataclass(frozen=True, kw_only=True, slots=True)
class SideView:
    """One release: how it is called, and what it says of itself."""

    role: str
    name: str
    facts: tuple[Fact, ...]


@dataclass(frozen=True, kw_only=True, slots=True)
class CountView:
    """How many models have a status."""

    word: str
    tone: str
    number: int


@dataclass(frozen=True, kw_only=True, slots=True)
class WorstView:
    """One model that is over a limit, by what most: ``factor`` in words, ``share`` of the worst one's for a bar."""

    name: str
    anchor: str
    status: str
    tone: str
    words: str
    limit: str
    factor: str
    share: float


@dataclass(frozen=True, kw_only=True, slots=True)
class NewsView:
    """A number with what it counts; ``lines`` are (text, link), ``rest`` of them have no room."""

    label: str
    tone: str
    number: int
    lines: tuple[Fact, ...]
    rest: int
    none: str


@dataclass(frozen=True, kw_only=True, slots=True)
class HeadView:
    """The first screen; ``news`` are what is undecided, what is faster, and what starts slower.

    ``guessed``: how many models were asked what nobody gave; ``but`` is what a green decision must not be read without;
    ``nothing_open``: whether nobody has to look at anything.
    """

    decision: str
    but: str
    nothing_open: bool
    tone: str
    reason: str
    exit: str
    costs: tuple[str, ...]
    question: str
    sides: tuple[SideView, SideView]
    facts: tuple[Fact, ...]
    glances: tuple[Glance, ...]
    models: int
    guessed: int
    counts: tuple[CountView, ...]
    causes: tuple[CauseView, ...]
    more_causes: int
    worst: tuple[WorstView, ...]
    more_worst: int
    news: tuple[NewsView, ...]


def head_view(
    report: RunReport, models: Sequence[ModelExcess], found: Sequence[Cause], causes: Sequence[CauseView]
) -> HeadView:
    """Return the first screen of a report; ``models`` are all, the furthest over a limit first."""
    judgement = report.judgement
    over = [item for item in models if item.over and item.over[0].factor is not None]
    costs = cost_words(report) if judgement.decision is Decision.OK_WITH_MITIGATION else ()
    facts = [
        ("both run on", common_words(report)),
        ("apart from torch", difference_words(report)),
        ("static check", static_words(report)),
        ("rollback", rollback_words(report)),
        ("took", seconds(report.wall_s)),
    ]
    return HeadView(
        decision=judgement.decision.value,
        tone=OPEN if but_words(report) else decision_tone(judgement.decision),
        but=shorten(prose(but_words(report)), 2 * _LIMIT),
        reason=prose(judgement.reason) or NO_REASON,
        exit=decision_words(report),
        costs=tuple(prose(cost) for cost in costs[:_MOST_COSTS]),
        question=prose(run_words(report)),
        sides=(_side("runs today", report.old), _side("to move to", report.new)),
        facts=tuple((label, shorten(prose(text), 600)) for label, text in facts if text),
        glances=glances(report, table_rows(report)),
        models=len(models),
        guessed=sum(bool(model.guessed) for model in report.models),
        counts=_counts(models),
        nothing_open=not (causes or over or any(item.undecided for item in models)),
        causes=tuple(causes[:SHOWN]),
        more_causes=max(0, len(causes) - SHOWN),
        worst=(worst := tuple(_worst(_of_several_causes(over, found)))),
        more_worst=len(over) - len(worst),
        news=tuple(_news(report, models)),
    )


def _of_several_causes(over: Sequence[ModelExcess], causes: Sequence[Cause]) -> Sequence[ModelExcess]:
    """Return the models that are shown: a few of each cause before more of any, for a hundred alike hide all else."""
    first = {model: cause.id for cause in reversed(causes) for model in cause.models}
    counts: Counter[str] = Counter()
    chosen: list[ModelExcess] = []
    others: list[ModelExcess] = []
    for item in over:
        cause = first.get(item.row.model, item.row.model)
        counts[cause] += 1
        (chosen if counts[cause] <= OF_ONE_CAUSE else others).append(item)
    shown = {item.row.model for item in (*chosen, *others)[:SHOWN]}
    return [item for item in over if item.row.model in shown]


def _worst(over: Sequence[ModelExcess]) -> Iterator[WorstView]:
    """Yield the models furthest over a limit; bars are logarithms, for factors span decades."""
    factors = [item.over[0].factor or 0.0 for item in over]
    longest = math.log1p(max(factors, default=0.0)) or 1.0
    for item, factor in zip(over, factors, strict=True):
        most = item.over[0]
        yield WorstView(
            name=shorten(visible(item.row.model), _NAME_LIMIT),
            anchor=anchor(item.row.model),
            status=most.standing,
            tone=BAD if most.fails else OPEN,
            words=shorten(prose(most.words), _WORDS_LIMIT),
            limit=f"limit {most.limit}" if most.limit else "",
            factor=factor_words(most.factor),
            share=100.0 if most.factor is None else 100 * math.log1p(factor) / longest,
        )


def _news(report: RunReport, models: Sequence[ModelExcess]) -> Iterator[NewsView]:
    undecided = [item for item in models if item.undecided]
    undecided.sort(key=lambda item: -_open_to(item))
    lines = [
        (_name_and(item, f"up to {percent(_open_to(item))}" if _open_to(item) else ""), item) for item in undecided
    ]
    yield _panel(
        "not decided", OPEN, [(words, f"#{anchor(item.row.model)}") for words, item in lines], "everything was decided"
    )
    timed = steady_calls(report, models)
    faster = [item for item in reversed(timed) if item.faster]
    yield _panel(
        "faster",
        GOOD,
        [
            (f"{shorten(visible(item.model), _NAME_LIMIT)} {item.ratio.words}", f"#{anchor(item.model)}")
            for item in faster
        ],
        "nothing is clearly faster" if timed else "no latency was measured",
    )
    starts = slow_starts(report)
    yield _panel(
        "start slower",
        OPEN,
        [(shorten(visible(start_words(*item)), _WORDS_LIMIT), "#initialization") for item in starts],
        "no server group starts clearly slower" if report.scenarios else "no initialization was measured",
    )


def _open_to(item: ModelExcess) -> float:
    """Return how much slower an undecided model may be, at most; 0 where nobody knows."""
    latency = item.row.facts.latency if item.row.facts is not None else None
    high = latency.shown.high if latency is not None and latency.shown is not None else 0.0
    return high if math.isfinite(high) else 0.0


def _name_and(item: ModelExcess, words: str) -> str:
    return f"{shorten(visible(item.row.model), _NAME_LIMIT)} {words}".rstrip()


def _panel(label: str, tone: str, lines: Sequence[Fact], none: str) -> NewsView:
    rest = max(0, len(lines) - NAMED)
    own = tone if lines else QUIET
    return NewsView(label=label, tone=own, number=len(lines), lines=tuple(lines[:NAMED]), rest=rest, none=none)


def row_tone(item: ModelExcess) -> str:
    """Return the tone of a model: that of its status, of one that passes with something open that of an open one."""
    return OPEN if item.row.status_word in (UNDECIDED, OVER_LIMIT) else tone(item.row.status)


def _side(role: str, side: SideReport) -> SideView:
    found = side.fingerprint
    facts = [("stands in", "golden outputs") if side.golden else ("python", "")]
    if found is None:
        facts.append(("state", "never started" if not side.golden else ""))
    else:
        facts += [
            ("torch", found.torch),
            ("revision", (found.git_revision or "unknown")[:_REVISION]),
            ("cuda", found.cuda or ""),
            ("python", found.python),
            ("gpu", found.gpu or ""),
        ]
    return SideView(role=role, name=visible(side.name), facts=tuple((a, visible(b)) for a, b in facts if b))


def _counts(models: Sequence[ModelExcess]) -> tuple[CountView, ...]:
    """Return how many models count as what, what needs somebody first."""
    tones = {item.row.status_word: row_tone(item) for item in models}
    counts = counts_of([item.row.verdict for item in models])
    return tuple(CountView(word=word, tone=tones[word], number=number) for word, number in counts.items())


def files_of(report: RunReport, directory: str) -> tuple[str, tuple[str, ...]]:
    """Return the run's folder as a reader types it, and the names of the reports beside the page."""
    names = ("report.json", "report.md", "junit.xml", "trace.json")
    return visible(run_directory(report, directory)), tuple(link(name) for name in names)
