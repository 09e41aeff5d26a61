"""What a golden bundle may say of its model."""

import hashlib
import json
import random
import struct
import tracemalloc
import zipfile
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from harness.checks.outputs.findings import output_findings
from harness.checks.outputs.outputs import compare_outputs
from harness.core.findings import status_of
from harness.core.golden import ARTIFACT, INPUTS, RECORD, RECORD_SCHEMA_VERSION, VALUES, Declared, GoldenRecord
from harness.core.models import Artifact, GivenArtifact, InputSet, ModelDeclaration
from harness.core.outcome import Status
from harness.core.errors import ExitCode, GoldenError, RunDirError
from harness.artifacts import bundle_members
from harness.artifacts.bundles import BundleStore, bundle_declaration, contradiction, write_bundle
from harness.artifacts.old_outputs import Remembered
from harness.artifacts.records import own_record
from harness.store.json import from_json
from harness.artifacts.tensors import checking
from harness.artifacts.tensors.outputs import Outputs
from harness.worker import wire
from tests.unit.builders.bundles import (
    DECLARED,
    REMEMBERED,
    answers,
    described,
    make_bundle,
    members_of,
    rewritten,
    write_members,
)
from tests.unit.builders.golden_records import propose
from tests.unit.builders.requests import PRODUCER, declaration, float32, golden_outputs, write_archive, write_artifact

HELD = Artifact(
    model="m",
    path="",
    digest="d",
    size_bytes=1,
    operators=(),
    inputs_dir="",
    input_sets=(InputSet(name="example"),),
)
FILES = {ARTIFACT: "0" * 64, INPUTS: "1" * 64, VALUES: "2" * 64}


def told(model: str = "m", **changes: Any) -> GoldenRecord:
    """Return what a healthy bundle says of itself, and what a changed one does."""
    return described(model, files=FILES, **{"artifact": HELD, **changes})


def test_a_healthy_description_contradicts_nothing() -> None:
    assert contradiction(told()) == ""
    assert contradiction(told(declared=Declared())) == ""


@pytest.mark.parametrize("name", ["", ".", "../evil", "a/b", "a b", "\x1b[2J", "and", "planted_wrong_value", "m" * 300])
def test_a_name_that_is_no_word_is_refused(name: str) -> None:
    assert contradiction(told(name, artifact=replace(HELD, model=name))).startswith("model: ")


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("tags", ("planted",)),
        ("tags", ("two words",)),
        ("devices", ()),
        ("devices", ("tpu",)),
        ("device", "tpu:0"),
        ("unordered", ("input[0]",)),
        ("tolerance", 0.0),
        ("tolerance", float("inf")),
        ("tolerance", float("nan")),
        ("computes_in", "int64"),
    ],
)
def test_what_no_fixture_may_declare_is_refused(key: str, value: Any) -> None:
    changed = {key: value} if key == "device" else {"declared": replace(DECLARED, **{key: value})}
    assert contradiction(told(**changed)).startswith(f"{key}: ")


def test_a_method_that_is_no_name_is_refused() -> None:
    assert contradiction(told(artifact=replace(HELD, reset="os.system('x')"))).startswith("artifact.reset: ")


def test_the_artifact_of_another_model_is_refused() -> None:
    assert "its artifact of 'other'" in contradiction(told(artifact=replace(HELD, model="other")))


def test_a_bundle_without_inputs_is_refused() -> None:
    assert "nothing was called" in contradiction(told(artifact=replace(HELD, input_sets=())))


@pytest.fixture
def bundle(tmp_path: Path) -> Path:
    """A healthy bundle of model ``m``."""
    return make_bundle(tmp_path)


def unpack(path: Path, folder: Path) -> GoldenRecord:
    """Unpack a bundle as a run does, and return its record."""
    store = store_of(path)
    (model,) = store.names()
    store.unpack(model, folder)
    return store.record(model)


def refused(path: Path, folder: Path, match: str) -> None:
    """Check that unpacking is refused, by the name of the file, with what to do."""
    with pytest.raises(GoldenError, match=match) as caught:
        unpack(path, folder)
    assert str(path) in caught.value.message
    assert caught.value.hint
    assert caught.value.exit_code is ExitCode.CONFIGURATION


