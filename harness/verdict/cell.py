"""Judges one cell: from what happened in both environments to a status with reasons."""

from collections.abc import Sequence
from dataclasses import replace
from functools import partial

from harness.checks.hang.story import failure_finding, meaning_of
from harness.checks.outputs.findings import output_findings
from harness.checks.startup.attribution_words import change_words
from harness.checks.startup.rates import change_of
from harness.core.comparison import OutputComparison, of_requests
from harness.core.diagnosis import FailureRates
from harness.core.findings import OUTCOME_KIND, SEVERITY, Severity, status_of
from harness.core.hang import Evidence
from harness.core.outcome import Outcome, Status
from harness.core.probe import ModelResult
from harness.core.text import joined
from harness.core.verdict import CellVerdict, Finding
from harness.verdict.startup import BEFORE_TOO, STATUS_OF_CHANGE, together


def judge_alone(
    cell: str,
    *,
    old: Sequence[ModelResult],
    new: ModelResult,
    comparison: OutputComparison | None,
    old_name: str,
    new_name: str,
    exit_detail: str = "",
    evidence: str = "",
    seen: Evidence | None = None,
    rates: FailureRates | None = None,
) -> CellVerdict:
    """Return the verdict on a model alone in a process: loads, answers, answers the same.

    Each request that some run failed in is judged by itself, and those that none failed in together: what fails in the
    old release too says nothing of what else is asked. The worst of these verdicts is the model's. ``old``: the
    baseline: the same artifact in the old environment, repeated. Empty where a golden stands in; ``rates``: how often
    its failure shows in either release, which decides in place of the single runs; None where nobody asked.
    """
    failed = dict.fromkeys(request.input_set for result in (*old, new) for request in result.failed_requests)
    judge = partial(
        _judge_request,
        cell,
        old_name=old_name,
        new_name=new_name,
        exit_detail=exit_detail,
        evidence=evidence,
        seen=seen,
    )
    if not failed:
        return judge(old=old, new=new, comparison=comparison, rates=rates)
    judged = [
        judge(
            old=[result.of_request(name) for result in old],
            new=new.of_request(name),
            comparison=comparison and of_requests(comparison, name.__eq__),
            rates=rates if rates is not None and rates.input_set in ("", name) else None,
        )
        for name in failed
    ]
    others = comparison and of_requests(comparison, lambda name: name not in failed)
    if others is not None and (others.calls or others.missing_calls):
        answered = new.ended(Outcome.COMPLETED)
        judged.append(judge(old=[answered] if old else (), new=answered, comparison=others))
    worst = together(judged)
    notes = [
        verdict.note
        for verdict in judged
        if verdict.status is Status.SAME_FAIL and worst.status is not Status.SAME_FAIL
    ]
    return replace(worst, note=joined(worst.note, *notes))


