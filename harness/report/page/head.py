"""The first screen: the decision and why, what it rests on, the pair, the counts, the red cells."""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from harness.decision.commands import is_red
from harness.domain.findings import Severity, weight
from harness.domain.outcome import Decision
from harness.domain.prediction import RollbackAnswer
from harness.domain.report import CellTrend, RunReport, SideReport
from harness.domain.text import counted, prose, visible
from harness.domain.verdict import WaiverState
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
    place,
    tone,
)
from harness.report.page.rules import is_soon, waiver_tone
from harness.report.text.table import COLUMNS, TableRow, row_cells, table_rows
from harness.report.words.phrases import NO_REASON, NOT_MEASURED, STATUS_ORDER, seconds, shorten
from harness.report.words.predictions import rollback_words, static_words
from harness.report.words.red_cells import RedCell, run_directory
from harness.report.words.summary import common_words, cost_words, decision_words, difference_words, run_words

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
    if policy is None:
        return
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
    counts = {name: [row[at] for row in texts].count(NOT_MEASURED) for at, name in enumerate(COLUMNS)}
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
