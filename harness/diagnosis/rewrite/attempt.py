"""One rewrite of an artifact at a time: the old release makes it, and both releases are asked about it."""

from dataclasses import replace
from statistics import median

from harness.correctness.compare import compare_alone
from harness.decision.alone import judge_one
from harness.diagnosis.reduce.extract import why_not_made, with_artifact
from harness.diagnosis.reduce.judging import ending_words
from harness.domain.diagnosis import RewriteReport
from harness.domain.models import Artifact
from harness.domain.outcome import UNCLEAR, Outcome, Status
from harness.domain.probe import ModelRun, ProbeResult, RewriteOrder
from harness.domain.verdict import CellVerdict
from harness.models.artifacts import rewrite_report, rewritten_artifact
from harness.probing.alone import patient
from harness.probing.facts import Answered, Attributed, Effects, Provisioned, profile_of
from harness.probing.requests import floor_deadline

# Calls that come before those that are timed, with compilation over (docs/evidence.md#first-calls).
UNSTEADY = 4
TIMED_S, FEWEST, MOST = 1.0, 8, 60


def ask(
    artifact: Artifact, order: RewriteOrder, facts: Provisioned, effects: Effects
) -> tuple[RewriteReport, Artifact | None, str]:
    """Return what the old release's worker says, the rewritten artifact if it made one, and why not."""
    probe = effects.runner(facts.requests.rewrite(artifact, order, floor_deadline(facts.plan.settings.deadlines)))
    (result,) = probe.models
    if result.outcome is not Outcome.COMPLETED:
        return RewriteReport(), None, why_not_made(probe)
    said = rewrite_report(probe)
    if said.refused and order.edits:
        first = said.refused[0]
        return said, None, f"{first.rule} does not fit: {first.why}"
    if not order.edits and not order.fold:
        return said, None, ""
    try:
        return said, rewritten_artifact(artifact, probe), ""
    except ValueError as error:
        return said, None, str(error)


def verdict_on(
    model: str, artifact: Artifact, side: str, facts: Attributed, effects: Effects, *, repeat: int = 0
) -> tuple[CellVerdict, ProbeResult]:
    """Return the verdict on ``artifact`` in the place of the model's own in one release, by the model's golden."""
    facts = with_artifact(facts, model, artifact)
    baseline = facts.baselines[model]
    profile, deadline = profile_of(side, facts.plan), patient(model, facts)
    probe = effects.runner(facts.requests.run(side, [artifact], deadline, profile=profile, repeat=repeat))
    verdict = judge_one(
        facts.plan.cell(model, "alone").id,
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
    """Return what is wrong, empty where the verdict is PASS."""
    if verdict.status is Status.PASS:
        return ""
    return verdict.findings[0].message if verdict.findings else verdict.note or str(verdict.status)


def ratio_of(
    model: str, patched: Artifact, facts: Answered, effects: Effects, *, method: str
) -> tuple[float | None, str]:
    """Return new over old of the median steady call: patched, and as it was; and how the patched one ends, if ill.

    One process of each release. It makes more calls than any that judges: what shows only then is still there.
    """
    artifact = facts.artifact(model)
    named = [item.name for item in artifact.input_sets if item.method == method]
    (timed_set, *_) = [*named, *(item.name for item in artifact.input_sets), ""]
    calls = [call for result in facts.baselines[model].results for call in result.calls]
    before = [call.duration_ns for call in calls if call.input_set == timed_set]
    if not before:
        return None, ""
    count = max(FEWEST, min(MOST, int(TIMED_S * 1e9 / max(1.0, median(before))))) + UNSTEADY
    times = []
    for side, timed in (("old", artifact), ("new", patched)):
        run = ModelRun(artifact=timed, schedule=((timed_set, count),))
        request = facts.requests.run(side, [timed], patient(model, facts), profile=profile_of(side, facts.plan))
        probe = effects.runner(replace(request, runs=(run,)))
        (result,) = probe.models
        if result.outcome is not Outcome.COMPLETED:
            ill = side == "new" and result.outcome not in UNCLEAR
            return None, f"it {ending_words(probe)}, asked {count} times in a row" if ill else ""
        times.append(median(call.duration_ns for call in result.calls[UNSTEADY:]))
    return times[1] / times[0], ""
