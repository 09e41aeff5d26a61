"""Probes every artifact alone in a process of the new release: load, first call, warm-up, other inputs."""

from dataclasses import replace
from typing import TypeVar

from harness.core.models import ModelDeclaration
from harness.core.outcome import Outcome
from harness.core.probe import Deadline, ProbeResult, ServingProfile
from harness.machine import pool
from harness.probing.facts import Answered, Effects, Probed, Provisioned, new_profile
from harness.probing.requests import deadline_after, impatient

PLANTED_DEFECT_TOTAL_S = 60.0

Facts = TypeVar("Facts", bound=Provisioned)


def probe_alone(facts: Answered, effects: Effects) -> Probed:
    plan = facts.plan
    models = [model for model in plan.models if facts.exports[model.name].artifact is not None]
    effects.progress.stage(f"load and call in {effects.environments['new'].name}", len(models))

    def probe(model: ModelDeclaration) -> tuple[str, ProbeResult]:
        result = probe_model(model, facts, effects, new_profile(plan))
        if result.models[0].failed and not any(old.failed for old in facts.baselines[model.name].results):
            effects.progress.red([model.name])
        effects.progress.step(f"{model.name}: {result.models[0].outcome.value}")
        return model.name, result

    with effects.runner.sharing():
        alone = dict(pool.each(probe, models, jobs=plan.settings.jobs))
    return Probed(**Answered.known(facts), alone=alone)


def probe_model(model: ModelDeclaration, facts: Answered, effects: Effects, profile: ServingProfile) -> ProbeResult:
    artifact = facts.artifact(model.name)
    request = facts.requests.run("new", [artifact], deadline_of(model, facts), profile=profile)
    return effects.runner(request, lasting="planted" not in model.tags)


def deadline_of(model: ModelDeclaration, facts: Answered) -> Deadline:
    """Return how long a phase of ``model`` may last in the new release."""
    if model.planted_defect is not None and model.planted_defect.deadline_s is not None:
        limit = model.planted_defect.deadline_s
        # It hangs for good, and its own deadline ends it. The total is for a machine too busy to tell that.
        return Deadline(load_s=limit, call_s=limit, total_s=max(4 * limit, PLANTED_DEFECT_TOTAL_S))
    baseline, deadlines = facts.baselines.get(model.name), facts.plan.settings.deadlines
    old = baseline.results if baseline else ()
    if any(result.outcome is Outcome.HANG for result in old):  # nobody waits as long again to see the same
        deadlines = impatient(deadlines)
    return deadline_after(deadlines, old)


def impatiently(facts: Facts) -> Facts:
    settings = facts.plan.settings
    settings = replace(settings, deadlines=impatient(settings.deadlines))
    return replace(facts, plan=replace(facts.plan, settings=settings))


def patient(model: str, facts: Answered) -> Deadline:
    """Return how long a model is waited for that a search asks again and again, changed or under other settings."""
    return deadline_after(impatient(facts.plan.settings.deadlines), facts.baselines[model].results)
