"""Canaries gate the gate: every planted defect must be reported, every healthy twin left alone."""

from collections.abc import Sequence
from dataclasses import replace

from harness.domain.fixture import ModelDeclaration
from harness.domain.hang import HangKind
from harness.domain.outcome import Outcome, Status
from harness.domain.verdict import CanaryResult, CellVerdict


def judge_canary(declaration: ModelDeclaration, verdict: CellVerdict) -> CanaryResult:
    """Return whether the defect came out as a FAIL with a finding of the expected kind."""
    assert declaration.canary is not None
    expected = declaration.canary.expect
    reported = verdict.kinds
    caught = verdict.status is Status.FAIL and expected in reported
    note = "" if caught else f"came out {verdict.status} {_messages(verdict)}".strip()
    return CanaryResult(name=declaration.name, expected=expected, reported=reported, caught=caught, note=note)


def judge_initialized_canary(
    declaration: ModelDeclaration, verdict: CellVerdict, proven: HangKind | None
) -> CanaryResult:
    """Return whether a defect of initialization was reported; a hang there is a deadlock, and must be proven as one.

    Args:
        proven: what kind of hang the evidence shows, None without a proof.
    """
    result = judge_canary(declaration, verdict)
    if not result.caught or result.expected != Outcome.HANG or proven is HangKind.BLOCKED:
        return result
    found = proven.value if proven is not None else "without a proof"
    return replace(result, caught=False, note=f"came out as a hang {found}, not {HangKind.BLOCKED.value}")


def judge_twin(declaration: ModelDeclaration, verdict: CellVerdict) -> CanaryResult:
    """Return whether the healthy twin was left alone."""
    healthy = verdict.status is Status.PASS or (verdict.scenario == "latency" and verdict.status is not Status.FAIL)
    note = "" if healthy else f"came out {verdict.status} {_messages(verdict)}".strip()
    return CanaryResult(name=declaration.name, expected="", reported=verdict.kinds, caught=healthy, note=note)


def _messages(verdict: CellVerdict) -> str:
    messages: Sequence[str] = [finding.message for finding in verdict.findings]
    return f"({messages[0]})" if messages else ""
