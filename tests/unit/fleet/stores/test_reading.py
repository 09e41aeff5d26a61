"""Stores are read as their servers do: what Triton serves, what TorchServe's manifest names, and files with requests."""

import gzip
import json
import zipfile
from pathlib import Path

import pytest

from harness.domain.fleet import FleetArtifact, StoreKind
from harness.errors import ConfigError, SelectionError
from harness.fleet.stores import reading
from harness.models.owners import FleetManifest, read_fleet_manifest
from harness.fleet.stores.reading import ReadStore, read_store
from harness.fleet.stores.sources import FolderStore
from harness.system.progress import Progress
from tests.unit.builders.archives import CODE, golden, torchscript, zipped

CONFIG = 'backend: "pytorch"\ninput { name: "x" data_type: TYPE_FP32 dims: [ 2, 6 ] }\n'


def read(folder: Path, manifest: FleetManifest | None = None) -> ReadStore:
    progress = Progress(enabled=False)
    return read_store(
        FolderStore(folder), manifest or FleetManifest(), {}, scratch=folder.parent / "scratch", progress=progress
    )


def by_path(found: ReadStore) -> dict[str, FleetArtifact]:
    return {item.path: item for item in found.artifacts}


def write(folder: Path, path: str, content: bytes | str) -> Path:
    place = folder / path
    place.parent.mkdir(parents=True, exist_ok=True)
    place.write_bytes(content.encode() if isinstance(content, str) else content)
    return place


@pytest.fixture
def store(tmp_path: Path) -> Path:
    (tmp_path / "store").mkdir()
    return tmp_path / "store"


def test_files_have_their_requests_and_what_the_manifest_says(store: Path) -> None:
    write(store, "ads/a.pt", torchscript())
    write(store, "ads/a.inputs.npz", b"numbers")
    write(store, "search/a.pt", torchscript(CODE.replace("relu", "gelu")))
    manifest = read_fleet_manifest('[[artifacts]]\nmatch = "ads/*"\nowner = "ads"\nseed = 7', file="fleet.toml")
    found = by_path(read(store, manifest))
    assert sorted(found) == ["ads/a.pt", "search/a.pt"]
    ads, search = found["ads/a.pt"], found["search/a.pt"]
    assert (ads.name, ads.owner, ads.serving.seed, ads.serving.inputs) == ("ads_a", "ads", 7, "ads/a.inputs.npz")
    assert ads.inputs_sha256 and ads.sha256 and ads.program != search.program
    assert (search.owner, search.serving.inputs, search.tags) == ("", "", ("search",))


def test_a_triton_repository_gives_what_triton_serves_as_it_serves_it(store: Path) -> None:
    write(store, "ranker/config.pbtxt", CONFIG)
    for version in (1, 2):
        write(store, f"ranker/{version}/model.pt", torchscript())
    write(store, "onnx/config.pbtxt", 'platform: "onnxruntime_onnx"')
    write(store, "onnx/1/model.onnx", b"onnx")
    found = read(store)
    (item,) = found.artifacts
    assert (item.path, item.name, item.kind) == ("ranker/2/model.pt", "ranker_2", StoreKind.TRITON)
    (asked,) = item.serving.requests[0]["inputs"]
    assert (asked["name"], asked["dims"], asked["dtype"]) == ("x", [2, 6], "float32")
    assert found.profiles[item.serving.profile] == ("serving.switches.inference_mode=true",)


def test_a_configuration_that_cannot_be_read_or_lies_about_its_file_is_a_row(store: Path) -> None:
    write(store, "broken/config.pbtxt", "max_batch_size: many")
    write(store, "broken/1/model.pt", torchscript())
    write(store, "lies/config.pbtxt", CONFIG + 'default_model_filename: "other.pt"')
    write(store, "lies/1/model.pt", torchscript())
    found = by_path(read(store))
    assert "broken/config.pbtxt: no configuration of Triton" in found["broken/config.pbtxt"].left_out
    assert "other.pt is not there" in found["lies/1/other.pt"].left_out
    assert all(not item.key for item in found.values())