def _judge_request(
    cell: str,
    *,
    old: Sequence[ModelResult],
    new: ModelResult,
    comparison: OutputComparison | None,
    old_name: str,
    new_name: str,
    exit_detail: str,
    evidence: str,
    seen: Evidence | None,
    rates: FailureRates | None = None,
) -> CellVerdict:
    """Return the verdict on one request, or on all where none failed by itself; arguments as of ``judge_alone``."""

    def verdict(status: Status, findings: Sequence[Finding], note: str = "") -> CellVerdict:
        return CellVerdict(
            cell=cell, model=new.model, scenario="alone", status=status, findings=tuple(findings), note=note
        )

    broken_before = [result for result in old if result.outcome is not Outcome.COMPLETED]
    new_finding = None
    if new.outcome is not Outcome.COMPLETED:
        new_finding = failure_finding(
            new, new_name, stage="alone", exit_detail=exit_detail, evidence=evidence, seen=seen, old=old
        )
    alike_before = bool(broken_before) and broken_before[0].fails_like(new)
    message = f"{old_name} completes it only {len(old) - len(broken_before)} of {len(old)} times"
    unstable = Finding(kind="unstable_old_release", message=message)
    if comparison is not None and rates is not None and _by_chance(rates):
        comparison = replace(comparison, missing_calls=())  # chance chose which calls the old release answered
    worse = output_findings(comparison) if comparison is not None and (alike_before or not new_finding) else ()
    if rates is not None:
        alike = [result for result in broken_before if result.outcome.value in rates.outcomes]
        before = failure_finding(alike[0], old_name, stage="alone") if alike else None
        return verdict(*_by_rates(rates, new_finding, before, worse, unstable=unstable, new_name=new_name))
    if broken_before and len(broken_before) < len(old):
        return verdict(Status.INCONCLUSIVE, [unstable] + ([new_finding] if new_finding else []))
    if broken_before and SEVERITY[OUTCOME_KIND[broken_before[0].outcome]] is not Severity.FAIL:
        before = failure_finding(broken_before[0], old_name, stage="alone")
        return verdict(Status.INCONCLUSIVE, [before] + ([new_finding] if new_finding else []))
    if broken_before and new_finding is None:
        before = failure_finding(broken_before[0], old_name, stage="alone")
        if broken_before[0].outcome is Outcome.HANG:  # the floor alone: it may only be slow there
            message = f"nothing to compare with: {before.message}; it completes in {new_name}"
            return verdict(Status.INCONCLUSIVE, [Finding(kind="not_measured", message=message)])
        if status_of(worse) is Status.FAIL:
            return verdict(Status.FAIL, worse, f"beside the call that failed before: {before.message}")
        return verdict(Status.SAME_FAIL, [], f"works now, failed before: {before.message}")
    if new_finding is not None and alike_before:
        before = failure_finding(broken_before[0], old_name, stage="alone")
        if status_of(worse) is Status.FAIL:
            return verdict(Status.FAIL, worse, "beside the call that fails in both releases")
        return verdict(
            Status.SAME_FAIL, [new_finding], joined(f"{BEFORE_TOO}: {before.message}", meaning_of(new_finding))
        )
    if new_finding is not None:
        return verdict(status_of([new_finding]), [new_finding])
    if comparison is None:
        return verdict(
            Status.INCONCLUSIVE,
            [Finding(kind="not_measured", message="there is no golden to compare with", subject="golden")],
        )
    findings = output_findings(comparison)
    return verdict(status_of(findings), findings)


def _by_chance(rates: FailureRates) -> bool:
    return any(tally.fails and tally.passes for tally in (rates.new, rates.old))


def _by_rates(
    rates: FailureRates,
    now: Finding | None,
    before: Finding | None,
    worse: Sequence[Finding],
    *,
    unstable: Finding,
    new_name: str,
) -> tuple[Status, Sequence[Finding], str]:
    """Return status, findings and note of a model that fails alone as often as ``rates`` tell.

    ``now`` and ``before``: the failure in the one run of the new release, and in one of the old one; None where it
    completed; ``unstable``: what is said of an old release that fails now and then.
    """
    status, note = STATUS_OF_CHANGE[change_of(rates)], change_words(rates)
    if status is not Status.FAIL and status_of(worse) is Status.FAIL:
        return Status.FAIL, worse, joined("where it does not fail as the old release does", note)
    if status is Status.SAME_FAIL and (others := set(rates.new.outcomes) - set(rates.old.outcomes)):
        named = " or ".join(sorted(others)).replace("_", " ")
        status, note = Status.INCONCLUSIVE, joined(f"{named} was seen in the new release only", note)
    if now is not None:
        also = f"{BEFORE_TOO}: {before.message}" if before is not None and status is Status.SAME_FAIL else ""
        return status, [now], joined(also, note, meaning_of(now) if status is Status.SAME_FAIL else "")
    if status is Status.FAIL and before is not None:
        message = f"{before.kind.replace('_', ' ')} in {new_name}, alone, now and then"
        return status, [replace(before, message=message, where="")], note
    return status, [before if before is not None and status is Status.SAME_FAIL else unstable], note
