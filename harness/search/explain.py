"""Explains red cells within a given time, the gravest first: the operator, its line, the switch and the rewrite."""

from dataclasses import replace
from pathlib import Path

from harness.core.models import ArtifactKind
from harness.core.report import Explained
from harness.core.verdict import CellVerdict
from harness.machine import clock
from harness.probing.alone import impatiently
from harness.probing.facts import Diagnosed, Effects, Mitigated
from harness.search.bisect.cell import bisect
from harness.search.explained_cells import by_bisection, worth_explaining
from harness.search.mitigation.mitigate import try_further
from harness.serving.settings.mitigations import JIT_SWITCHES, TRIED_BY_DEFAULT
from harness.store import codec
from harness.store.explanations import explanations_in, keep, key, place_of
from harness.store.results import WhyNot
from harness.store.run_folder import RunDir

FULL = "bisect.json"
# A search that has begun gets as much, though the time of all is over then: one cut in half says nothing.
LEAST_S = 30.0
# Tried on what the switches that every run tries do not mitigate; they count for the decision like those.
FURTHER = tuple(setting.name for setting in JIT_SWITCHES if setting.name not in TRIED_BY_DEFAULT)


def explain(facts: Mitigated, effects: Effects) -> Diagnosed:
    """Return the facts with red cells explained, as many as the plan has time for; nothing without such a time.

    One at least is explained, unless the budget of the whole run has no ``LEAST_S`` left; no further one is begun after
    the time is over, and one that has begun asks nothing further then, once it had ``LEAST_S``. What an interrupted run
    has explained already is not searched for again.
    """
    budget_s = facts.plan.settings.explain
    asked = budget_s > 0 and "old" in effects.environments
    kinds = {model.name: model.kind for model in facts.plan.models}
    verdicts = {name: cells for name, cells in facts.verdicts.items() if kinds[name] is ArtifactKind.TORCHSCRIPT}
    cells = worth_explaining(verdicts) if asked else ()
    if not cells:
        return Diagnosed(**Mitigated.known(facts), explained=(), unexplained=())
    results = explanations_in(effects.run_dir.path)
    stored = {cell.cell: results.reusable(key(cell.cell, "bisect")) for cell in cells}
    known = {cell: item for cell, item in stored.items() if not isinstance(item, WhyNot)}
    explained: list[Explained] = []
    left_out: list[str] = []
    over_budget: list[str] = []
    begin_ns, all_end_ns = clock.monotonic_ns(), effects.end_within(budget_s)
    searched = False
    for cell in cells:
        if cell.cell not in known and effects.left_s < LEAST_S:
            over_budget.append(cell.model)
            continue
        if cell.cell not in known and searched and _seconds_since(begin_ns) >= budget_s:
            left_out.append(cell.model)
            continue
        effects.progress.stage(f"explain red cells: {cell.model}")
        timed = replace(effects, end_ns=max(all_end_ns, clock.monotonic_ns() + int(LEAST_S * 1e9)))
        explained.append(known.get(cell.cell) or _explained(cell, facts, timed))
        searched = searched or cell.cell not in known
        if not any(item.mitigates for item in facts.mitigations.get(cell.model, ())):
            further = try_further(cell.model, FURTHER, facts, timed)
            facts = replace(facts, mitigations=further.mitigations)
    return Diagnosed(
        **Mitigated.known(facts),
        explained=tuple(explained),
        unexplained=tuple(left_out),
        over_budget=tuple(over_budget),
    )


def _explained(cell: CellVerdict, facts: Mitigated, effects: Effects) -> Explained:
    begin_ns = clock.monotonic_ns()
    place = place_of(cell.cell)
    own = RunDir(effects.folder(place))  # its files: several models in one run must not share names
    own_effects = replace(effects, run_dir=own)
    bisection = bisect(
        cell.model, impatiently(facts), own_effects, reproduce=False, mitigations=False, scenario=cell.scenario
    )
    own.write(FULL, codec.pretty(bisection))
    explained = by_bisection(cell.cell, bisection, folder=place, seconds=_seconds_since(begin_ns))
    explained = replace(explained, paths=tuple(effects.shown(Path(path)) for path in explained.paths))
    keep(effects.run_dir.path, explained)
    return explained


def _seconds_since(begin_ns: int) -> float:
    return (clock.monotonic_ns() - begin_ns) * 1e-9


def unexplained_notes(facts: Diagnosed) -> tuple[str, ...]:
    if not facts.unexplained:
        return ()
    more = 2 * facts.plan.settings.explain
    models = f"not explained within {facts.plan.settings.explain:g} s: {', '.join(facts.unexplained)}"
    return (f"{models}; --explain {more:g} gives more time, and the bisect command of a cell explains it by itself",)
