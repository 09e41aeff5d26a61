"""Golden records: proposed, accepted with a reason, verified on every read."""

import datetime
import gzip
import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from harness.correctness.outputs import compare_outputs
from harness.domain.models import InputSet
from harness.domain.probe import ServingProfile
from harness.errors import ExitCode, GoldenError
from harness.golden import files
from harness.golden.files import ARTIFACT, INPUTS, RECORD, VALUES
from harness.golden.store import GoldenStore
from harness.tensors.samples import like_golden, mark_sampled
from harness.worker import wire
from tests.unit.builders.requests import PRODUCER, float32, golden_outputs, write_artifact
from tests.unit.builders.golden_records import accept, source

DAY = datetime.date(2026, 11, 22)
SMALL = golden_outputs(float32(1, 2, 3), float32(1, 2, 4))


@pytest.fixture
def store(tmp_path: Path) -> GoldenStore:
    return GoldenStore(tmp_path / "golden")


@pytest.fixture
def accepted(store: GoldenStore, tmp_path: Path) -> Path:
    """The folder of an accepted record of model ``m``."""
    store.propose(write_artifact(tmp_path / "export"), SMALL, PRODUCER, "cpu")
    accept(store, "m", reason="checked by hand")
    return tmp_path / "golden" / "records" / "m"


def test_new_store_is_empty(store: GoldenStore) -> None:
    assert (store.names(), store.proposed(), store.entries()) == ((), (), {})


def test_proposal_waits_and_judges_nothing(store: GoldenStore, tmp_path: Path) -> None:
    folder = store.propose(write_artifact(tmp_path / "export"), SMALL, PRODUCER, "cpu")
    assert folder == tmp_path / "golden" / "proposed" / "m"
    assert (store.proposed(), store.names()) == (("m",), ())
    with pytest.raises(GoldenError, match="there is no golden record of m"):
        store.record("m")


@pytest.mark.usefixtures("accepted")
def test_accepted_record_has_a_reason_a_release_and_a_date(store: GoldenStore) -> None:
    assert (store.names(), store.proposed()) == (("m",), ())
    entry = store.entries()["m"]
    assert (entry.reason, entry.release, entry.accepted) == ("checked by hand", "2.1.2+cu121", DAY)


@pytest.mark.usefixtures("accepted")
def test_golden_outputs_are_those_that_were_proposed(store: GoldenStore) -> None:
    found = store.outputs("m")
    comparison = compare_outputs("m", "alone", found, SMALL)
    assert [call.call for call in comparison.calls] == [0, 1]
    assert all(tensor.bit_equal for call in comparison.calls for tensor in call.tensors)
    assert comparison.missing_calls == ()


@pytest.mark.usefixtures("accepted")
def test_a_record_remembers_the_golden_alone(store: GoldenStore, tmp_path: Path) -> None:
    found = store.remembered("m", tmp_path)
    assert found.golden == store.outputs("m")
    assert (found.repeats, found.other_threads, found.reference) == ((), (), None)


@pytest.mark.usefixtures("accepted")
def test_record_keeps_no_paths_and_no_environment_variables(store: GoldenStore, tmp_path: Path) -> None:
    record = store.record("m")
    assert (record.artifact.path, record.artifact.inputs_dir, record.producer.env_vars) == ("", "", {})
    assert record.producer.identity == PRODUCER.identity
    text = (tmp_path / "golden" / "records" / "m" / RECORD).read_text()
    assert str(tmp_path) not in text
    assert "token" not in text


@pytest.mark.usefixtures("accepted")
def test_artifact_and_inputs_are_unpacked_as_they_were(store: GoldenStore, tmp_path: Path) -> None:
    original = write_artifact(tmp_path / "export")
    found = store.unpack("m", tmp_path / "run" / "m")
    assert found is not None
    assert Path(found.path).read_bytes() == Path(original.path).read_bytes()
    ours, theirs = Path(found.inputs_dir), Path(original.inputs_dir)
    assert (ours / wire.TENSORS_BIN).read_bytes() == (theirs / wire.TENSORS_BIN).read_bytes()
    index, expected = ((folder / wire.TENSORS_INDEX).read_text().splitlines() for folder in (ours, theirs))
    assert [json.loads(line) for line in index] == [json.loads(line) for line in expected]
    assert (found.reset, found.seed, found.digest) == (original.reset, original.seed, original.digest)


