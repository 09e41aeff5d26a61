"""Initializes each server group the way production does: all its artifacts in one process, N threads, a barrier.

(The Python worker's loads queue for the GIL, which ``torch.jit.load`` holds throughout; the report says so.)
"""

from collections.abc import Sequence
from dataclasses import replace

from harness.domain.artifact import Artifact
from harness.domain.outcome import Outcome
from harness.domain.probe import ModelResult, ProbeResult, ServingProfile
from harness.runtime import pool
from harness.stages.facts import Effects, Facts, Initialized, new_profile
from harness.stages.requests import deadline_after

MAX_ATTEMPTS = 5


def initialize_groups(facts: Facts, effects: Effects) -> Facts:
    """Return the facts with what became of every model that works alone, beside the others of its group."""
    plan = facts.plan
    if "concurrent" not in plan.scenarios:
        return facts
    effects.progress.stage(f"concurrent initialization, {plan.settings.init_threads} threads", len(plan.groups))

    def initialize(group: str) -> dict[str, Initialized]:
        members = [name for name in plan.groups[group] if works_alone(name, facts)]
        done = initialize_together(members, facts, effects, new_profile(plan)) if members else {}
        effects.progress.step(group)
        return done

    found: dict[str, Initialized] = {}
    for group in pool.each(initialize, sorted(plan.groups), jobs=plan.settings.jobs):
        found.update(group)
    return replace(facts, initialized=found)


def works_alone(name: str, facts: Facts) -> bool:
    """Whether the model loads and answers alone in the new release; else it could only hide its neighbours."""
    return name in facts.alone and facts.alone[name].models[0].outcome is Outcome.COMPLETED


def initialize_together(
    names: Sequence[str], facts: Facts, effects: Effects, profile: ServingProfile, *, repeat: int = 0
) -> dict[str, Initialized]:
    """Initialize ``names`` in one process; name who hangs or crashes, and try the others again without it."""
    attempts = _attempts(names, facts, effects, "new", profile, first_repeat=repeat * MAX_ATTEMPTS)
    found = {
        result.model: Initialized(result=result, directory=probe.directory, exit_detail=probe.exit_detail)
        for probe, results in attempts
        for result in results
    }
    failed = [name for name, item in found.items() if item.result.outcome is not Outcome.COMPLETED]
    if failed and "old" in effects.environments:
        old = {
            result.model: result
            for _, results in _attempts(names, facts, effects, "old", facts.plan.settings.profile)
            for result in results
        }
        found.update({name: replace(found[name], old=old.get(name)) for name in failed})
    return found


def directories_of_old_group(names: Sequence[str], facts: Facts, effects: Effects) -> dict[str, str]:
    """Return where the outputs of each model lie after the same concurrent initialization in the old release."""
    attempts = _attempts(names, facts, effects, "old", facts.plan.settings.profile)
    return {result.model: probe.directory for probe, results in attempts for result in results}


def _attempts(
    names: Sequence[str],
    facts: Facts,
    effects: Effects,
    side: str,
    profile: ServingProfile,
    *,
    first_repeat: int = 0,
) -> list[tuple[ProbeResult, list[ModelResult]]]:
    requests = facts.requests
    remaining = list(names)
    attempts: list[tuple[ProbeResult, list[ModelResult]]] = []
    for attempt in range(MAX_ATTEMPTS):
        probe = effects.runner(
            requests.run(
                side,
                [_artifact(name, facts) for name in remaining],
                deadline_after(
                    facts.plan.settings.deadlines,
                    [result for name in remaining for result in facts.baselines[name].results],
                    contention=len(remaining),
                ),
                profile=profile,
                threads=max(2, facts.plan.settings.init_threads),
                repeat=first_repeat + attempt,
            )
        )
        settled = [result for result in probe.models if result.outcome is not Outcome.NOT_RUN]
        attempts.append((probe, settled))
        remaining = [result.model for result in probe.models if result.outcome is Outcome.NOT_RUN]
        if not remaining or not settled:
            break
    if remaining and attempts:
        probe, settled = attempts[-1]
        settled.extend(result for result in probe.models if result.model in remaining and result not in settled)
    return attempts


def _artifact(name: str, facts: Facts) -> Artifact:
    artifact = facts.exports[name].artifact
    assert artifact is not None
    return artifact
