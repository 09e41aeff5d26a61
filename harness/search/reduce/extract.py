"""Makes an archive of a part of a model, and facts in which another archive stands for the model's own."""

from dataclasses import replace
from typing import TypeVar

from harness.artifacts.adopted import extracted_artifact
from harness.core.models import Artifact
from harness.core.outcome import Outcome
from harness.core.probe import ExtractOrder, ProbeResult
from harness.probing.facts import Effects, Exported
from harness.probing.requests import floor_deadline

F = TypeVar("F", bound=Exported)
# Errors of the worker that say all themselves.
SAID_PLAINLY = ("CannotExtract", "NotKept")


def extract(model: str, order: ExtractOrder, facts: Exported, effects: Effects) -> Artifact | str:
    """Return an archive of the nodes that ``order`` keeps of the model's artifact, or why none could be made."""
    artifact = facts.artifact(model)
    request = facts.requests.extract("old", artifact, order, floor_deadline(facts.plan.settings.deadlines))
    probe = effects.runner(request)
    if probe.models[0].outcome is not Outcome.COMPLETED:
        return why_not_made(probe)
    try:
        return extracted_artifact(artifact, order, probe)
    except ValueError as error:
        return str(error)


def why_not_made(probe: ProbeResult) -> str:
    (result,) = probe.models
    failure = result.failure or probe.failure
    how = failure.first_line if failure is not None else probe.exit_detail or str(result.outcome)
    return how if failure is not None and failure.type in SAID_PLAINLY else f"{result.phase_words or 'start'}: {how}"


def with_artifact(facts: F, model: str, artifact: Artifact) -> F:
    """Return the facts with ``artifact`` as the model's own; baseline and golden hold for one that answers alike."""
    export = replace(facts.exports[model], artifact=artifact)
    return replace(facts, exports={**facts.exports, model: export})