def test_a_healthy_bundle_is_taken(bundle: Path, tmp_path: Path) -> None:
    assert unpack(bundle, tmp_path / "run").files.keys() == members_of(bundle).keys() - {RECORD}


def test_a_bundle_is_a_zip_of_what_a_golden_folder_holds(bundle: Path, tmp_path: Path) -> None:
    """Either way: unzipped it is a record, and a record that is zipped is a bundle."""
    folder = tmp_path / "record"
    with zipfile.ZipFile(bundle) as archive:
        archive.extractall(folder)
    record, sha256 = own_record(folder, "m")
    assert sha256 == bundle_declaration(bundle).source_digest
    store = propose(tmp_path, "m", float32(1, 2), float32(3, 4))
    proposed = store.folder / "proposed" / "m"
    zipped = write_members(tmp_path / "zipped.gate", {path.name: path.read_bytes() for path in proposed.iterdir()})
    found = unpacked(zipped, tmp_path / "run")
    assert same(found.golden, store.proposal("m")[2])
    assert unpack(bundle, tmp_path / "other") == record


@pytest.mark.parametrize(
    ("make", "match"),
    [
        (lambda path: path.write_bytes(b""), "is no golden bundle"),
        (lambda path: path.write_bytes(b"PK\x03\x04"), "truncated"),
        (lambda path: path.write_text("not a zip"), "is no golden bundle"),
        (write_archive, "is no golden bundle: it has no record.json"),
        (lambda path: path.unlink(), "cannot be opened"),
        (lambda path: (path.unlink(), path.mkdir()), "is no plain file"),
    ],
    ids=["empty", "head", "text", "artifact", "missing", "folder"],
)
def test_what_is_no_bundle_is_said_to_be_none(
    bundle: Path, tmp_path: Path, make: Callable[[Path], object], match: str
) -> None:
    make(bundle)
    refused(bundle, tmp_path / "run", match)
    with pytest.raises(GoldenError, match=match):
        bundle_declaration(bundle)


@pytest.mark.parametrize("share", [0.1, 0.5, 0.9, 0.99])
def test_a_truncated_bundle_is_refused(bundle: Path, tmp_path: Path, share: float) -> None:
    data = bundle.read_bytes()
    bundle.write_bytes(data[: int(len(data) * share)])
    refused(bundle, tmp_path / "run", "truncated|outside|lies")


def test_no_flipped_bit_changes_what_is_read(bundle: Path, tmp_path: Path) -> None:
    whole, members, chance = bundle.read_bytes(), members_of(bundle), random.Random(5)  # noqa: S311  a test
    taken = 0
    for _ in range(150):
        at, bit = chance.randrange(len(whole)), chance.randrange(8)
        bundle.write_bytes(whole[:at] + bytes([whole[at] ^ 1 << bit]) + whole[at + 1 :])
        try:
            found = unpack(bundle, tmp_path / "run")
        except GoldenError:
            continue
        taken += 1  # a bit that nobody reads: a time, a version
        assert found == from_json(members[RECORD], GoldenRecord)
        places = {ARTIFACT: "artifact.pt", INPUTS: "inputs/tensors.bin", VALUES: "values"}
        assert all((tmp_path / "run" / place).read_bytes() == members[name] for name, place in places.items())
    assert taken < 30


@pytest.mark.parametrize("name", [ARTIFACT, INPUTS, VALUES])
def test_a_member_that_was_changed_is_named(bundle: Path, tmp_path: Path, name: str) -> None:
    members = members_of(bundle)
    write_members(bundle, {**members, name: b"#" + members[name][1:]})
    refused(bundle, tmp_path / "run", f"{name} is not what its digest promises")


def test_a_bundle_that_unpacks_to_more_than_it_holds_is_refused(bundle: Path, tmp_path: Path) -> None:
    members = {**members_of(bundle), ARTIFACT: bytes(50_000_000)}
    write_members(bundle, members, zipfile.ZIP_DEFLATED)
    assert bundle.stat().st_size < 1_000_000
    refused(bundle, tmp_path / "run", "is packed or encrypted")
    assert not (tmp_path / "run").exists()


