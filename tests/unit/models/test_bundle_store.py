"""A golden bundle stands in for the old release: what was put in comes out, and judges."""

import datetime as dt
import hashlib
import json
import tracemalloc
import zipfile
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from harness.correctness.judging import output_findings
from harness.correctness.outputs import compare_outputs
from harness.domain.findings import status_of
from harness.domain.golden import ARTIFACT, DESCRIPTION
from harness.domain.models import GivenArtifact, ModelDeclaration
from harness.domain.outcome import Status
from harness.errors import GoldenError
from harness.models import bundles
from harness.models.bundles import BundleStore
from harness.models.bundles import OUTPUTS_BIN, OUTPUTS_INDEX, bundle_declaration, read_bundle
from harness.models.old_outputs import Remembered
from harness.tensors.outputs import Outputs
from harness.worker import wire
from tests.unit.builders.requests import PRODUCER, declaration, float32, golden_outputs, write_artifact
from tests.unit.builders.bundles import DAY, REMEMBERED, answers, make_bundle, members_of, rewritten


def store_of(*paths: Path) -> BundleStore:
    return BundleStore([bundle_declaration(path) for path in paths])


def unpacked(path: Path, folder: Path, model: str = "m") -> Remembered:
    store = store_of(path)
    store.unpack(model, folder)
    return store.remembered(model, folder)


def same(one: Outputs, other: Outputs) -> bool:
    """Whether two records hold the same calls, bits and side effects."""
    comparison = compare_outputs("m", "alone", one, other)
    bits = [tensor.bit_equal for call in comparison.calls for tensor in call.tensors]
    effects = {key: (sorted(found.changed), found.shared) for key, found in (one.effects or {}).items()}
    others = {key: (sorted(found.changed), found.shared) for key, found in (other.effects or {}).items()}
    return one.calls.keys() == other.calls.keys() and all(bits) and bool(bits) and effects == others


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


def test_the_noise_of_the_old_release_decides_as_if_it_were_there(tmp_path: Path) -> None:
    old = Remembered(golden=answers(1, 2, 3), repeats=(answers(1, 2, 4),))
    kept = unpacked(make_bundle(tmp_path, remembered=old), tmp_path / "run")
    probe = answers(1, 2, 3.9)
    compared = compare_outputs("m", "alone", golden=kept.golden, probe=probe, repeats=kept.repeats)
    bare = compare_outputs("m", "alone", golden=kept.golden, probe=probe)
    assert status_of(output_findings(compared)) is Status.PASS
    assert status_of(output_findings(bare)) is Status.FAIL


def test_the_float64_reference_decides_as_if_the_old_release_were_there(tmp_path: Path) -> None:
    reference = golden_outputs(*[np.array([1, 2, 3], dtype=np.float64)] * 2)
    old = Remembered(golden=golden_outputs(float32(1, 2, 3.0002), float32(1, 2, 3.0002)), reference=reference)
    kept = unpacked(make_bundle(tmp_path, remembered=old), tmp_path / "run")
    probe = golden_outputs(float32(1, 2, 3.00003), float32(1, 2, 3.00003))
    compared = compare_outputs("m", "alone", golden=kept.golden, probe=probe, reference=kept.reference)
    bare = compare_outputs("m", "alone", golden=kept.golden, probe=probe)
    assert status_of(output_findings(compared)) is Status.PASS
    assert status_of(output_findings(bare)) is Status.FAIL


def test_artifact_and_inputs_are_unpacked_byte_for_byte(tmp_path: Path) -> None:
    path = make_bundle(tmp_path)
    artifact = store_of(path).unpack("m", tmp_path / "run")
    original = write_artifact(tmp_path / "made-of")
    assert Path(artifact.path).read_bytes() == Path(original.path).read_bytes()
    for name in (wire.TENSORS_BIN, wire.TENSORS_INDEX):
        assert (Path(artifact.inputs_dir) / name).read_bytes() == (Path(original.inputs_dir) / name).read_bytes()
    assert (artifact.digest, artifact.reset, artifact.seed) == (original.digest, original.reset, original.seed)
    assert artifact.inputs_digest


def test_the_unpacked_artifact_is_called_as_often_as_the_golden_was(tmp_path: Path) -> None:
    assert store_of(make_bundle(tmp_path)).unpack("m", tmp_path / "run").schedule == (("example", 2),)


def test_equal_bytes_are_kept_once(tmp_path: Path) -> None:
    members = members_of(make_bundle(tmp_path))
    # 3 floats each of the golden, one repeat and the other threads; the reference has doubles; the rest is the same.
    assert len(members[OUTPUTS_BIN]) == 3 * 12 + 24
    assert members[OUTPUTS_INDEX].count(b"\n") == 9


def test_equal_content_is_equal_bytes(tmp_path: Path) -> None:
    one, other = (make_bundle(tmp_path / name, work=tmp_path / f"work {name}") for name in ("a", "b"))
    assert one.read_bytes() == other.read_bytes()


def test_a_bundle_tells_no_paths_and_no_environment_variables(tmp_path: Path) -> None:
    text = members_of(make_bundle(tmp_path))[DESCRIPTION].decode()
    assert str(tmp_path) not in text
    assert "token" not in text
    assert read_bundle(tmp_path / "m.gate").producer == replace(PRODUCER, env_vars={})


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
    assert bundle_declaration(make_bundle(tmp_path / "again", created=dt.date(2027, 1, 1))).source_digest != (
        found.source_digest
    )


