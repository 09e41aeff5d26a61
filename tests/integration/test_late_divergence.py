"""Exact at call 0 and off from call 1: a finding of its own, with the switch that cures it."""

from pathlib import Path

import pytest

from tests.integration.gate import compat

pytestmark = pytest.mark.integration


def test_fuser_that_rounds_otherwise_is_found_at_its_first_call_and_cured_by_switching_it_off(tmp_path: Path) -> None:
    run = compat(
        tmp_path,
        *("--fixtures", "tests/integration/late", "--new-profile", "cpu_fusion"),
        *("--scenario", "alone", "--latency", "off"),
    )
    cell = next(cell for cell in run.row("residue").cells if cell.scenario == "alone")
    late = next(finding for finding in cell.findings if finding.kind == "late_divergence")
    assert "call 1" in late.message
    assert late.detail["was"] == "values"
    assert "fuser off" in late.detail["cured_by"]
    assert {finding.kind for finding in cell.findings} == {"late_divergence", "values"}  # the other set came later
    assert run.code == 1
    assert "OK WITH MITIGATION" in run.out
