"""The words of a fleet: what a wave waits for, whose it is, what a plan will do."""

from collections import Counter
from collections.abc import Mapping, Sequence

from harness.core.fleet import (
    Examination,
    FleetChange,
    FleetOutline,
    FleetPlan,
    FleetReport,
    FleetRow,
    FleetSince,
    Unjudged,
    Wave,
    WaveKind,
)
from harness.core.outcome import Status
from harness.core.prediction import Prediction
from harness.core.report import CellTrend
from harness.core.text import counted, first_few, joined
from harness.report.words.summary import but_of

OWNERS_NAMED, CAUSES_NAMED, REASONS_NAMED = 3, 3, 3
KIND_WORDS = {
    WaveKind.READY: "ready now",
    WaveKind.SWITCH: "ready with a switch",
    WaveKind.BLOCKED: "blocked",
    WaveKind.UNKNOWN: "unknown",
}
TREND_HEADS = ("upgrade", "decision", *KIND_WORDS.values())


def owners_words(owners: Mapping[str, int], most: int = OWNERS_NAMED) -> str:
    """Return whose artifacts these are and how many: ``"ads 5, search 2 and 3 more"``."""
    return first_few([f"{owner} {count}" for owner, count in owners.items()], most)


def wave_words(wave: Wave) -> str:
    """Return what a wave is, in words."""
    if wave.kind is WaveKind.READY:
        return f"ready now, tier {wave.needs}" if wave.needs else "ready now"
    if wave.kind is WaveKind.SWITCH:
        where = f" (profile {wave.profile})" if wave.profile else ""
        return f"ready with {wave.needs}{where}: {wave.cost}"
    return f"blocked by {wave.needs}" if wave.kind is WaveKind.BLOCKED else f"unknown: {wave.needs}"


def numbered(report: FleetReport) -> list[tuple[str, Wave]]:
    """Return the waves with their numbers; what cannot move has none."""
    movable, made = 0, []
    for wave in report.waves:
        moves = wave.kind in (WaveKind.READY, WaveKind.SWITCH)
        movable += moves
        made.append((str(movable) if moves else "-", wave))
    return made


def since_facts(found: FleetSince) -> list[tuple[str, str]]:
    """Return (label, text) of what has changed since an earlier answer."""
    counts = [(change, found.counts.get(change.value, 0)) for change in CellTrend]
    said = [
        f"{count} {change.words}" for change, count in counts if count or change in (CellTrend.NEW, CellTrend.FIXED)
    ]
    facts = [("since", f"{', '.join(said)}; then {found.decision.value}, {found.old} -> {found.new}")]
    for label, titles in (("new cause", found.new_causes), ("ended", found.ended_causes)):
        if titles:
            facts.append((label, first_few(titles, CAUSES_NAMED)))
    return facts


def change_words(change: FleetChange) -> str:
    """Return what became of an artifact: ``new: PASS -> FAIL``."""
    words = f"{change.change.words}: "
    if change.change not in (CellTrend.ADDED, CellTrend.GONE):
        words += f"{_status_words(change.was)} -> {_status_words(change.now)}"
    else:
        words += _status_words(change.now if change.change is CellTrend.ADDED else change.was)
    return joined(words, change.why)


def _status_words(status: Status | None) -> str:
    return status.value if status is not None else "no result"


def trend_row(outline: FleetOutline) -> tuple[str, ...]:
    """Return the texts of an answer among others, as ``TREND_HEADS`` has it."""
    counts = (str(outline.waves.get(kind.value, 0)) for kind in KIND_WORDS)
    return (f"{outline.old} -> {outline.new}", outline.decision.value, *counts)


def answer_words(report: FleetReport) -> str:
    """Return the decision, and what a green one must not be read without."""
    but = but_of(report)
    return f"{report.decision.value}, {but}" if but else report.decision.value


def urgency(report: FleetReport) -> dict[str, int]:
    """Return artifact -> place among those that need somebody: what is blocked first, then what nobody knows."""
    kinds = (WaveKind.BLOCKED, WaveKind.UNKNOWN, WaveKind.SWITCH, WaveKind.READY)
    waves = sorted(report.waves, key=lambda wave: kinds.index(wave.kind))
    return {name: at for at, wave in enumerate(waves) for name in wave.artifacts}


def store_words(report: FleetReport) -> str:
    """Return what the answer is about."""
    total, known = len(report.rows), sum(row.status is not None for row in report.rows)
    guessed = sum(bool(row.guessed) for row in report.rows)
    words = f"{known} of {counted(total, 'artifact')} have a result"
    words += f", {guessed} of them to guessed requests" if guessed else ""
    counts = ", ".join(f"{count} {word}" for word, count in report.counts.items())
    return joined(words, counts, unjudged_words(report.unjudged))


def row_words(row: FleetRow) -> str:
    """Return why a row is what it is, and what was asked where nobody gave requests."""
    return joined(row.reason, f"its requests are guesses: {row.guessed}" if row.guessed else "")


def unjudged_words(unjudged: Sequence[Unjudged], most: int = REASONS_NAMED) -> str:
    """Return how much of a store no verdict speaks of, and why, most first; empty where nothing is so."""
    if not unjudged:
        return ""
    reasons = [f"{count} {reason}" for reason, count in Counter(item.reason for item in unjudged).most_common()]
    return f"not judged: {counted(len(unjudged), 'other file')} ({first_few(reasons, most, '; ')})"


def plan_facts(plan: FleetPlan) -> list[tuple[str, str]]:
    """Return (label, text) of what a plan says in numbers."""
    usable = [item for item in plan.artifacts if not item.left_out]
    programs = len({item.program for item in usable})
    same = len(usable) - len({item.key for item in usable})
    predicted = Counter(item.predictions.get("new", Prediction.UNKNOWN) for item in usable)
    full = sum(unit.examination is Examination.FULL for unit in plan.units)
    known = sum(unit.known for unit in plan.units)
    left = len(plan.artifacts) - len(usable)
    return [
        (
            "artifacts",
            joined(
                f"{len(usable)} to judge, {counted(programs, 'program')}, {same} are copies of others",
                f"{left} left out" if left else "",
            ),
        ),
        (
            "reading",
            "torch of the new release: "
            + ", ".join(f"{predicted[item]} {item.value}" for item in Prediction if predicted[item]),
        ),
        (
            "to run",
            f"{len(plan.units)} units: {full} in full, once per program; {len(plan.units) - full} loaded and compared",
        ),
        ("known", f"{known} of {len(plan.units)} have a result already"),
        *([("beside", unjudged_words(plan.unjudged))] if plan.unjudged else []),
    ]
