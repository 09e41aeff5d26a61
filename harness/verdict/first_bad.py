"""From the verdict on one release to good, bad or untestable; from a whole search to an exit code."""

from collections.abc import Collection, Sequence

from harness.core.diagnosis import Answer, SearchAnswer
from harness.core.findings import SEVERITY, Severity
from harness.core.outcome import UNCLEAR, Outcome, Status
from harness.core.probe import ModelResult
from harness.core.releases import FirstBad, ReleaseAnswer
from harness.core.text import joined
from harness.core.verdict import CellVerdict, Finding

# Kinds whose words name the cause; numbers differ from release to release anyway.
ERRORS = frozenset({"load_error", "call_error"})


def failing_kinds(findings: Sequence[Finding]) -> tuple[str, ...]:
    """Return the kinds of the findings that make a cell red, in order, each once."""
    return tuple(dict.fromkeys(finding.kind for finding in findings if SEVERITY[finding.kind] is Severity.FAIL))


def answer_of(verdict: CellVerdict, symptom: Collection[str]) -> SearchAnswer:
    """Return what one probe says of the symptom.

    ``symptom``: kinds of findings that are it; empty where it is not known yet: then any is.
    """
    if verdict.status is Status.PASS:
        return SearchAnswer(answer=Answer.PASS)
    kinds = failing_kinds(verdict.findings)
    if verdict.status is not Status.FAIL or not kinds:
        return SearchAnswer(answer=Answer.UNRESOLVED)
    return SearchAnswer(answer=Answer.FAIL, outcome=next((kind for kind in kinds if kind in symptom), kinds[0]))


def old_end(results: Sequence[ModelResult]) -> ReleaseAnswer:
    """Return the writing release's result: good if every run completed, else no end to search from."""
    failed = [result for result in results if result.outcome is not Outcome.COMPLETED]
    if results and not failed:
        return ReleaseAnswer.GOOD
    clear = bool(results) and len(failed) == len(results) and not any(result.outcome in UNCLEAR for result in failed)
    return ReleaseAnswer.BAD if clear else ReleaseAnswer.UNTESTABLE


def reason_of(verdict: CellVerdict) -> str:
    red = [finding for finding in verdict.findings if SEVERITY[finding.kind] is Severity.FAIL]
    message = (red or [*verdict.findings])[0].message if verdict.findings else ""
    return joined(message, verdict.note)


def reads_otherwise(first_bad: FirstBad) -> bool:
    """Whether the first bad release fails with another error than the new end: there may be two breaks of one kind."""
    red = [result for result in first_bad.asked if result.kind in ERRORS]
    reasons = {result.release: _without(result.release, result.reason) for result in red}
    first, end = reasons.get(first_bad.conclusion.first_bad), reasons.get(first_bad.releases[-1])
    return first is not None and end is not None and first != end


def _without(release: str, reason: str) -> str:
    """Return what an error says, without the name of the release in which it was said."""
    return reason.replace(f"torch {release}", "torch").replace(release, "")
