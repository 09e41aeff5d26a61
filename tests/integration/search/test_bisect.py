"""Operators spoilt in the new release, each in an awkward place: it is named, and no other; twins have nothing to find."""

from pathlib import Path

import pytest

from harness.search.bisect.cell import bisect
from harness.search.bisect.divergence import MORE_INDEX_BYTES
from harness.verdict.bisection import exit_code
from harness.core.diagnosis import BisectAnswer, Bisection
from harness.worker import wire
from tests.integration.search.judging import judged
from tests.integration.search.spoiling import spoilt

pytestmark = pytest.mark.integration

PLANTED = Path(__file__).with_name("planted")
REPRODUCED = "nested"


def searched(old: str, new: Path, reports: Path) -> tuple[dict[str, Bisection], Path]:
    """Bisect every planted model in one run; return what was found, and the run's folder."""
    with judged(PLANTED, (old, new), reports, floor_s=1) as (facts, effects):
        bisections = {
            name: bisect(name, facts, effects, reproduce=name == REPRODUCED, cures=False, rewrites=False)
            for name in (model.name for model in facts.plan.models)
        }
        return bisections, effects.run_dir.path


def operators(found: Bisection) -> list[str]:
    return [fault.node.operator for fault in found.divergence.culprits] if found.divergence is not None else []


def test_spoilt_operators_are_named_and_no_other(old_python: str, new_python: str, tmp_path: Path) -> None:
    found, folder = searched(
        old_python, spoilt(new_python, PLANTED / "spoilt.py", tmp_path / "spoilt"), tmp_path / "runs"
    )
    assert {name: operators(item) for name, item in found.items()} == {
        "amplified": [],
        "crashes": ["aten::digamma"],
        "goes_on": ["aten::cosh"],
        "goes_on_for_a_while": ["aten::cosh"],
        "hangs": ["aten::lgamma"],
        "healthy": [],
        "in_place": ["aten::log1p_"],
        "looped": ["aten::cosh"],
        "nested": ["aten::cosh"],
        "raises": ["aten::erfinv"],
        "strides": ["aten::expm1"],
        "two": ["aten::cosh", "aten::sinh"],
    }
    divergences = {name: item.divergence for name, item in found.items() if item.divergence is not None}
    assert {name for name, item in divergences.items() if item.confirmed} == set(found) - {"healthy"}
    assert all(item.probes == (1, 3) for item in divergences.values())
    assert [exit_code(found[name]) for name in ("healthy", "nested", "amplified")] == [0, 1, 4]
    assert found["healthy"].answer is BisectAnswer.NOTHING

    (layer,) = divergences["nested"].culprits
    assert layer.node.module == "encoder.layers.1"
    assert layer.node.source.startswith(str(PLANTED / "models.py"))
    assert "torch.cosh(x)" in layer.node.code
    assert len(divergences["looped"].culprits[0].places) == 2
    assert divergences["strides"].culprits[0].kinds == ("stride",)
    assert {fault.node.operator for fault in divergences["amplified"].rounding} == {"aten::asinh"}

    cut_off = {name for name, item in divergences.items() if any("was stopped after" in note for note in item.notes)}
    assert cut_off == {"goes_on"}
    index_bytes = [path.stat().st_size for path in folder.glob(f"probes/*/{wire.TRACE}/{wire.TENSORS_INDEX}")]
    assert max(index_bytes) < 2 * MORE_INDEX_BYTES, "a loop that never ends leaves no endless trace"

    assert [made.operator for made in found[REPRODUCED].reproducers] == ["aten::cosh"]
    for made in found[REPRODUCED].reproducers:
        assert made.old == "as recorded (exit code 0)"
        assert made.new.endswith("(exit code 1)")
        assert "## To reproduce" in (folder / made.folder / "issue.md").read_text()
