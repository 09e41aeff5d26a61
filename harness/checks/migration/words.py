"""How a program or package fails or differs, in one line each. Pure."""

from harness.checks.migration.facts import Served
from harness.checks.outputs.findings import output_findings
from harness.core.comparison import OutputComparison
from harness.core.findings import SEVERITY, Severity
from harness.core.probe import ModelResult, ProbeResult
from harness.core.text import error_line, prose
from harness.core.verdict import Finding


def failure_words(result: ModelResult, process: ProbeResult | Served) -> str:
    if result.failure is None:
        return prose(f"{result.outcome.value} in {result.phase_words or 'an unknown phase'} {process.exit_detail}")
    text = error_line(result.failure) or result.failure.first_line
    return prose(f"{result.failure.type}: {text}")


def difference_words(comparison: OutputComparison | None) -> str:
    """Return the first difference from the golden outputs that counts, empty where there is none."""
    first = first_difference(comparison)
    if first is None:
        return ""
    return f"{first.where}: {first.message}" if first.where else first.message


def first_difference(comparison: OutputComparison | None) -> Finding | None:
    """Return the first difference from the golden outputs that counts, None where there is none."""
    findings = output_findings(comparison) if comparison is not None else []
    return next((finding for finding in findings if SEVERITY[finding.kind] is Severity.FAIL), None)
