"""Exact at call 0 and off from call 1: a finding of its own, with the switch that mitigates it."""

from pathlib import Path

import pytest

from harness.core.outcome import Status
from tests.integration.gate import compat, harness

pytestmark = pytest.mark.integration

LATE = "tests/integration/search/late"


def test_fuser_that_rounds_otherwise_is_found_at_its_first_call_and_mitigated_by_switching_it_off(
    tmp_path: Path,
) -> None:
    run = compat(
        tmp_path,
        *("--fixtures", LATE, "-k", "residue", "--new-profile", "cpu_fusion"),
        *("--scenario", "alone", "--latency", "off"),
        all_planted=False,
    )
    cell = next(cell for cell in run.row("residue").cells if cell.scenario == "alone")
    late = next(finding for finding in cell.findings if finding.kind == "late_divergence")
    assert "call 1" in late.message
    assert late.detail["was"] == "values"
    assert "fuser off" in late.detail["mitigated_by"]
    assert {finding.kind for finding in cell.findings} == {"late_divergence", "values"}  # the other set came later
    assert run.code == 1
    assert "OK WITH MITIGATION" in run.out


@pytest.mark.slow
def test_fusion_by_onednn_that_drops_an_argument_is_found_and_mitigated_and_its_exact_twin_passes(
    tmp_path: Path,
) -> None:
    sides = ("--fixtures", LATE, "-k", "onednn", "--new-profile", "onednn_fusion", "--latency", "off")
    run = compat(tmp_path, *sides)
    (late,) = [finding for cell in run.row("tanh_gelu").cells for finding in cell.findings if finding.rule]
    assert (late.kind, run.row("exact_gelu").status) == ("late_divergence", Status.PASS)
    searched = harness("mitigate", *sides, "--model", "tanh_gelu", "--out", str(tmp_path / "search"))
    assert "oneDNN fusion off" in searched.stdout