def test_the_title_says_who_made_it_and_when(tmp_path: Path) -> None:
    newer = replace(PRODUCER, torch="2.3.1")
    one = make_bundle(tmp_path, "a")
    two = make_bundle(tmp_path, "b", producer=newer)
    three = make_bundle(tmp_path, "c", producer=newer, created=dt.date(2026, 12, 1))
    assert store_of(one).title() == f"golden bundle made by torch 2.1.2+cu121 on {DAY}"
    assert store_of(one, two).title() == (
        "golden bundles made by torch 2.1.2+cu121 on 2026-11-21 and torch 2.3.1 on 2026-11-21"
    )
    assert store_of(one, two, three).title() == ("golden bundles made by torch 2.1.2+cu121 on 2026-11-21 and 2 more")


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


@pytest.mark.parametrize("lost", ["golden", "digest", "offset", "run", "twice", "sampled", "stride", "deep", "text"])
def test_outputs_that_no_gate_wrote_are_refused_by_name(tmp_path: Path, lost: str) -> None:
    path = make_bundle(tmp_path)
    text = members_of(path)[OUTPUTS_INDEX]
    first = text.splitlines(keepends=True)[0]
    deep = b'["list",[' * 150 + b'["none",null]' + b"]]" * 150
    tree = first[first.index(b'"tree":') + 7 : first.rindex(b"}")]
    changed = {
        "golden": text.replace(b'"golden"', b'"repeat"'),
        "digest": text.replace(b'"sha256":"', b'"sha256":"0', 1),
        "offset": text.replace(b'"offset":0', b'"offset":4000', 1),
        "run": text.replace(b'"threads"', b'"others"'),
        "twice": text + first,
        "sampled": text.replace(b'"nbytes"', b'"full":{"shape":[3],"step":0,"sha256":""},"nbytes"', 1),
        "stride": text.replace(b'"stride":[1]', b'"stride":[]', 1),
        "deep": text.replace(tree, deep, 1),
        "text": b"\xff\xfe\n" + text,
    }[lost]
    assert changed != text
    rewritten(path, {OUTPUTS_INDEX: changed})
    with pytest.raises(GoldenError, match=r"m\.gate: its golden outputs cannot be read") as caught:
        store_of(path).unpack("m", tmp_path / "run")
    assert "python -m harness pack" in caught.value.hint


def test_the_healthy_twin_of_those_is_taken(tmp_path: Path) -> None:
    path = make_bundle(tmp_path)
    rewritten(path, {})
    assert store_of(path).unpack("m", tmp_path / "run").path == str(tmp_path / "run" / ARTIFACT)


@pytest.mark.parametrize("lost", ["gap", "missing set", "unknown set"])
def test_golden_calls_that_are_not_those_of_the_input_sets_are_refused(tmp_path: Path, lost: str) -> None:
    path = make_bundle(tmp_path)
    members = members_of(path)
    artifact = json.loads(members[DESCRIPTION])["artifact"]
    text = members[OUTPUTS_INDEX]
    if lost == "gap":
        text = text.replace(b'"call":1', b'"call":2')
    elif lost == "missing set":
        artifact["input_sets"].append({"name": "other", "method": "forward"})
    else:
        artifact["input_sets"][0]["name"] = "other"
    rewritten(path, {OUTPUTS_INDEX: text}, description={"artifact": artifact})
    with pytest.raises(GoldenError, match="its golden outputs are not of the calls 0, 1"):
        store_of(path).unpack("m", tmp_path / "run")


def test_tensors_that_lie_over_each_other_are_refused_before_they_are_all_hashed(tmp_path: Path) -> None:
    path = make_bundle(tmp_path)
    members = members_of(path)
    data = bytes(1 << 16)
    lines = []
    for call in range(1000):
        part = data[call:]
        spec = {"dtype": "uint8", "shape": [len(part)], "stride": [1], "offset": call, "nbytes": len(part)}
        spec["sha256"] = hashlib.sha256(part).hexdigest()
        lines.append({"run": "golden", "index": 0, "set": "example", "call": call, "tree": ["tensor", spec]})
    text = "".join(json.dumps(line) + "\n" for line in lines).encode()
    rewritten(path, {**members, OUTPUTS_BIN: data, OUTPUTS_INDEX: text})
    with pytest.raises(GoldenError, match="line 2: its tensors lie over each other"):
        store_of(path).unpack("m", tmp_path / "run")


def test_a_tensor_that_is_named_too_often_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bundles, "MOST_TIMES", 1)
    with pytest.raises(GoldenError, match="its tensors are more than 1 times what its file holds"):
        unpacked(make_bundle(tmp_path), tmp_path / "run")


def test_a_bundle_of_one_tensor_in_many_lines_is_read_without_its_numbers(tmp_path: Path) -> None:
    """16 MiB of a quantized dtype named by 500 lines: decoded, they would be 64 GiB."""
    path = make_bundle(tmp_path)
    members = members_of(path)
    data = bytes(16 << 20)
    spec = {"dtype": "quint8", "shape": [len(data)], "stride": [1], "offset": 0, "nbytes": len(data)}
    spec |= {"sha256": hashlib.sha256(data).hexdigest(), "quantizer": {"scale": 1.0, "zero_point": 0}}
    line = {"run": "golden", "index": 0, "set": "example", "tree": ["tensor", spec]}
    text = "".join(json.dumps({**line, "call": call}) + "\n" for call in range(500)).encode()
    rewritten(path, {**members, OUTPUTS_BIN: data, OUTPUTS_INDEX: text})
    tracemalloc.start()
    try:
        assert store_of(path).unpack("m", tmp_path / "run").schedule == (("example", 500),)
        assert tracemalloc.get_traced_memory()[1] < 64 << 20
    finally:
        tracemalloc.stop()