def test_members_that_lie_over_each_other_are_refused(bundle: Path, tmp_path: Path) -> None:
    """The entry of one member claims the bytes of all: each would be copied as often as there are entries."""
    data = bytearray(write_members(bundle, {**members_of(bundle), ARTIFACT: bytes(5000)}).read_bytes())
    sizes = 0
    at = data.index(b"PK\x01\x02")
    while data[at : at + 4] == b"PK\x01\x02":
        name_bytes, extra_bytes = struct.unpack("<HH", data[at + 28 : at + 32])
        if data[at + 46 : at + 46 + name_bytes] != RECORD.encode():
            size = 5000
            sizes += size
            data[at + 20 : at + 28] = struct.pack("<II", size, size)
            data[at + 42 : at + 46] = struct.pack("<I", 0)
        at += 46 + name_bytes + extra_bytes
    assert sizes > len(data)
    bundle.write_bytes(data)
    refused(bundle, tmp_path / "run", "described in two ways")


def test_a_member_that_is_there_twice_is_refused(bundle: Path, tmp_path: Path) -> None:
    with zipfile.ZipFile(bundle, "a") as archive, pytest.warns(UserWarning, match="Duplicate name"):
        archive.writestr(ARTIFACT, b"another")
    refused(bundle, tmp_path / "run", "more than once")


@pytest.mark.parametrize("name", ["../../evil.pt", "/etc/evil", "extra.txt", "inputs/../artifact"])
def test_a_member_of_another_name_is_refused_and_nothing_is_written(bundle: Path, tmp_path: Path, name: str) -> None:
    write_members(bundle, {**members_of(bundle), name: b"evil"})
    before = sorted(tmp_path.rglob("*"))
    refused(bundle, tmp_path / "run", "none of a bundle's|would leave the folder")
    assert sorted(tmp_path.rglob("*")) == before


@pytest.mark.parametrize("name", [VALUES, INPUTS])
def test_a_missing_member_is_named(bundle: Path, tmp_path: Path, name: str) -> None:
    rewritten(bundle, {name: None})
    refused(bundle, tmp_path / "run", f"has no '{name}'")


@pytest.mark.parametrize(
    ("key", "value", "match"),
    [
        ("digest", "0" * 64, "artifact is another artifact than record.json says"),
        ("digest", "../../../x", "artifact is another artifact than record.json says"),
        ("size_bytes", -5, "artifact has [0-9]+ bytes, and record.json promises -5"),
    ],
)
def test_an_artifact_that_is_not_the_described_one_is_refused(
    bundle: Path, tmp_path: Path, key: str, value: object, match: str
) -> None:
    artifact = json.loads(members_of(bundle)[RECORD])["artifact"]
    rewritten(bundle, {}, record={"artifact": {**artifact, key: value}})
    refused(bundle, tmp_path / "run", match)


def test_a_later_version_is_refused_with_the_way_out(bundle: Path, tmp_path: Path) -> None:
    rewritten(bundle, {}, record={"schema_version": RECORD_SCHEMA_VERSION + 1, "model": {"of": "another shape"}})
    refused(bundle, tmp_path / "run", f"version {RECORD_SCHEMA_VERSION + 1}, and this gate reads versions up to")
    with pytest.raises(GoldenError) as caught:
        bundle_declaration(bundle)
    assert "as new as the one that wrote it" in caught.value.hint


@pytest.mark.parametrize(
    "data", [b"", b"{", b"[1]", b"\xff", b'{"schema_version": 1}', b'{"schema_version": "one"}', b"[" * 100_000]
)
def test_a_record_that_is_none_is_refused(bundle: Path, tmp_path: Path, data: bytes) -> None:
    write_members(bundle, {**members_of(bundle), RECORD: data})
    refused(bundle, tmp_path / "run", "record.json is damaged or from another version")


@pytest.mark.parametrize("missing", [ARTIFACT, VALUES])
def test_a_record_without_a_digest_is_refused(bundle: Path, tmp_path: Path, missing: str) -> None:
    files = json.loads(members_of(bundle)[RECORD])["files"]
    rewritten(bundle, {}, record={"files": {name: digest for name, digest in files.items() if name != missing}})
    refused(bundle, tmp_path / "run", "does not have the digest of each member|names other files than")


