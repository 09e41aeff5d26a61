"""Exports that need no process: what golden bundles hold."""

from dataclasses import replace
from pathlib import Path
from typing import Any, cast

import pytest

from harness.decision.judge import judge_cells
from harness.domain.outcome import Outcome, Status
from harness.domain.probe import ModelResult, ProbeRequest, ProbeResult
from harness.models.bundles import BundleStore, bundle_declaration
from harness.probing.export import export_models
from harness.worker import wire
from tests.unit.builders.bundles import make_bundle
from tests.unit.builders.given_models import given
from tests.unit.builders.requests import write_archive
from tests.unit.builders.stages import FINGERPRINTS, Runner, continued, decided, effects, planned


class Folder:
    """Where a run would lie."""

    name = "run"

    def __init__(self, path: Path) -> None:
        self.path = path


def test_a_damaged_bundle_costs_its_own_row(tmp_path: Path) -> None:
    whole, torn = (make_bundle(tmp_path, name, work=tmp_path / name) for name in ("whole", "torn"))
    content = bytearray(torn.read_bytes())
    content[content.index(b"outputs/tensors.bin") + 42] ^= 1
    models = tuple(map(bundle_declaration, (whole, torn)))
    torn.write_bytes(content)
    alone = effects(sides=("new",))
    ready = replace(alone, golden=BundleStore(models), run_dir=cast(Any, Folder(tmp_path / "run")))
    plan = planned("whole", "torn", models=models, golden="bundles", old=None)
    begun = decided(plan=plan, fingerprints=FINGERPRINTS)
    facts = continued(begun, export_models(begun, ready))
    assert facts.exports["whole"].artifact is not None
    damaged = facts.exports["torn"]
    assert (damaged.artifact, damaged.outcome) == (None, Outcome.NOT_RUN)
    only = replace(facts, plan=replace(plan, models=models[1:]))
    (cell,) = judge_cells(only, ready).verdicts["torn"]
    assert cell.status is Status.INCONCLUSIVE
    assert "could not be taken over in torch 2.6.0: Damaged: " in cell.findings[0].message
    assert "torn.gate: outputs/tensors.bin is not what its digest promises" in cell.findings[0].message


@pytest.mark.parametrize("left", [True, False])
def test_a_damaged_adoption_costs_its_own_row(tmp_path: Path, *, left: bool) -> None:
    (tmp_path / "run").mkdir()
    model = given(write_archive(tmp_path / "m.pt"))

    def adopt(request: ProbeRequest) -> ProbeResult:
        folder = tmp_path / "probe"
        (folder / "inputs").mkdir(parents=True)
        for name in (wire.TENSORS_INDEX, wire.TENSORS_BIN)[: 2 if left else 1]:
            (folder / "inputs" / name).write_bytes(b"")
        return ProbeResult(
            key="k",
            side=request.side,
            outcome=Outcome.COMPLETED,
            directory=str(folder),
            models=(ModelResult(model="m", outcome=Outcome.COMPLETED),),
            data={"adopted": {"input_sets": [["example", "forward"]], "inputs_note": ""}},
        )

    ready = replace(effects(Runner(adopt)), run_dir=cast(Any, Folder(tmp_path / "run")))
    facts = export_models(decided(plan=planned("m", models=(model,)), fingerprints=FINGERPRINTS), ready)
    found = facts.exports["m"]
    assert found.outcome is (Outcome.COMPLETED if left else Outcome.PROTOCOL_ERROR)
    assert (found.artifact is None, found.failure is None) == (not left, left)
