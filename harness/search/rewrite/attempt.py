"""One rewrite of an artifact at a time: the old release makes it, and both releases are asked about it."""

from harness.artifacts.adopted import rewrite_report, rewritten_artifact
from harness.checks.outputs.compare import compare_alone
from harness.core.diagnosis import RewriteReport
from harness.core.models import Artifact
from harness.core.outcome import Outcome, Status
from harness.core.plan import Cell
from harness.core.probe import ProbeResult, RewriteOrder
from harness.core.verdict import CellVerdict
from harness.probing.alone import patient
from harness.probing.facts import Attributed, Effects, Provisioned, profile_of
from harness.probing.requests import floor_deadline
from harness.search.reduce.extract import why_not_made, with_artifact
from harness.verdict.alone import judge_one


def ask(
    artifact: Artifact, order: RewriteOrder, facts: Provisioned, effects: Effects
) -> tuple[RewriteReport, Artifact | None, str]:
    probe = effects.runner(facts.requests.rewrite(artifact, order, floor_deadline(facts.plan.settings.deadlines)))
    (result,) = probe.models
    if result.outcome is not Outcome.COMPLETED:
        return RewriteReport(), None, why_not_made(probe)
    report = rewrite_report(probe)
    if report.refused and order.edits:
        first = report.refused[0]
        return report, None, f"{first.rule} does not fit: {first.why}"
    if not order.edits and not order.fold:
        return report, None, ""
    try:
        return report, rewritten_artifact(artifact, probe), ""
    except ValueError as error:
        return report, None, str(error)


def verdict_on(
    model: str, artifact: Artifact, side: str, facts: Attributed, effects: Effects, *, repeat: int = 0
) -> tuple[CellVerdict, ProbeResult]:
    """Return the verdict on ``artifact`` in the place of the model's own in one release, by the model's golden."""
    facts = with_artifact(facts, model, artifact)
    baseline = facts.baselines[model]
    profile, deadline = profile_of(side, facts.plan), patient(model, facts)
    probe = effects.runner(facts.requests.run(side, [artifact], deadline, profile=profile, repeat=repeat))
    verdict = judge_one(
        Cell(model, "alone").id,
        export=facts.exports[model],
        baseline=baseline,
        probe=probe,
        comparison=compare_alone(model, probe, baseline, facts),
        names=(effects.environments["old"].name, effects.environments[side].name),
        fingerprints={"old": facts.fingerprints["old"], "new": facts.fingerprints[side]},
        effects=effects,
    )
    return verdict, probe


def why_not(verdict: CellVerdict) -> str:
    if verdict.status is Status.PASS:
        return ""
    return verdict.findings[0].message if verdict.findings else verdict.note or str(verdict.status)
