"""The first screen: the decision and why, the pair, the counts, the red cells."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from harness.domain.findings import Severity, weight
from harness.domain.outcome import Decision
from harness.domain.report import CellTrend, RunReport, SideReport
from harness.domain.text import prose, visible
from harness.report.page.glance import Glance, glances
from harness.report.page.shapes import Fact
from harness.report.page.tones import CHANGE_TONES, anchor, decision_tone, link, place, tone
from harness.report.text.table import TableRow, table_rows
from harness.report.words.phrases import NO_REASON, STATUS_ORDER, seconds, shorten
from harness.report.words.predictions import rollback_words, static_words
from harness.report.words.red_cells import RedCell, is_red, run_directory
from harness.report.words.summary import common_words, cost_words, decision_words, difference_words, run_words

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
    """One red cell in short; ``commands`` are label and command, ``place`` is where its stage is told.

    ``since`` is what it came to since the baseline, with its tone; empty without one, and where nothing has changed.
    """

    status: str
    tone: str
    model: str
    anchor: str
    stage: str
    place: str
    since: str
    since_tone: str
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
class KindView:
    """How many models have red cells with findings of a kind."""

    kind: str
    number: int


@dataclass(frozen=True, kw_only=True, slots=True)
class HeadView:
    """Everything above the table of models; ``kinds`` say what the red cells are about."""

    decision: str
    tone: str
    reason: str
    exit: str
    costs: tuple[str, ...]
    question: str
    sides: tuple[SideView, SideView]
    facts: tuple[Fact, ...]
    glances: tuple[Glance, ...]
    models: int
    counts: tuple[CountView, ...]
    kinds: tuple[KindView, ...]
    red: tuple[RedView, ...]
    red_folded: tuple[RedView, ...]
    red_left_out: int


def head_view(report: RunReport, cells: Sequence[RedCell]) -> HeadView:
    """Return the first screen of a report; ``cells`` are all that are red."""
    judgement = report.judgement
    changes = {item.cell: item.change for item in report.baseline.changes} if report.baseline is not None else {}
    red = tuple(_red(cell, changes.get(cell.cell)) for cell in cells[:RED_MOST])
    rows = table_rows(report)
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
        tone=decision_tone(judgement.decision),
        reason=prose(judgement.reason) or NO_REASON,
        exit=decision_words(report),
        costs=tuple(prose(cost) for cost in costs[:_MOST_COSTS]),
        question=prose(run_words(report)),
        sides=(_side("runs today", report.old), _side("to move to", report.new)),
        facts=tuple((label, shorten(prose(text), 600)) for label, text in facts if text),
        glances=glances(report, rows),
        models=len(rows),
        counts=_counts(rows),
        kinds=_kinds(rows),
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


def _counts(rows: Sequence[TableRow]) -> tuple[CountView, ...]:
    counts = Counter(row.status for row in rows)
    order = [None, *STATUS_ORDER]
    return tuple(
        CountView(word=status.value if status else "no verdict", tone=tone(status), number=counts[status])
        for status in order
        if counts[status]
    )


def _kinds(rows: Sequence[TableRow]) -> tuple[KindView, ...]:
    counts = Counter(kind for row in rows for kind in red_kinds(row))
    ranked = sorted(counts.items(), key=lambda item: (-item[1], item[0]))
    return tuple(KindView(kind=visible(kind), number=number) for kind, number in ranked)


def red_kinds(row: TableRow) -> tuple[str, ...]:
    """Return the kinds of findings that make cells of a model red, each once."""
    cells = [cell for cell in row.verdict.cells if is_red(cell)] if row.verdict is not None else []
    grave = (Severity.FAIL, Severity.INCONCLUSIVE)
    found = (item.kind for cell in cells for item in cell.findings if weight(cell, item.kind) in grave)
    return tuple(dict.fromkeys(found))


def _red(cell: RedCell, change: CellTrend | None) -> RedView:
    told = dict(reversed(cell.lines))  # the first of each label
    what = told.get("what") or told.get("why", "")
    more = [(label, told[label]) for label in ("culprit", "reduced", "since", "cure", "rewrite") if label in told]
    commands = [("rerun", cell.rerun), ("bisect", "" if {"culprit", "reduced"} & told.keys() else cell.bisect)]
    return RedView(
        status=cell.status.value,
        tone=tone(cell.status),
        model=visible(cell.model),
        anchor=anchor(cell.model),
        stage=visible(cell.stage),
        place=place(cell.cell),
        since=change.words if change is not None and change is not CellTrend.UNCHANGED else "",
        since_tone=CHANGE_TONES[change] if change is not None else "",
        what=shorten(prose(what), _WHAT_LIMIT),
        more=tuple((label, shorten(prose(text), _WHAT_LIMIT)) for label, text in more),
        commands=tuple((label, visible(command)) for label, command in commands if command),
    )


def files_of(report: RunReport, directory: str) -> tuple[str, tuple[str, ...]]:
    """Return the run's folder as a reader types it, and the names of the reports beside the page."""
    names = ("report.json", "report.md", "junit.xml", "trace.json")
    return visible(run_directory(report, directory)), tuple(link(name) for name in names)