def test_unpacked_artifact_is_called_as_often_as_the_record_was(store: GoldenStore, tmp_path: Path) -> None:
    outputs = golden_outputs(float32(1), float32(2), float32(3))
    outputs.calls.update(golden_outputs(float32(1), input_set="batch 3").calls)  # type: ignore[attr-defined]
    artifact = write_artifact(tmp_path / "export", input_sets=(InputSet(name="batch 3"), InputSet(name="example")))
    store.propose(artifact, outputs, PRODUCER, "cpu")
    accept(store, "m", reason="checked by hand")
    found = store.unpack("m", tmp_path / "run")
    assert found is not None
    assert found.schedule == (("batch 3", 1), ("example", 3))
    assert (artifact.schedule, store.record("m").artifact.schedule) == ((), ())


@pytest.mark.parametrize("name", [RECORD, VALUES, INPUTS, ARTIFACT])
@pytest.mark.parametrize("read", ["record", "outputs", "unpack"])
def test_tampering_with_any_file_is_seen_by_every_read(
    store: GoldenStore, accepted: Path, tmp_path: Path, name: str, read: str
) -> None:
    data = (accepted / name).read_bytes()
    changed = (
        data.replace(b"aten::add", b"aten::sub") if name == RECORD else gzip.compress(gzip.decompress(data) + b"x")
    )
    assert changed != data
    (accepted / name).write_bytes(changed)
    reads: dict[str, Callable[[], object]] = {
        "record": lambda: store.record("m"),
        "outputs": lambda: store.outputs("m"),
        "unpack": lambda: store.unpack("m", tmp_path / "out"),
    }
    with pytest.raises(GoldenError, match=f"{name} was changed after it was accepted") as caught:
        reads[read]()
    assert caught.value.exit_code is ExitCode.CONFIGURATION


@pytest.mark.parametrize("name", [RECORD, VALUES, INPUTS, ARTIFACT])
def test_missing_file_of_a_record_is_a_golden_error(store: GoldenStore, accepted: Path, name: str) -> None:
    (accepted / name).unlink()
    with pytest.raises(GoldenError, match=f"{name} cannot be read"):
        store.record("m")


@pytest.mark.usefixtures("accepted")
@pytest.mark.parametrize("text", ["", "{", '{"records": {"m": {}}}'])
def test_damaged_index_is_a_golden_error(store: GoldenStore, tmp_path: Path, text: str) -> None:
    (tmp_path / "golden" / "index.json").write_text(text)
    with pytest.raises(GoldenError, match="index.json is damaged") as caught:
        store.names()
    assert "git checkout" in caught.value.hint


@pytest.mark.usefixtures("accepted")
def test_what_the_accepted_record_says_already_is_not_proposed(store: GoldenStore, tmp_path: Path) -> None:
    artifact = write_artifact(tmp_path / "export")
    assert store.propose(artifact, SMALL, PRODUCER, "cpu", source("later")) is None
    assert store.proposed() == ()
    assert store.propose(artifact, SMALL, replace(PRODUCER, torch="2.6.0"), "cpu") is not None


def test_the_same_outputs_under_another_profile_are_proposed(store: GoldenStore, tmp_path: Path) -> None:
    artifact = write_artifact(tmp_path / "export")
    store.propose(artifact, SMALL, PRODUCER, "cpu", source("run"))
    accept(store, "m")
    fused = replace(source("run"), profile=ServingProfile(name="fused", switches={"cpu_fusion": True}))
    assert store.propose(artifact, SMALL, PRODUCER, "cpu", source("other")) is None
    assert store.propose(artifact, SMALL, PRODUCER, "cpu", fused) is not None


def test_a_damaged_record_can_be_proposed_again(store: GoldenStore, accepted: Path, tmp_path: Path) -> None:
    (accepted / VALUES).write_bytes(b"x")
    assert store.propose(write_artifact(tmp_path / "export"), SMALL, PRODUCER, "cpu") is not None
    accept(store, "m", reason="mended")
    assert len(store.outputs("m").calls) == 2


def test_proposal_is_byte_identical_for_the_same_inputs(tmp_path: Path) -> None:
    artifact = write_artifact(tmp_path / "export")
    one = GoldenStore(tmp_path / "a").propose(artifact, SMALL, PRODUCER, "cpu")
    other = GoldenStore(tmp_path / "b").propose(artifact, SMALL, PRODUCER, "cpu")
    assert one is not None and other is not None
    assert sorted(path.name for path in one.iterdir()) == sorted([RECORD, VALUES, INPUTS, ARTIFACT])
    assert all((other / path.name).read_bytes() == path.read_bytes() for path in one.iterdir())


