"""Judges one cell: from what happened in both environments to a status with reasons."""

from collections.abc import Sequence

from harness.correctness.judging import output_findings
from harness.domain.comparison import OutputComparison
from harness.domain.findings import OUTCOME_KIND, SEVERITY, Severity, status_of
from harness.domain.hang import Evidence
from harness.domain.outcome import Outcome, Status
from harness.domain.probe import ModelResult
from harness.domain.verdict import CellVerdict, Finding
from harness.hang.story import failure_finding


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
) -> CellVerdict:
    """Return the verdict on a model alone in a process: loads, answers, answers the same.

    Args:
        old: the baseline: the same artifact in the old environment, repeated. Empty where a golden stands in.
        new: the artifact in the new environment.
        comparison: new outputs against the golden; None where there is nothing to compare.
    """

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
    if broken_before and len(broken_before) < len(old):
        message = f"{old_name} completes it only {len(old) - len(broken_before)} of {len(old)} times"
        unstable = Finding(kind="unstable_old_release", message=message)
        return verdict(Status.INCONCLUSIVE, [unstable] + ([new_finding] if new_finding else []))
    if broken_before and SEVERITY[OUTCOME_KIND[broken_before[0].outcome]] is not Severity.FAIL:
        before = failure_finding(broken_before[0], old_name, stage="alone")
        return verdict(Status.INCONCLUSIVE, [before] + ([new_finding] if new_finding else []))
    if broken_before and new_finding is None:
        before = failure_finding(broken_before[0], old_name, stage="alone")
        if broken_before[0].outcome is Outcome.HANG:  # the floor alone: it may only be slow there
            message = f"nothing to compare with: {before.message}; it completes in {new_name}"
            return verdict(Status.INCONCLUSIVE, [Finding(kind="not_measured", message=message)])
        return verdict(Status.SAME_FAIL, [], f"works now, failed before: {before.message}")
    if broken_before and new_finding is not None and _same_failure(broken_before[0], new):
        before = failure_finding(broken_before[0], old_name, stage="alone")
        worse = output_findings(comparison) if comparison is not None else ()
        if status_of(worse) is Status.FAIL:
            return verdict(Status.FAIL, worse, "before the call that fails in both releases")
        return verdict(Status.SAME_FAIL, [new_finding], f"fails before the upgrade too: {before.message}")
    if new_finding is not None:
        return verdict(status_of([new_finding]), [new_finding])
    if comparison is None:
        return verdict(
            Status.INCONCLUSIVE, [Finding(kind="not_measured", message="there is no golden to compare with")]
        )
    findings = output_findings(comparison)
    return verdict(status_of(findings), findings)


def _same_failure(old: ModelResult, new: ModelResult) -> bool:
    """Whether both releases fail alike: the same outcome, at the same phase, input set and call."""
    return (old.outcome, old.phase, _place(old)) == (new.outcome, new.phase, _place(new))


def _place(result: ModelResult) -> tuple[str | None, int | None]:
    return (result.failure.input_set, result.failure.call) if result.failure is not None else (None, None)
