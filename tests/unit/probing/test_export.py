"""Exports that need no process: what golden bundles and records hold, and given files that are swapped for others."""

import errno
import hashlib
import stat
import zipfile
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

import pytest

from harness.verdict.cells import judge_cells, without_changed_bytes
from harness.artifacts.archive.limits import CannotRead
from harness.core.findings import DISTURBANCE
from harness.core.golden import VALUES
from harness.core.outcome import Outcome, Status
from harness.core.probe import ModelResult, ProbeRequest, ProbeResult
from harness.artifacts import golden_records as golden_store
from harness.artifacts.golden_records import GoldenStore
from harness.artifacts import file_copies
from harness.artifacts.adopted import has_changed
from harness.artifacts.bundles import BundleStore, bundle_declaration
from harness.probing.export import export_models
from harness.worker import wire
from benchmarks.faults.swaps import SWAPS
from tests.unit.builders.bundles import make_bundle
from tests.unit.builders.archives import given
from tests.unit.builders.golden_records import accept
from tests.unit.builders.requests import PRODUCER, float32, golden_outputs, write_archive, write_artifact
from tests.unit.builders.stages import FINGERPRINTS, Runner, continued, decided, effects, planned, probed, result
from tests.unit.builders.reports import verdict


ADOPTED = {"input_sets": [["example", "forward"]], "inputs_note": ""}


class Folder:
    """Where a run would lie."""

    name = "run"

    def __init__(self, path: Path) -> None:
        self.path = path


def test_a_damaged_bundle_costs_its_own_row(tmp_path: Path) -> None:
    whole, torn = (make_bundle(tmp_path, name, work=tmp_path / name) for name in ("whole", "torn"))
    content = bytearray(torn.read_bytes())
    with zipfile.ZipFile(torn) as archive:
        head = archive.getinfo(VALUES).header_offset
    content[head + 30 + len(VALUES) + 20 + 3] ^= 1  # behind the head, the name and a field for large sizes
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
    assert "could not be taken over: " in cell.findings[0].message
    assert "torn.gate: values is not what its digest promises" in cell.findings[0].message


def test_a_model_without_a_golden_record_is_not_judged_and_counts_as_selected(tmp_path: Path) -> None:
    recorded = bundle_declaration(make_bundle(tmp_path, "recorded"))
    bare = replace(given(write_archive(tmp_path / "bare.pt")), name="bare")
    alone = effects(sides=("new",))
    ready = replace(alone, golden=BundleStore((recorded,)), run_dir=cast(Any, Folder(tmp_path / "run")))
    begun = decided(
        plan=planned("recorded", "bare", models=(recorded, bare), golden="golden", old=None), fingerprints=FINGERPRINTS
    )
    facts = continued(begun, export_models(begun, ready))
    assert (facts.exports["recorded"].artifact is None, facts.exports["bare"].outcome) == (False, Outcome.NOT_RUN)
    only = replace(facts, plan=replace(facts.plan, models=(bare,)))
    (cell,) = judge_cells(only, ready).verdicts["bare"]
    assert (cell.status, cell.findings[0].message) == (
        Status.INCONCLUSIVE,
        "could not be taken over: it has no golden record: golden propose RUN, of a run that judges it",
    )


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
            data={"adopted": ADOPTED},
        )

    ready = replace(effects(Runner(adopt)), run_dir=cast(Any, Folder(tmp_path / "run")))
    facts = export_models(decided(plan=planned("m", models=(model,)), fingerprints=FINGERPRINTS), ready)
    found = facts.exports["m"]
    assert found.outcome is (Outcome.COMPLETED if left else Outcome.PROTOCOL_ERROR)
    assert (found.artifact is None, found.failure is None) == (not left, left)


@pytest.mark.parametrize(
    ("error", "disturbance"),
    [
        (OSError(errno.ENOSPC, "No space left on device"), "disk full"),
        (CannotRead(file_copies.CHANGED, "is another one"), "changed"),
        (CannotRead("unreadable_file", "cannot be opened"), None),
    ],
)
def test_what_kept_a_file_from_being_taken_over_is_told_as_data(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, error: Exception, disturbance: str | None
) -> None:
    """A full disk was once taken for a verdict on the artifact: its words were not the ones that were looked for."""

    def keep(*_arguments: object) -> file_copies.Kept:
        raise error

    monkeypatch.setattr(file_copies, "keep", keep)
    model = given(write_archive(tmp_path / "m.pt"))
    ready = replace(effects(Runner(lambda _request: probed())), run_dir=cast(Any, Folder(tmp_path)))
    begun = decided(plan=planned("m", models=(model,)), fingerprints=FINGERPRINTS)
    (cell,) = judge_cells(continued(begun, export_models(begun, ready)), ready).verdicts["m"]
    assert cell.findings[0].detail.get(DISTURBANCE) == disturbance