def test_a_record_beyond_the_limit_is_neither_read_nor_written(
    bundle: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bundle_members, "LARGEST_RECORD", 10)
    refused(bundle, tmp_path / "run", f"{RECORD} has [0-9]+ bytes; at most 10 are read")
    with pytest.raises(GoldenError, match="at most 10 are read"):
        make_bundle(tmp_path / "other")
    assert list((tmp_path / "other").glob("*.gate")) == []
    assert list((tmp_path / "other").glob(".*")) == []


def test_an_artifact_is_copied_in_pieces(tmp_path: Path) -> None:
    """64 MiB of artifact are unpacked with 8 MiB of memory."""
    made_of = write_artifact(tmp_path / "made-of")
    with Path(made_of.path).open("r+b") as stream:
        stream.truncate(64 << 20)
    with Path(made_of.path).open("rb") as stream:
        digest = hashlib.file_digest(stream, "sha256").hexdigest()
    path = write_bundle(tmp_path, described(), replace(made_of, digest=digest, size_bytes=64 << 20), REMEMBERED)
    tracemalloc.start()
    try:
        BundleStore([bundle_declaration(path)]).unpack("m", tmp_path / "run")
        assert tracemalloc.get_traced_memory()[1] < 8 << 20
    finally:
        tracemalloc.stop()
    assert (tmp_path / "run" / "artifact.pt").stat().st_size == 64 << 20


