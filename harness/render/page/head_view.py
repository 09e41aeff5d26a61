"""The first screen: the decision and why, the pair, the counts, the red cells."""

from collections import Counter
from dataclasses import dataclass

from harness.domain.outcome import Decision
from harness.domain.report import RunReport, SideReport
from harness.render.foretold import rollback_words, static_words
from harness.render.page.tones import anchor, decision_tone, link, tone
from harness.render.red_cells import RedCell, red_cells, run_directory
from harness.render.summary import (
    canary_words,
    common_words,
    cost_words,
    decision_words,
    difference_words,
    run_words,
)
from harness.render.table import table_rows
from harness.render.words import STATUS_ORDER, prose, seconds, shorten, visible

Fact = tuple[str, str]

RED_OPEN, RED_MOST = 10, 200
"""Red cells that are shown at once, and behind a click; all have their lines with the model."""
_WHAT_LIMIT = 420
_REVISION = 10
_MOST_COSTS = 12


@dataclass(frozen=True, kw_only=True, slots=True)
class SideView:
    """One release: how it is called, and what it says of itself."""

    role: str
    name: str
    facts: tuple[Fact, ...]


@dataclass(frozen=True, kw_only=True, slots=True)
class RedView:
    """One red cell in short; ``commands`` are label and command."""

    status: str
    tone: str
    model: str
    anchor: str
    stage: str
    what: str
    more: tuple[Fact, ...]
    commands: tuple[Fact, ...]


@dataclass(frozen=True, kw_only=True, slots=True)
class CountView:
    """How many models have a status."""

    word: str
    tone: str
    number: int


@dataclass(frozen=True, kw_only=True, slots=True)
class HeadView:
    """Everything above the table of models."""

    decision: str
    tone: str
    reason: str
    exit: str
    costs: tuple[str, ...]
    question: str
    sides: tuple[SideView, SideView]
    facts: tuple[Fact, ...]
    models: int
    counts: tuple[CountView, ...]
    red: tuple[RedView, ...]
    red_folded: tuple[RedView, ...]
    red_left_out: int


def head_view(report: RunReport, directory: str) -> HeadView:
    """Return the first screen of a report."""
    judgement = report.judgement
    cells = red_cells(report, directory=directory)
    red = tuple(_red(cell) for cell in cells[:RED_MOST])
    costs = cost_words(report) if judgement.decision is Decision.OK_WITH_MITIGATION else ()
    facts = [
        ("both run on", common_words(report)),
        ("apart from torch", difference_words(report)),
        ("canaries", canary_words(report)),
        ("static check", static_words(report)),
        ("way back", rollback_words(report)),
        ("took", seconds(report.wall_s)),
    ]
    return HeadView(
        decision=judgement.decision.value,
        tone=decision_tone(judgement.decision),
        reason=prose(judgement.reason) or "no reason was recorded",
        exit=decision_words(report),
        costs=tuple(prose(cost) for cost in costs[:_MOST_COSTS]),
        question=prose(run_words(report)),
        sides=(_side("runs today", report.old), _side("to move to", report.new)),
        facts=tuple((label, shorten(prose(text), 600)) for label, text in facts if text),
        models=len(table_rows(report)),
        counts=_counts(report),
        red=red[:RED_OPEN],
        red_folded=red[RED_OPEN:],
        red_left_out=max(0, len(cells) - RED_MOST),
    )


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


def _counts(report: RunReport) -> tuple[CountView, ...]:
    rows = table_rows(report)
    counts = Counter(row.status for row in rows)
    order = [None, *STATUS_ORDER]
    return tuple(
        CountView(word=status.value if status else "no verdict", tone=tone(status), number=counts[status])
        for status in order
        if counts[status]
    )


def _red(cell: RedCell) -> RedView:
    told = dict(reversed(cell.lines))  # the first of each label
    what = told.get("what") or told.get("why", "")
    more = [(label, told[label]) for label in ("culprit", "reduced", "since", "cure", "rewrite") if label in told]
    commands = [("rerun", cell.rerun)]
    return RedView(
        status=cell.status.value,
        tone=tone(cell.status),
        model=visible(cell.model),
        anchor=anchor(cell.model),
        stage=visible(cell.stage),
        what=shorten(prose(what), _WHAT_LIMIT),
        more=tuple((label, shorten(prose(text), _WHAT_LIMIT)) for label, text in more),
        commands=tuple((label, visible(command)) for label, command in commands if command),
    )


def files_of(report: RunReport, directory: str) -> tuple[str, tuple[str, ...]]:
    """Return the run's folder as a reader types it, and the names of the reports beside the page."""
    names = ("report.json", "report.md", "junit.xml", "trace.json")
    return visible(run_directory(report, directory)), tuple(link(name) for name in names)
