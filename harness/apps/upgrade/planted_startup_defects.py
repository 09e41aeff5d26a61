"""Probes the planted defects of initialization, in the very worker that the run initializes with.

A worker whose failures nobody sees, or whose deadlocks nobody proves, would let every initialization come out green.
A defect and its healthy twin share a process.
"""

from collections.abc import Callable, Sequence
from dataclasses import replace

from harness.apps.upgrade.planted_defects import judge_initialized_planted_defect, judge_twin, not_exported, note_missed
from harness.checks.outputs.compare import worst_comparison
from harness.checks.outputs.findings import differs
from harness.checks.startup.initialize import scenario_result
from harness.checks.startup.launch import Launcher
from harness.core.models import ModelDeclaration, PlantedDefectMark
from harness.core.outcome import Outcome, Status
from harness.core.plan import Cell
from harness.core.probe import Script, model_of
from harness.core.verdict import CellVerdict, PlantedDefectResult
from harness.machine import pool
from harness.probing.facts import Effects, GroupRun, Initialized, ScenarioResult, Started, WithWorker
from harness.probing.requests import with_own_loading
from harness.serving.scenarios import INITIALIZATIONS, Scenario
from harness.verdict.cells import judge_initialized

# Whatever the run has: so many callers ask a shared module clearly more often than one does.
THREADS = 4
READY = "the twin is ready"


def probe_init_planted_defects(facts: WithWorker, effects: Effects) -> tuple[PlantedDefectResult, ...]:
    """Return a ``PlantedDefectResult`` for each planted defect of initialization and each twin.

    None is planted where the plan initializes nothing, nor those that only the C++ worker can show in a run without.
    """
    planted = [
        (item, item.planted_defect)
        for item in facts.plan.planted_defects
        if item.planted_defect and _is_planted(item.planted_defect, facts)
    ]
    found = pool.each(lambda pair: _probe(*pair, facts, effects), planted, jobs=len(planted))
    results = [result for pair in found for result in pair]
    note_missed(results, effects)
    return tuple(results)


def beside_init_planted_defects(
    initialize: Callable[[WithWorker, Effects], Started], facts: WithWorker, effects: Effects
) -> tuple[Started, tuple[PlantedDefectResult, ...]]:
    """Return what ``initialize`` does, and the planted defects probed beside it: a deadlock costs next to no CPU."""
    return pool.both(lambda: initialize(facts, effects), lambda: probe_init_planted_defects(facts, effects))


def _is_planted(mark: PlantedDefectMark, facts: WithWorker) -> bool:
    if mark.scenario not in INITIALIZATIONS or not any(name in INITIALIZATIONS for name in facts.plan.scenarios):
        return False
    scenario = INITIALIZATIONS[mark.scenario]
    return facts.can_do(native_only=scenario.native_only)


def _probe(
    declaration: ModelDeclaration, mark: PlantedDefectMark, facts: WithWorker, effects: Effects
) -> tuple[PlantedDefectResult, PlantedDefectResult]:
    """Return what became of a planted defect, and of the twin that was brought up in the same process."""
    twin = next(item for item in facts.plan.planted_defects if item.name == mark.twin)
    members, judged = (twin.name, declaration.name), _as_twin(declaration, mark, facts)
    proven = None
    broken = (not_exported(name, mark.twin, mark.scenario, facts) for name in members)
    healthy = defect = next((cell for cell in broken if cell is not None), None)
    if healthy is None or defect is None:
        run = _bring_up(mark, members, judged, effects)
        came = [scenario_result(run, name) for name in members]
        healthy, defect = (_verdict(one, mark, judged, effects) for one in came)
        evidence = came[1].evidence
        proven = evidence.proof.kind if evidence is not None and evidence.proof is not None else None
    beside = replace(judge_twin(twin, healthy), name=f"{twin.name} beside {declaration.name}")
    return judge_initialized_planted_defect(declaration, defect, proven), beside


def _as_twin(declaration: ModelDeclaration, mark: PlantedDefectMark, facts: WithWorker) -> WithWorker:
    """Return facts in which the defect has its twin's golden, and a deadline of its own."""
    settings = facts.plan.settings
    floor_s = mark.deadline_s or settings.deadlines.floor_s
    deadlines = replace(settings.deadlines, floor_s=floor_s)
    plan = replace(facts.plan, settings=replace(settings, init_threads=THREADS, deadlines=deadlines))
    golden = {declaration.name: facts.baselines[mark.twin]} if mark.twin in facts.baselines else {}
    return replace(facts, plan=plan, baselines={**facts.baselines, **golden})


def _bring_up(mark: PlantedDefectMark, members: Sequence[str], judged: WithWorker, effects: Effects) -> GroupRun:
    named = INITIALIZATIONS[mark.scenario]
    scenario = named
    if mark.expect == Outcome.HANG and not named.forks:
        scenario = replace(named, write=lambda models, _: _one_after_the_other(named, models))
    profile = with_own_loading(judged.plan.settings.profile)
    profile = replace(profile, switches={**profile.switches, **mark.switches})
    launcher = Launcher(scenario=scenario, side="new", profile=profile, facts=judged, effects=effects)
    probes = launcher.round(members, 0)
    return GroupRun(
        scenario=mark.scenario, group="planted_defects", side="new", members=tuple(members), rounds=(probes,)
    )


def _one_after_the_other(scenario: Scenario, models: Sequence[str]) -> Script:
    """Return a script of a thread per model that begins when the one before is ready: the last may block the rest."""
    first, *others = ((("load", name), ("calls", name)) for name in models)
    met = ("barrier", READY)
    threads = ((*first, met), *((met, *steps) for steps in others))
    return replace(scenario.write(models, len(models)), threads=threads, barriers={READY: len(threads)})


def _verdict(came: ScenarioResult, mark: PlantedDefectMark, judged: WithWorker, effects: Effects) -> CellVerdict:
    """Return the verdict that a model of the run gets, were it healthy alone and unknown to the old release."""
    name = model_of(came.result.model)
    alone = CellVerdict(cell=Cell(name, "alone").id, model=name, scenario="alone", status=Status.PASS, findings=())
    return judge_initialized(
        mark.scenario,
        alone,
        Initialized(new=came),
        comparison=worst_comparison(name, mark.scenario, came.answers, None, judged, differs=differs),
        facts=judged,
        effects=effects,
    )
