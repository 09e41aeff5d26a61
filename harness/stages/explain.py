"""Explains red cells within a time: the operator, its line, the switch and the rewrite of each, the gravest first."""

from dataclasses import replace

from harness.domain.explained import Explained
from harness.domain.verdict import CellVerdict
from harness.policy.explaining import by_bisection, worth_explaining
from harness.policy.mitigations import JIT_SWITCHES, TRIED_BY_DEFAULT
from harness.runtime import clock, codec
from harness.runtime.explained_store import keep, kept, place_of
from harness.runtime.run_dir import RunDir
from harness.stages.bisect import bisect
from harness.stages.facts import Effects, Facts
from harness.stages.mitigate import try_further

# Of these models it is known that something is wrong: a hang is met again and again, and need not be waited out as long
# as by a run that looks for one.
FLOOR_S = 10.0
FULL = "bisect.json"
# Tried on what the switches that every run tries do not cure; they count for the decision like those.
FURTHER = tuple(setting.name for setting in JIT_SWITCHES if setting.name not in TRIED_BY_DEFAULT)


def explain(facts: Facts, effects: Effects) -> Facts:
    """Return the facts with red cells explained, as many as the plan has time for; nothing without such a time.

    One at least is explained, whatever it takes; no further one is begun after the time is over. What an interrupted
    run has explained already is not searched for again.
    """
    budget_s = facts.plan.settings.explain
    cells = worth_explaining(facts.verdicts) if budget_s > 0 and "old" in effects.environments else ()
    if not cells:
        return facts
    effects.progress.stage("explain red cells", len(cells))
    known = {item.cell: item for item in kept(effects.run_dir.path) if item.by == "bisect"}
    found: list[Explained] = []
    left_out: list[str] = []
    begin_ns = clock.monotonic_ns()
    searched = False
    for cell in cells:
        if cell.cell not in known and searched and _seconds_since(begin_ns) >= budget_s:
            left_out.append(cell.model)
            continue
        found.append(known.get(cell.cell) or _explained(cell, facts, effects))
        searched = searched or cell.cell not in known
        if not any(item.cures for item in facts.mitigations.get(cell.model, ())):
            further = try_further(cell.model, FURTHER, _impatient(facts), effects)
            facts = replace(facts, mitigations=further.mitigations)
    return replace(facts, explained=tuple(found), unexplained=tuple(left_out))


def _explained(cell: CellVerdict, facts: Facts, effects: Effects) -> Explained:
    """Return what a search finds about one cell; it is kept in the run, with everything that was found."""
    begin_ns = clock.monotonic_ns()
    place = place_of(cell.cell)
    own = RunDir(effects.folder(place))  # its files: several models in one run must not share names
    asked = replace(effects, run_dir=own)
    found = bisect(cell.model, _impatient(facts), asked, reproduce=False, cures=False)
    own.write(FULL, codec.pretty(found))
    told = by_bisection(cell.cell, found, folder=place, seconds=_seconds_since(begin_ns))
    keep(effects.run_dir.path, told)
    return told


def _impatient(facts: Facts) -> Facts:
    settings = facts.plan.settings
    deadlines = replace(settings.deadlines, floor_s=min(FLOOR_S, settings.deadlines.floor_s))
    return replace(facts, plan=replace(facts.plan, settings=replace(settings, deadlines=deadlines)))


def _seconds_since(begin_ns: int) -> float:
    return (clock.monotonic_ns() - begin_ns) * 1e-9


def unexplained_notes(facts: Facts) -> tuple[str, ...]:
    """Return which red cells there was no time to explain."""
    if not facts.unexplained:
        return ()
    more = 2 * facts.plan.settings.explain
    told = f"not explained within {facts.plan.settings.explain:g} s: {', '.join(facts.unexplained)}"
    return (f"{told}; --explain {more:g} gives more time, and the bisect command of a cell explains it by itself",)
