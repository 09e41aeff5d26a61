"""Opinions on one cell: from what happened in both environments to a status with reasons."""

import re
from collections.abc import Sequence

from harness.domain.comparison import OutputComparison
from harness.domain.hang import Evidence, HangKind
from harness.domain.outcome import Outcome, Status
from harness.domain.probe import Failure, ModelResult
from harness.domain.verdict import CellVerdict, Finding
from harness.policy.findings import OUTCOME_KIND, SEVERITY, Severity
from harness.policy.hangs import hang_story
from harness.policy.numbers import output_findings
from harness.policy.words import joined

# Which status a cell gets from its heaviest finding.
STATUS_OF = {
    Severity.FAIL: Status.FAIL,
    Severity.INCONCLUSIVE: Status.INCONCLUSIVE,
    Severity.WARN: Status.PASS,
    Severity.INFO: Status.PASS,
}


# In these phases the operator is the whole answer: it is what cannot be captured.
AT_AN_OPERATOR = ("capture", "replay")


def cell_reason(cell: CellVerdict) -> str:
    """Return why a cell is what it is: its first finding and its note."""
    return joined(cell.findings[0].message if cell.findings else "", cell.note)


def status_of(findings: Sequence[Finding]) -> Status:
    """Return FAIL if any finding is one, else INCONCLUSIVE if any, else PASS."""
    statuses = {STATUS_OF[SEVERITY[finding.kind]] for finding in findings}
    for status in (Status.FAIL, Status.INCONCLUSIVE):
        if status in statuses:
            return status
    return Status.PASS


def failure_finding(
    result: ModelResult,
    release: str,
    *,
    stage: str,
    exit_detail: str = "",
    evidence: str = "",
    seen: Evidence | None = None,
) -> Finding:
    """Return the finding for a model that did not complete, in words a reader can act on.

    Args:
        release: name of the environment it happened in.
        stage: ``"alone"`` or ``"in concurrent init"``.
        evidence: path in the run's folder; ``seen``: what was found in the process before it was ended.
    """
    kind = OUTCOME_KIND[result.outcome]
    proof = seen.proof if seen is not None else None
    phase = result.phase or "start"
    why = ""
    if result.outcome is Outcome.HANG:
        how = "" if proof is None or proof.kind is HangKind.OVERDUE else f" ({proof.kind.value})"
        what = f"hangs in {phase}{how}"
    elif result.outcome is Outcome.CRASH:
        what = f"crashes the process in {phase} ({exit_detail or 'killed'})"
    elif result.outcome is Outcome.NOT_RUN:
        what = "was not reached"
    elif result.failure is not None:
        what = _verb(result.failure)
        why = f": {result.failure.type}: {telling_line(result.failure)}"
        operator = marked_expression(result.failure)
        if operator and result.failure.phase in AT_AN_OPERATOR:
            why = f" at `{operator}`{why}"
    else:
        what = f"{result.outcome.value.replace('_', ' ')} in {phase} {exit_detail}".rstrip()
    return Finding(
        kind=kind,
        message=f"{what} in {release}, {stage}{why}",
        where=phase,
        evidence=evidence,
        story=hang_story(seen) if seen is not None and SEVERITY[kind] is Severity.FAIL else (),
    )


def _verb(failure: Failure) -> str:
    if failure.phase == "load":
        return "does not load"
    if failure.call is not None:
        return f"raises at call {failure.call} of {failure.input_set}"
    return f"raises in {failure.phase}"


MARKED = re.compile(r"^(?P<line>.*)\n(?P<mark>\s*~+)( <--- HERE)", re.MULTILINE)


def marked_expression(failure: Failure) -> str:
    """Return the expression that TorchScript marks with ``~~~ <--- HERE``, the innermost one; empty without a mark."""
    found = list(MARKED.finditer(failure.message))
    if not found:
        return ""
    mark = found[-1]["mark"]
    begin, end = len(mark) - len(mark.lstrip()), len(mark)
    return found[-1]["line"][begin:end].strip()


def telling_line(failure: Failure) -> str:
    """Return the line of a TorchScript error that says what is wrong, not the frame it was wrapped in."""
    lines = [line.strip() for line in failure.message.splitlines() if line.strip()]
    for index, line in reversed(list(enumerate(lines))):
        if line.startswith(("RuntimeError:", "torch.jit.Error:", "AssertionError:", "Exception:", "builtins.")):
            return _whole(line.partition(":")[2].strip() or line, lines[index + 1 :])
    return _whole(lines[0], lines[1:]) if lines else failure.type


def _whole(line: str, rest: Sequence[str]) -> str:
    """Return a line with the one behind it where it only announces that: ``aten::f(...) -> Tensor:``."""
    more = rest[0] if line.endswith(":") and rest and not rest[0].startswith("File ") else ""
    return f"{line} {more}".rstrip()


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
            new, new_name, stage="alone", exit_detail=exit_detail, evidence=evidence, seen=seen
        )
    if broken_before and len(broken_before) < len(old):
        message = f"{old_name} completes it only {len(old) - len(broken_before)} of {len(old)} times"
        unstable = Finding(kind="unstable_baseline", message=message)
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