def test_new_proposal_replaces_the_waiting_one(store: GoldenStore, tmp_path: Path) -> None:
    artifact = write_artifact(tmp_path / "export")
    folder = store.propose(artifact, SMALL, PRODUCER, "cpu")
    assert folder is not None
    (folder / "rest").write_text("x")
    store.propose(artifact, golden_outputs(float32(9)), PRODUCER, "cpu")
    assert not (folder / "rest").exists()
    accept(store, "m", reason="newer")
    assert list(store.outputs("m").calls) == [("example", 0)]


@pytest.mark.usefixtures("accepted")
def test_proposal_leaves_the_accepted_record_alone(store: GoldenStore, tmp_path: Path) -> None:
    store.propose(write_artifact(tmp_path / "export"), golden_outputs(float32(9)), PRODUCER, "cpu")
    assert len(store.outputs("m").calls) == 2
    assert store.proposed() == ("m",)


@pytest.mark.usefixtures("accepted")
def test_accepting_one_model_keeps_the_others(store: GoldenStore, tmp_path: Path) -> None:
    store.propose(write_artifact(tmp_path / "other", "a"), SMALL, PRODUCER, "cpu")
    accept(store, "a", reason="second")
    assert store.names() == ("a", "m")
    assert store.entries()["m"].reason == "checked by hand"
    store.record("m")


def test_absent_proposal_names_those_that_wait(store: GoldenStore, tmp_path: Path) -> None:
    with pytest.raises(GoldenError, match="there is no proposal for m") as caught:
        accept(store, "m", reason="reason")
    assert caught.value.hint.endswith("none")
    store.propose(write_artifact(tmp_path / "other", "a"), SMALL, PRODUCER, "cpu")
    with pytest.raises(GoldenError) as caught:
        accept(store, "m", reason="reason")
    assert caught.value.hint.endswith(": a")


@pytest.mark.parametrize("name", [VALUES, INPUTS, ARTIFACT])
def test_proposal_that_was_changed_is_not_accepted(store: GoldenStore, tmp_path: Path, name: str) -> None:
    folder = store.propose(write_artifact(tmp_path / "export"), SMALL, PRODUCER, "cpu")
    assert folder is not None
    (folder / name).write_bytes(gzip.compress(b"another"))
    with pytest.raises(GoldenError, match=f"{name} was changed after it was proposed"):
        accept(store, "m", reason="reason")
    assert store.names() == ()


def test_damaged_proposal_is_a_golden_error(store: GoldenStore, tmp_path: Path) -> None:
    folder = store.propose(write_artifact(tmp_path / "export"), SMALL, PRODUCER, "cpu")
    assert folder is not None
    (folder / RECORD).write_text("{}")
    with pytest.raises(GoldenError, match="damaged"):
        accept(store, "m", reason="reason")
    assert store.names() == ()


def test_artifact_that_is_too_large_for_git_is_left_out_and_said_so(
    store: GoldenStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    artifact = write_artifact(tmp_path / "export")
    monkeypatch.setattr(files, "MAX_ARTIFACT_BYTES", artifact.size_bytes - 1)
    folder = store.propose(artifact, SMALL, PRODUCER, "cpu")
    assert folder is not None
    assert not (folder / ARTIFACT).exists()
    accept(store, "m", reason="large")
    assert len(store.outputs("m").calls) == 2
    assert store.unpack("m", tmp_path / "run") is None
    monkeypatch.setattr(files, "MAX_ARTIFACT_BYTES", artifact.size_bytes)
    again = store.propose(artifact, SMALL, PRODUCER, "cpu")
    assert again is not None and (again / ARTIFACT).exists()


def test_large_tensor_is_stored_as_a_sample_that_judges_after_the_round_trip(
    store: GoldenStore, tmp_path: Path
) -> None:
    whole = np.arange(50_000, dtype=np.float32)
    changed = whole.copy()
    changed[1] += 1  # between two sampled elements
    store.propose(write_artifact(tmp_path / "export"), golden_outputs(whole), PRODUCER, "cpu")
    accept(store, "m", reason="large")
    golden = store.outputs("m")
    assert len(golden.buffer) < 5_000
    for values, sampled in ((whole, False), (changed, True)):
        probe = golden_outputs(values)
        comparison = compare_outputs("m", "alone", golden, like_golden(probe, golden))
        (tensor,) = mark_sampled(comparison, golden, probe).calls[0].tensors
        assert (tensor.bit_equal, tensor.sampled) == (True, sampled)
