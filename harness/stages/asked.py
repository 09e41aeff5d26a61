"""What was asked of one model, as a digest: where two runs have the same one, only chance can make other answers."""

from harness.domain.fixture import ModelDeclaration
from harness.runtime import codec
from harness.runtime.probe_runner import worker_digest
from harness.stages.facts import Facts, new_profile

DIGITS = 16


def asked_digest(model: ModelDeclaration, facts: Facts) -> str:
    """Return 16 hexadecimal digits over artifact, inputs and the settings that verdicts depend on.

    Empty without an artifact. Environments are not in it: the report has their fingerprints.
    """
    artifact = facts.exports[model.name].artifact
    if artifact is None:
        return ""
    plan, settings = facts.plan, facts.plan.settings
    return codec.digest(
        [
            artifact.digest,
            artifact.inputs_digest or model.source_digest,
            artifact.schedule,
            model.seed,
            model.tolerance,
            model.unordered,
            [settings.profile, new_profile(plan)],
            [settings.calls, settings.repeats, settings.noise_threads, settings.init_threads, settings.runtime],
            [settings.deadlines, settings.limits, settings.latency, settings.policy],
            settings.computes_in.get(model.name, ""),
            [facts.worker, worker_digest()],
        ]
    )[:DIGITS]
