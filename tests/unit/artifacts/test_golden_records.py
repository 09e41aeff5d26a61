"""Golden records: proposed, accepted with a reason, verified on every read."""

import hashlib
import json
import os
import shutil
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from harness.checks.outputs.outputs import compare_outputs
from harness.core.golden import ARTIFACT, INPUTS, RECORD, VALUES
from harness.core.models import InputSet
from harness.core.probe import ServingProfile
from harness.core.errors import ExitCode, GoldenError, RunDirError
from harness.artifacts import golden_records as golden_store
from harness.artifacts.golden_index import PROPOSED, RECORDS, write_index
from harness.artifacts.adopted import inputs_digest
from harness.artifacts.golden_records import ATTRIBUTES, IGNORED, GoldenStore
from harness.store import codec
from harness.artifacts.tensors.samples import like_golden, mark_sampled
from harness.worker import wire
from tests.programs.disks import fill, small_disk
from tests.unit.builders.golden_records import DAY, accept, propose, source, three, why
from tests.unit.builders.requests import PRODUCER, float32, golden_outputs, write_archive, write_artifact

SMALL = golden_outputs(float32(1, 2, 3), float32(1, 2, 4))


@pytest.fixture
def store(tmp_path: Path) -> GoldenStore:
    return GoldenStore(tmp_path / "golden")


@pytest.fixture
def accepted(store: GoldenStore, tmp_path: Path) -> Path:
    """The folder of an accepted record of model ``m``."""
    store.propose(write_artifact(tmp_path / "export"), SMALL, PRODUCER, "cpu")
    accept(store, "m", reason="checked by hand")
    return store.record_folder("m")


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
    store.unpack("m", tmp_path / "run")
    found = store.remembered("m", tmp_path / "run")
    assert found.golden == store.outputs("m")
    assert (found.repeats, found.other_threads, found.reference) == ((), (), None)


@pytest.mark.usefixtures("accepted")
def test_record_keeps_no_paths_and_no_environment_variables(store: GoldenStore, tmp_path: Path) -> None:
    record = store.record("m")
    assert (record.artifact.path, record.artifact.inputs_dir, record.producer.env_vars) == ("", "", {})
    assert record.producer.identity == PRODUCER.identity
    text = (store.record_folder("m") / RECORD).read_text()
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
    changed = data.replace(b"aten::add", b"aten::sub") if name == RECORD else data + b"x"
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
    (folder / name).write_bytes(b"another")
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


@pytest.mark.parametrize("content", [b"", b"no archive", None])
def test_record_of_a_given_file_is_of_its_bytes(store: GoldenStore, tmp_path: Path, content: bytes | None) -> None:
    artifact = write_artifact(tmp_path / "export")
    path = Path(artifact.path)
    path.write_bytes(path.read_bytes() if content is None else content)
    data = path.read_bytes()
    given = replace(artifact, digest=hashlib.sha256(data).hexdigest(), size_bytes=len(data))
    store.propose(given, SMALL, PRODUCER, "cpu")
    accept(store, "m", reason="looked at")
    assert Path(store.unpack("m", tmp_path / "run").path).read_bytes() == data
    assert store.propose(given, SMALL, PRODUCER, "cpu") is None


@pytest.mark.parametrize("changed", ["m.pt", "inputs/tensors.bin"])
def test_a_refused_proposal_leaves_nothing_and_the_earlier_one_waits(
    store: GoldenStore, tmp_path: Path, changed: str
) -> None:
    made = write_artifact(tmp_path / "export")
    artifact = replace(made, inputs_digest=inputs_digest(Path(made.inputs_dir)))
    for earlier in ((), ("m",)):
        before = sorted(store.folder.rglob("*"))
        (tmp_path / "export" / changed).write_bytes(b"other")
        with pytest.raises(GoldenError, match="are other ones by now than gave the outputs; run it again"):
            store.propose(artifact, SMALL, PRODUCER, "cpu")
        assert (sorted(store.folder.rglob("*")), store.proposed()) == (before, earlier)
        write_artifact(tmp_path / "export")
        store.propose(artifact, SMALL, PRODUCER, "cpu")


