"""What a decision rests on, for the first screen: a tone, a few words, and where the rest stands."""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from harness.domain.prediction import RollbackAnswer
from harness.domain.report import CellTrend, RunReport
from harness.domain.text import counted, prose
from harness.domain.verdict import WaiverState
from harness.report.page.tones import BAD, CHANGE_TONES, GOOD, OPEN, QUIET
from harness.report.page.waivers import is_soon, waiver_tone
from harness.report.text.table import COLUMNS, TableRow, row_cells
from harness.report.words.phrases import NOT_MEASURED, shorten

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
