"""A cell that a finished run has seen fail, and that is well when it is judged again: it is asked a few times more."""

from dataclasses import replace

from harness.checks.outputs.compare import compare_alone
from harness.checks.startup.initialize import initialize_groups
from harness.core.outcome import Status
from harness.probing.alone import deadline_of
from harness.probing.facts import Attributed, Effects, Judged, Started, WithWorker, new_profile
from harness.serving.scenarios import INITIALIZATIONS
from harness.verdict.cells import judge_cells

# What fails in 3 of 10 runs stays away in so many with 3 % (0.7^10).
TIMES = 10


def alone_again(model: str, facts: Attributed, effects: Effects) -> tuple[Attributed, int]:
    """Return the facts with the first further run of the model alone that is not well, and how many were well now."""
    cell = _status(model, "alone", facts)
    if cell is not Status.PASS or model not in facts.alone:
        return facts, 0
    effects.progress.stage("does it fail again?", TIMES - 1)
    declaration = next(item for item in facts.plan.models if item.name == model)
    request = facts.requests.run(
        "new", [facts.artifact(model)], deadline_of(declaration, facts), profile=new_profile(facts.plan)
    )
    for repeat in range(1, TIMES):
        probe = effects.runner(replace(request, repeat=repeat))
        comparison = compare_alone(model, probe, facts.baselines.get(model), facts)
        others = {key: item for key, item in facts.comparisons.items() if key != (model, "alone")}
        if comparison is not None:
            others[model, "alone"] = comparison
        again = replace(facts, alone={**facts.alone, model: probe}, comparisons=others)
        seen = judge_cells(again, effects, facts.attributions)
        effects.progress.step(f"{_status(model, 'alone', seen)}")
        if _status(model, "alone", seen) is Status.FAIL:
            return Attributed(**Judged.known(seen), attributions=facts.attributions), repeat
    return facts, TIMES


def initialize_until_seen(facts: WithWorker, effects: Effects) -> Started:
    """Return the facts with what became of the server group; where the first model is well, of more rounds of it."""
    first = initialize_groups(facts, effects)
    settings, model = facts.plan.settings, facts.plan.models[0].name
    failed = any(item.new.failed_rounds for (name, _), item in first.initialized.items() if name == model)
    if settings.init_rounds >= TIMES or failed:
        return first
    more = replace(facts, plan=replace(facts.plan, settings=replace(settings, init_rounds=TIMES)))
    return replace(initialize_groups(more, effects), plan=facts.plan)


def well_rounds(model: str, scenario: str, facts: Started) -> int:
    item = facts.initialized.get((model, scenario)) if scenario in INITIALIZATIONS else None
    return item.new.rounds - item.new.failed_rounds if item is not None else 0


def _status(model: str, scenario: str, facts: Judged) -> Status | None:
    return next((cell.status for cell in facts.verdicts[model] if cell.scenario == scenario), None)