def test_artifact_that_is_too_large_for_git_is_left_out_and_said_so(
    store: GoldenStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    artifact = write_artifact(tmp_path / "export")
    monkeypatch.setattr(golden_store, "MAX_ARTIFACT_BYTES", artifact.size_bytes - 1)
    folder = store.propose(artifact, SMALL, PRODUCER, "cpu")
    assert folder is not None
    assert not (folder / ARTIFACT).exists()
    accept(store, "m", reason="large")
    assert len(store.outputs("m").calls) == 2
    assert store.unpack("m", tmp_path / "run").path == ""
    monkeypatch.setattr(golden_store, "MAX_ARTIFACT_BYTES", artifact.size_bytes)
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


def content(folder: Path) -> dict[str, bytes]:
    """Every file below the folder, with its bytes."""
    return {str(path.relative_to(folder)): path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()}


def seen(store: GoldenStore) -> tuple[object, ...]:
    """Whatever a run, and whoever decides, reads in the folder."""
    waiting = [store.proposal(name) for name in store.proposed()]
    return store.entries(), [store.record(name) for name in store.names()], waiting


def test_an_accepted_record_replaces_the_one_before(tmp_path: Path) -> None:
    store = three(tmp_path)
    propose(tmp_path, "m", float32(7), run="newer", torch="2.6.0")
    before = store.record_folder("m")
    store.accept(["m"], why("agreed"), {"m": store.proposal("m")[1]})
    entry = store.entries()["m"]
    assert (entry.run, entry.release) == ("newer", "2.6.0")
    assert not before.exists()
    assert store.record("m").producer.torch == "2.6.0"
    assert store.proposed() == ()
    assert sorted(path.name for path in (store.folder / RECORDS).iterdir()) == [ATTRIBUTES, "a", "b", "m"]
    (trust,) = store.trust(["m", "nobody"])
    assert (trust.reason, trust.by, trust.run) == ("agreed", "Ann <ann@example.com>", "newer")


def test_all_or_nothing_is_accepted(tmp_path: Path) -> None:
    store = three(tmp_path)
    propose(tmp_path, "b", float32(8))
    (propose(tmp_path, "m", float32(7)).folder / PROPOSED / "m" / VALUES).write_bytes(b"x")
    before = content(store.folder)
    with pytest.raises(GoldenError, match="changed after it was proposed"):
        accept(store, "b", "m")
    assert content(store.folder) == before


def test_an_index_that_cannot_be_written_leaves_the_records_of_before(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = three(tmp_path)
    propose(tmp_path, "m", float32(7))
    propose(tmp_path, "z", float32(7))
    before = seen(store)

    def full(*_: object) -> None:
        raise RunDirError("the disk is full", "free space")

    monkeypatch.setattr(golden_store, "write_index", full)
    with pytest.raises(RunDirError):
        accept(store, "m", "z")
    assert seen(store) == before


def test_a_full_disk_is_named_in_words_and_accepts_nothing(tmp_path: Path) -> None:
    with small_disk(tmp_path / "disk") as disk:
        store = three(disk)
        propose(disk, "m", float32(7))
        before = content(store.folder)
        filler = fill(disk, inodes_left=5)
        with pytest.raises(RunDirError, match=r"cannot be written: the disk is full \(df shows"):
            accept(store, "m")
        assert content(store.folder) == before
        shutil.rmtree(filler)
        accept(store, "m")
        assert store.proposed() == ()


def test_a_removed_record_is_gone(tmp_path: Path) -> None:
    store = three(tmp_path)
    store.remove(["a"])
    assert store.names() == ("b", "m")
    assert not (store.folder / RECORDS / "a").exists()


@pytest.mark.parametrize("kept", ["ours", "theirs"])
def test_records_that_two_branches_accepted_are_merged_by_their_entries(tmp_path: Path, kept: str) -> None:
    """Of a record that both accepted one entry is kept; the folders of both lie beside each other."""
    store = three(tmp_path / "ours")
    theirs = tmp_path / "theirs"
    shutil.copytree(tmp_path / "ours", theirs)
    accept(propose(tmp_path / "ours", "c"), "c", reason="ours")
    accept(propose(tmp_path / "ours", "b", float32(4)), "b", reason="ours")
    other = propose(theirs, "d", torch="2.6.0")
    accept(other, "d", reason="theirs")
    accept(propose(theirs, "b", float32(5)), "b", reason="theirs")
    shutil.copytree(other.folder / RECORDS, store.folder / RECORDS, dirs_exist_ok=True)
    sides = (store.entries(), other.entries()) if kept == "theirs" else (other.entries(), store.entries())
    write_index(store.folder, {**sides[0], **sides[1]})
    assert [store.record(name).model for name in store.names()] == ["a", "b", "c", "d", "m"]
    assert (store.entries()["b"].reason, store.entries()["d"].release) == (kept, "2.6.0")


def test_a_record_in_another_models_folder_is_refused(tmp_path: Path) -> None:
    store = three(tmp_path)
    propose(tmp_path, "x", float32(3))
    shutil.copytree(store.folder / PROPOSED / "x", store.folder / PROPOSED / "y")
    with pytest.raises(GoldenError, match="is the record of x, in another model's folder"):
        accept(store, "y")
    shutil.copytree(store.folder / RECORDS / "b", store.folder / RECORDS / "y")
    write_index(store.folder, {**store.entries(), "y": store.entries()["b"]})
    with pytest.raises(GoldenError, match="is the record of b, in another model's folder"):
        store.record("y")


def test_a_record_names_its_own_files_only(tmp_path: Path) -> None:
    store = propose(tmp_path, "x")
    path = store.folder / PROPOSED / "x" / RECORD
    record = json.loads(path.read_text())
    record["files"]["../../../secret"] = "0" * 64
    path.write_text(json.dumps(record))
    with pytest.raises(GoldenError, match="names other files than"):
        accept(store, "x")


def nothing(_told: Any) -> None:
    """Leave the record as it is."""


def forged(store: GoldenStore, edit: Callable[[Any], None], files: Mapping[str, bytes] | None = None) -> GoldenStore:
    """Change the record of ``a``; record and index are written so that every digest fits."""
    folder = store.record_folder("a")
    record = json.loads((folder / RECORD).read_text())
    for name, data in (files or {}).items():
        (folder / name).write_bytes(data)
        record["files"][name] = hashlib.sha256(data).hexdigest()
    edit(record)
    (folder / RECORD).write_bytes(codec.canonical(record))
    digest = hashlib.sha256((folder / RECORD).read_bytes()).hexdigest()
    folder.rename(folder.with_name(digest[: len(folder.name)]))
    write_index(store.folder, {**store.entries(), "a": replace(store.entries()["a"], sha256=digest)})
    return store


def refused(store: GoldenStore, said: str) -> None:
    with pytest.raises(GoldenError, match=said):
        store.record("a")
    with pytest.raises(GoldenError, match=said):
        store.outputs("a")
    propose(store.folder.parent, "b", float32(5)).accept(["b"], why())  # others stay usable


def spec_of(record: Any) -> Any:
    return record["answers"][0]["tree"][1]


def test_what_fits_in_every_digest_is_read(tmp_path: Path) -> None:
    """Else the tests below could be red for another reason."""
    assert forged(three(tmp_path), nothing).record("a").model == "a"


def test_a_digest_of_other_numbers_than_those_beside_it_is_refused(tmp_path: Path) -> None:
    """A run takes equal digests for equal numbers: this one would call what the new release answers the same bits."""
    digest = hashlib.sha256(float32(9, 9, 9).tobytes()).hexdigest()
    other = forged(three(tmp_path), lambda record: spec_of(record).update(sha256=digest))
    refused(other, "a tensor is not what its digest promises")


def test_other_numbers_under_the_digest_of_those_before_are_refused(tmp_path: Path) -> None:
    """A diff would call them the same bits."""
    other = {VALUES: float32(9, 9, 9).tobytes()}
    refused(forged(three(tmp_path), nothing, other), "a tensor is not what its digest promises")


def test_another_artifact_under_the_identity_of_the_one_before_is_refused(tmp_path: Path) -> None:
    """It would answer whatever it likes in the new release, and no diff would show that it is another one."""
    archive = write_archive(tmp_path / "other.pt", "a", {"code/model.py": "def forward(self): return self.one"})
    data = archive.read_bytes()
    other = {ARTIFACT: data}
    sized = forged(three(tmp_path), lambda record: record["artifact"].update(size_bytes=len(data)), other)
    refused(sized, "artifact is another artifact than record.json says")


def test_what_is_no_archive_is_refused(tmp_path: Path) -> None:
    refused(forged(three(tmp_path), nothing, {ARTIFACT: b"x"}), "artifact has 1 bytes, and record.json promises")


@pytest.mark.parametrize("change", [{"offset": -1}, {"nbytes": "12"}, {"nbytes": None}, {"offset": True}])
def test_a_spec_that_points_elsewhere_is_refused(tmp_path: Path, change: dict[str, Any]) -> None:
    refused(forged(three(tmp_path), lambda record: spec_of(record).update(change)), "its golden outputs cannot be read")


def test_a_tree_without_end_is_refused(tmp_path: Path) -> None:
    store = propose(tmp_path, "x")
    path = store.folder / PROPOSED / "x" / RECORD
    path.write_text(path.read_text().replace('"answers":[', '"answers":[' + "[" * 100_000 + "]" * 100_000 + ","))
    with pytest.raises(GoldenError, match="is damaged"):
        accept(store, "x")


@pytest.mark.parametrize(
    "tree",
    [
        [],
        ["tensor", {"dtype": "float32", "shape": [99], "offset": 0, "nbytes": 12}],
        ["tensor", {"dtype": "float31", "shape": [3], "offset": 0, "nbytes": 12}],
        ["tensor", {"dtype": "float32", "shape": [0], "offset": 0, "nbytes": 10**30}],
        ["tensor", {"dtype": "float32", "shape": [0], "offset": 0, "nbytes": 2**45}],
        ["tensor", {"dtype": "float32", "shape": [3], "offset": 0, "nbytes": 12, "stride": [1, 1]}],
        ["tensor", {"dtype": "float32", "shape": [0], "offset": 0, "nbytes": 0, "full": {"shape": [9], "step": 0}}],
        ["list", 3],
        ["tensor", None],
    ],
)
def test_outputs_that_none_can_be_are_refused(tmp_path: Path, tree: Any) -> None:
    def edit(record: Any) -> None:
        record["answers"][0]["tree"] = tree

    refused(forged(three(tmp_path), edit, {VALUES: bytes(12)}), "its golden outputs cannot be read")


@pytest.mark.parametrize("change", [{"release": "2.6.0"}, {"run": "another"}])
def test_an_index_that_says_something_else_of_a_record_is_refused(tmp_path: Path, change: dict[str, str]) -> None:
    store = three(tmp_path)
    entries = store.entries()
    write_index(store.folder, {**entries, "a": replace(entries["a"], **change)})  # type: ignore[arg-type]
    refused(store, "index.json says torch")


@pytest.mark.parametrize("name", [RECORD, VALUES, ""])
@pytest.mark.parametrize("target", ["beside", "/dev/zero"])
def test_a_link_is_no_part_of_a_record(tmp_path: Path, name: str, target: str) -> None:
    """What it leads to is not in git, or has no end."""
    store = three(tmp_path)
    place = store.record_folder("a") / name
    place.rename(tmp_path / "beside")
    place.symlink_to(tmp_path / target)
    with pytest.raises(GoldenError, match="a link or no file"):
        store.record("a")


def test_a_pipe_in_the_place_of_a_file_is_not_waited_for(tmp_path: Path) -> None:
    store = three(tmp_path)
    path = store.record_folder("a") / VALUES
    path.unlink()
    os.mkfifo(path)
    with pytest.raises(GoldenError, match="a link or no file"):
        store.record("a")


def test_a_proposal_that_is_a_link_is_not_accepted_and_is_replaced_by_the_next(tmp_path: Path) -> None:
    store = propose(tmp_path, "x")
    proposal = store.folder / PROPOSED / "x"
    elsewhere = proposal.rename(tmp_path / "elsewhere")
    proposal.symlink_to(elsewhere)
    with pytest.raises(GoldenError, match="a link or no file"):
        accept(store, "x")
    propose(tmp_path, "x")
    assert (elsewhere / RECORD).exists()
    accept(store, "x")
    assert not store.record_folder("x").is_symlink()


def test_a_proposal_that_is_another_one_than_was_compared_is_not_accepted(tmp_path: Path) -> None:
    store = three(tmp_path)
    propose(tmp_path, "m", float32(7))
    compared = {"m": store.proposal("m")[1]}
    before = store.entries()
    propose(tmp_path, "m", float32(8))
    with pytest.raises(GoldenError, match="the proposal for m is another one by now"):
        store.accept(["m"], why(), compared)
    assert (store.proposed(), store.entries()) == (("m",), before)


def test_git_changes_no_byte_of_a_record(tmp_path: Path) -> None:
    """Values may look like text to it, with the ends of lines of Windows."""
    assert (three(tmp_path).folder / RECORDS / ATTRIBUTES).read_text() == "* -text\n"


def test_what_waits_is_ignored_by_git_wherever_the_folder_lies(tmp_path: Path) -> None:
    store = propose(tmp_path, "x")
    assert (store.folder / PROPOSED / IGNORED).read_text() == "*\n"
    assert store.proposed() == ("x",)