def test_a_folder_that_cannot_be_written_is_a_run_dir_error(bundle: Path, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(RunDirError, match="cannot be written"):
        unpack(bundle, tmp_path / "file")
    with pytest.raises(RunDirError, match="cannot be written"):
        write_bundle(tmp_path / "file", described(), write_artifact(tmp_path / "made-of"), REMEMBERED)


def test_an_interrupted_writer_leaves_the_old_file_and_no_part(
    bundle: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = bundle.read_bytes()

    def interrupted(*_: object) -> object:
        assert list(tmp_path.glob(".m.gate.*"))
        raise KeyboardInterrupt

    monkeypatch.setattr("harness.artifacts.records.answers_of", interrupted)
    with pytest.raises(KeyboardInterrupt):
        make_bundle(tmp_path, declared=Declared())
    assert bundle.read_bytes() == before
    assert not list(tmp_path.glob(".*"))


def store_of(*paths: Path) -> BundleStore:
    return BundleStore([bundle_declaration(path) for path in paths])


def unpacked(path: Path, folder: Path, model: str = "m") -> Remembered:
    store = store_of(path)
    store.unpack(model, folder)
    return store.remembered(model, folder)


def same(one: Outputs, other: Outputs) -> bool:
    """Whether two records hold the same calls, bits and side effects."""
    comparison = compare_outputs("m", "alone", one, other)
    is_equal = any(call.equal for call in comparison.calls) and not any(call.tensors for call in comparison.calls)
    effects = {key: (sorted(found.changed), found.shared) for key, found in (one.effects or {}).items()}
    others = {key: (sorted(found.changed), found.shared) for key, found in (other.effects or {}).items()}
    return one.calls.keys() == other.calls.keys() and is_equal and effects == others


def test_what_the_old_release_answered_comes_out_as_it_went_in(tmp_path: Path) -> None:
    found = unpacked(make_bundle(tmp_path), tmp_path / "run")
    assert same(found.golden, REMEMBERED.golden)
    assert REMEMBERED.reference is not None
    assert found.reference is not None
    assert same(found.reference, REMEMBERED.reference)
    assert len(found.repeats) == 2
    assert all(same(one, other) for one, other in zip(found.repeats, REMEMBERED.repeats, strict=True))
    assert all(same(one, other) for one, other in zip(found.other_threads, REMEMBERED.other_threads, strict=True))
    assert found.numerics == REMEMBERED.numerics
    assert not same(found.golden, found.repeats[0])


def test_what_nobody_kept_is_not_there(tmp_path: Path) -> None:
    golden = golden_outputs(float32(1))
    found = unpacked(make_bundle(tmp_path, remembered=Remembered(golden=golden)), tmp_path / "run")
    assert (found.repeats, found.other_threads, found.reference, found.golden.effects) == ((), (), None, None)


def test_side_effects_come_out_with_their_values(tmp_path: Path) -> None:
    found = unpacked(make_bundle(tmp_path), tmp_path / "run").golden
    assert found.effects is not None
    spec = found.effects["example", 0].changed["input[0]"][1]
    values = np.frombuffer(found.buffer, dtype=np.float32, count=3, offset=spec["offset"])
    assert values.tolist() == [1, 2, 3]
    assert found.effects["example", 1].changed == {}


def test_equal_bytes_are_kept_once(tmp_path: Path) -> None:
    members = members_of(make_bundle(tmp_path))
    # 3 floats each of the golden, one repeat and the other threads; the reference has doubles; the rest is the same.
    assert len(members[VALUES]) == 3 * 12 + 24
    assert len(json.loads(members[RECORD])["answers"]) == 9


def test_equal_content_is_equal_bytes(tmp_path: Path) -> None:
    one, other = (make_bundle(tmp_path / name, work=tmp_path / f"work {name}") for name in ("a", "b"))
    assert one.read_bytes() == other.read_bytes()


def test_a_bundle_tells_no_paths_and_no_environment_variables(tmp_path: Path) -> None:
    text = members_of(make_bundle(tmp_path))[RECORD].decode()
    assert str(tmp_path) not in text
    assert "token" not in text
    assert store_of(tmp_path / "m.gate").record("m").producer == replace(PRODUCER, env_vars={})


def test_the_artifact_lies_in_the_file_as_it_is(tmp_path: Path) -> None:
    path = make_bundle(tmp_path)
    with zipfile.ZipFile(path) as archive:
        assert {entry.compress_type for entry in archive.infolist()} == {zipfile.ZIP_STORED}
        assert archive.testzip() is None
    assert (tmp_path / "made-of" / "m.pt").read_bytes() in path.read_bytes()


def test_a_bundle_declares_its_model(tmp_path: Path) -> None:
    path = make_bundle(tmp_path)
    found = bundle_declaration(path)
    assert (found.name, found.how, found.tags, found.where) == ("m", "file", ("ranking",), "m.gate")
    assert (found.reset, found.seed, found.unordered, found.tolerance) == ("reset_state", 7, ("output[*]",), 1e-3)
    assert found.given == GivenArtifact(path=str(path), bundle=True)
    assert bundle_declaration(make_bundle(tmp_path / "again", numerics={"matmul_precision": "high"})).source_digest != (
        found.source_digest
    )


def test_the_title_says_who_made_it(tmp_path: Path) -> None:
    one, two, three = (
        make_bundle(tmp_path, name, producer=replace(PRODUCER, torch=torch))
        for name, torch in (("a", "2.1.2"), ("b", "2.3.1"), ("c", "2.4.1"))
    )
    assert store_of(one).title() == "golden bundle made by torch 2.1.2"
    assert store_of(one, two).title() == "golden bundles made by torch 2.1.2 and torch 2.3.1"
    assert store_of(one, two, three).title() == "golden bundles made by torch 2.1.2 and 2 more"


def test_only_bundles_are_in_the_store(tmp_path: Path) -> None:
    path = make_bundle(tmp_path)
    bare: list[ModelDeclaration] = [
        declaration(name="zoo"),
        declaration(name="file", given=GivenArtifact(path="/x/file.pt")),
    ]
    store = BundleStore([*bare, bundle_declaration(path)])
    assert store.names() == ("m",)
    assert (store.record("m").device, store.record("m").producer.torch) == ("cpu", "2.1.2+cu121")
    with pytest.raises(GoldenError, match="there is no golden bundle of zoo"):
        store.record("zoo")


def twice(answers: list[Any]) -> None:
    answers.append(answers[0])


def deep(answers: list[Any]) -> None:
    for _ in range(150):
        answers[0]["tree"] = ["list", [answers[0]["tree"]]]


EDITS: dict[str, Callable[[list[Any]], object]] = {
    "no golden": lambda answers: [answer.update(run="repeat", index=9) for answer in answers[:2]],
    "digest": lambda answers: answers[0]["tree"][1].update(sha256="0" * 64),
    "offset": lambda answers: answers[0]["tree"][1].update(offset=4000),
    "run": lambda answers: answers[0].update(run="others"),
    "twice": twice,
    "sample": lambda answers: answers[0]["tree"][1].update(full={"shape": [3], "step": 0, "sha256": ""}),
    "stride": lambda answers: answers[0]["tree"][1].update(stride=[]),
    "deep": deep,
    "effects": lambda answers: answers[0].update(changed={"input[0]": ["tensor", None]}),
}


@pytest.mark.parametrize("edit", EDITS.values(), ids=EDITS)
def test_outputs_that_no_gate_wrote_are_refused_by_name(tmp_path: Path, edit: Callable[[list[Any]], object]) -> None:
    path = make_bundle(tmp_path)
    answers = json.loads(members_of(path)[RECORD])["answers"]
    edit(answers)
    rewritten(path, {}, record={"answers": answers})
    refused(path, tmp_path / "run", r"m\.gate: .*(cannot be read|no golden outputs|already, or is no run)")


def test_the_healthy_twin_of_those_is_taken(tmp_path: Path) -> None:
    path = make_bundle(tmp_path)
    rewritten(path, {})
    assert store_of(path).unpack("m", tmp_path / "run").path == str(tmp_path / "run" / "artifact.pt")


def test_inputs_that_no_worker_could_read_are_refused(tmp_path: Path) -> None:
    path = make_bundle(tmp_path)
    inputs = json.loads(members_of(path)[RECORD])["inputs"]
    inputs[0]["tree"][1]["nbytes"] = 10**12
    rewritten(path, {}, record={"inputs": inputs})
    refused(path, tmp_path / "run", r"m\.gate: its inputs cannot be read")


@pytest.mark.parametrize("lost", ["gap", "missing set", "unknown set"])
def test_golden_calls_that_are_not_those_of_the_input_sets_are_refused(tmp_path: Path, lost: str) -> None:
    path = make_bundle(tmp_path)
    told = json.loads(members_of(path)[RECORD])
    artifact, answers = told["artifact"], told["answers"]
    if lost == "gap":
        for answer in answers:
            answer["call"] *= 2
    elif lost == "missing set":
        artifact["input_sets"].append({"name": "other", "method": "forward"})
    else:
        artifact["input_sets"][0]["name"] = "other"
    rewritten(path, {}, record={"artifact": artifact, "answers": answers})
    refused(path, tmp_path / "run", "its golden outputs are not of the calls 0, 1")


def test_tensors_that_lie_over_each_other_are_refused_before_they_are_all_hashed(tmp_path: Path) -> None:
    path = make_bundle(tmp_path)
    data = bytes(1 << 16)
    answers = []
    for call in range(1000):
        part = data[call:]
        spec = {"dtype": "uint8", "shape": [len(part)], "stride": [1], "offset": call, "nbytes": len(part)}
        spec["sha256"] = hashlib.sha256(part).hexdigest()
        answers.append({"run": "golden", "index": 0, "input_set": "example", "call": call, "tree": ["tensor", spec]})
    rewritten(path, {VALUES: data}, record={"answers": answers})
    refused(path, tmp_path / "run", "its tensors lie over each other")


def test_a_tensor_that_is_named_too_often_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(checking, "MOST_TIMES", 1)
    refused(make_bundle(tmp_path), tmp_path / "run", "its tensors are more than 1 times what its file holds")


def test_a_bundle_of_one_tensor_in_many_answers_is_read_without_its_numbers(tmp_path: Path) -> None:
    """16 MiB of a quantized dtype named by 500 answers: decoded, they would be 64 GiB."""
    path = make_bundle(tmp_path)
    data = bytes(16 << 20)
    spec = {"dtype": "quint8", "shape": [len(data)], "stride": [1], "offset": 0, "nbytes": len(data)}
    spec |= {"sha256": hashlib.sha256(data).hexdigest(), "quantizer": {"scale": 1.0, "zero_point": 0}}
    answer = {"run": "golden", "index": 0, "input_set": "example", "tree": ["tensor", spec]}
    rewritten(path, {VALUES: data}, record={"answers": [{**answer, "call": call} for call in range(500)]})
    tracemalloc.start()
    try:
        assert store_of(path).unpack("m", tmp_path / "run").schedule == (("example", 500),)
        assert tracemalloc.get_traced_memory()[1] < 64 << 20
    finally:
        tracemalloc.stop()