SMALL = golden_outputs(float32(1, 2, 3))
SECRET = b"what somebody else may read"
PLACES = ("the file", "its requests", "its requests while they are read", "the kept copy", "the recorded inputs")
BESIDE = "the bytes beside the index of its requests"


@pytest.mark.parametrize("swap", SWAPS)
@pytest.mark.parametrize("place", [*PLACES, BESIDE])
def test_only_the_bytes_that_were_planned_are_judged(tmp_path: Path, place: str, swap: str) -> None:
    run, inputs = tmp_path / "run", tmp_path / (wire.TENSORS_INDEX if place == BESIDE else "m.inputs.npz")
    beside = tmp_path / wire.TENSORS_BIN
    for path in (inputs, beside):
        path.write_bytes(b"x" * 100)
    named = given(write_archive(tmp_path / "m.pt"))
    assert named.given is not None
    model = file_copies.planned(replace(named, given=replace(named.given, inputs=str(inputs))))

    def adopt(request: ProbeRequest) -> ProbeResult:
        if place == PLACES[2]:
            SWAPS[swap](inputs, SECRET)
        folder = run / "probes" / "k"
        (folder / "inputs").mkdir(parents=True)
        for name in (wire.TENSORS_INDEX, wire.TENSORS_BIN):
            (folder / "inputs" / name).write_bytes(b"x" * 100)
        return probed(result(), side=request.side, directory=str(folder), data={"adopted": ADOPTED})

    if place in (*PLACES[:2], BESIDE):
        SWAPS[swap]({PLACES[0]: tmp_path / "m.pt", BESIDE: beside}.get(place, inputs), SECRET)
    ready = replace(effects(Runner(adopt)), run_dir=cast(Any, Folder(run)))
    begun = decided(plan=planned("m", models=(model,)), fingerprints=FINGERPRINTS)
    facts = continued(begun, export_models(begun, ready))
    if place in PLACES[3:]:
        passed = replace(facts, verdicts={"m": (verdict("m", "alone"),)})
        assert without_changed_bytes(passed, ready) == passed
        taken = facts.artifact("m")
        swapped = Path(taken.path) if place == PLACES[3] else Path(taken.inputs_dir, wire.TENSORS_BIN)
        assert place != PLACES[3] or stat.S_IMODE(swapped.stat().st_mode) == 0o444
        swapped.chmod(0o644)
        SWAPS[swap](swapped, SECRET)
        judged = without_changed_bytes(passed, ready).verdicts
    else:
        assert not any(SECRET[:9] in path.read_bytes() for path in run.rglob("*") if path.is_file())
        judged = judge_cells(facts, ready).verdicts
    (cell,) = judged["m"]
    assert cell.status is Status.INCONCLUSIVE
    assert str(inputs if "requests" in place else "m") in cell.findings[0].message


@pytest.mark.parametrize("small", [True, False])
@pytest.mark.parametrize("other", [True, False])
def test_a_golden_record_of_a_given_file_judges_that_file_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *, small: bool, other: bool
) -> None:
    made = write_artifact(tmp_path / "made")
    path = Path(made.path)
    store = GoldenStore(tmp_path / "golden")
    monkeypatch.setattr(golden_store, "MAX_ARTIFACT_BYTES", made.size_bytes - (0 if small else 1))
    store.propose(replace(made, digest=hashlib.sha256(path.read_bytes()).hexdigest()), SMALL, PRODUCER, "cpu")
    accept(store, "m", reason="looked at")
    if other:
        path.write_bytes(path.read_bytes() + b"x")
    ready = replace(effects(sides=("new",)), golden=store, run_dir=cast(Any, Folder(tmp_path / "run")))
    plan = planned("m", models=(file_copies.planned(given(path)),), golden="golden", old=None)
    found = export_models(decided(plan=plan, fingerprints=FINGERPRINTS), ready).exports["m"]
    if other:
        assert found.outcome is Outcome.NOT_RUN and found.failure is not None
        assert "m.pt is not the file that its golden record is about" in found.failure.message
    else:
        assert found.artifact is not None and Path(found.artifact.path).read_bytes() == path.read_bytes()
        assert not has_changed(found.artifact)