def test_a_torchserve_archive_gives_the_file_that_its_manifest_names(store: Path) -> None:
    with zipfile.ZipFile(store / "dlrm.mar", "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("dlrm.pt", golden("dlrm"))
        archive.writestr("MAR-INF/MANIFEST.json", json.dumps({"model": {"serializedFile": "dlrm.pt"}}))
    write(store, "plain.pt", golden("dlrm"))
    found = by_path(read(store))
    served, plain = found["dlrm.mar"], found["plain.pt"]
    assert (served.kind, served.member, served.name) == (StoreKind.TORCHSERVE, "dlrm.pt", "dlrm")
    assert (served.program, served.weights, served.sha256) == (plain.program, plain.weights, plain.sha256)


@pytest.mark.parametrize(
    ("members", "said"),
    [
        ({}, "without"),
        ({"MAR-INF/MANIFEST.json": "{}"}, "without 'model'"),
        ({"MAR-INF/MANIFEST.json": '{"model": {"serializedFile": "../../etc/passwd"}}'}, "not in the archive"),
        ({"MAR-INF/MANIFEST.json": "["}, "no readable TorchServe archive"),
    ],
)
def test_a_torchserve_archive_that_names_nothing_is_a_row(store: Path, members: dict[str, str], said: str) -> None:
    with zipfile.ZipFile(store / "bad.mar", "w") as archive:
        for name, content in members.items():
            archive.writestr(name, content)
    (item,) = read(store).artifacts
    assert said in item.left_out


def test_a_torchserve_archive_that_unpacks_to_far_more_than_it_is_is_not_unpacked(
    store: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reading, "MOST_MORE_BYTES", 1 << 20)
    with zipfile.ZipFile(store / "bomb.mar", "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("m.pt", b"\0" * (2 << 20))
        archive.writestr("MAR-INF/MANIFEST.json", json.dumps({"model": {"serializedFile": "m.pt"}}))
    (item,) = read(store).artifacts
    assert item.left_out.startswith("zip_bomb")
    assert list((store.parent / "scratch").iterdir()) == []


def test_a_damaged_artifact_is_a_row_and_what_is_no_torchscript_a_note(store: Path) -> None:
    write(store, "a.pt", torchscript()[:200])
    write(store, "b.pt", b"\x89HDF\r\n\x1a\n" + b"\0" * 100)
    write(store, "c.pt", gzip.compress(b"x"))
    write(store, "d.pt", b"")
    found = read(store)
    assert {item.path: item.left_out.partition(":")[0] for item in found.artifacts} == {
        "a.pt": "damaged",
        "d.pt": "cannot be judged",
    }
    (note,) = found.notes
    assert "b.pt is no TorchScript" in note and "HDF5" in note and "gzip" in note


def test_an_exported_program_is_left_out_of_a_fleet_with_a_note(store: Path) -> None:
    program = zipped({"version": "8.2", "serialized_exported_program.json": "{}"})
    for name, content in {"net.pt": program, "net.pt2": program, "kept.pt": torchscript()}.items():
        write(store, name, content)
    found = read(store)
    assert "kept.pt" in {item.path for item in found.artifacts}
    assert not {"net.pt", "net.pt2"} & {item.path for item in found.artifacts}
    assert any("net.pt is no TorchScript: exported program" in note for note in found.notes)


def test_a_store_of_other_files_alone_is_refused(store: Path) -> None:
    write(store, "b.pt", b"\x89HDF\r\n\x1a\n" + b"\0" * 100)
    with pytest.raises(SelectionError, match="b.pt is no TorchScript"):
        read(store)


def test_a_name_that_no_plan_could_hold_is_a_row(store: Path) -> None:
    for name in ("lone\udcff.pt", "red\x1b[31m.pt"):
        write(store, name, torchscript())
    assert all("rename it" in item.left_out for item in read(store).artifacts)


def test_requests_in_two_files_are_refused(store: Path) -> None:
    for name in ("a.pt", "a.inputs.npz", "a.inputs.py"):
        write(store, name, torchscript())
    with pytest.raises(ConfigError, match="two files"):
        read(store)


def test_a_store_without_artifacts_is_refused(store: Path) -> None:
    write(store, "readme.txt", "nothing here")
    with pytest.raises(SelectionError, match="holds no artifact"):
        read(store)
