"""Stores are read as their servers do: what Triton serves, what TorchServe's manifest names, and files with requests."""

import gzip
import io
import json
import os
import sys
import tarfile
import zipfile
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import pytest

from harness.core.archive import OperatorRegistry, Programs
from harness.core.fleet import FleetArtifact, StoreKind
from harness.core.prediction import Prediction
from harness.core.errors import EnvironmentUnavailable, SelectionError
from harness.apps.fleet.stores import torchserve
from harness.artifacts.owners import FleetManifest, read_fleet_manifest
from harness.apps.fleet.stores.reading import ReadStore, read_store
from harness.apps.fleet.stores.sources import FolderStore, Listed
from harness.store.codec import digest
from harness.machine.progress import Progress
from tests.unit.builders.archives import CODE, golden, registry, torchscript, zipped

CONFIG = 'backend: "pytorch"\ninput { name: "x" data_type: TYPE_FP32 dims: [ 2, 6 ] }\n'


def read(
    folder: Path, manifest: FleetManifest | None = None, registries: Mapping[str, OperatorRegistry] | None = None
) -> ReadStore:
    return read_store(
        FolderStore(folder),
        manifest or FleetManifest(),
        registries or {},
        scratch=folder.parent / "scratch",
        progress=Progress(enabled=False),
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
    monkeypatch.setattr(torchserve, "MOST_MORE_BYTES", 1 << 20)
    with zipfile.ZipFile(store / "bomb.mar", "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("m.pt", b"\0" * (2 << 20))
        archive.writestr("MAR-INF/MANIFEST.json", json.dumps({"model": {"serializedFile": "m.pt"}}))
    (item,) = read(store).artifacts
    assert item.left_out.startswith("zip_bomb")
    assert list((store.parent / "scratch").iterdir()) == []


def test_a_damaged_artifact_is_a_row_and_what_is_no_torchscript_is_counted(store: Path) -> None:
    write(store, "a.pt", torchscript()[:200])
    write(store, "b.pt", b"\x89HDF\r\n\x1a\n" + b"\0" * 100)
    write(store, "c.pt", gzip.compress(b"x"))
    write(store, "d.pt", b"")
    found = read(store)
    assert {item.path: item.left_out.partition(":")[0] for item in found.artifacts} == {
        "a.pt": "damaged",
        "c.pt": "cannot be judged",
        "d.pt": "cannot be judged",
    }
    assert [(item.path, item.reason) for item in found.unjudged] == [("b.pt", "is no TorchScript: HDF5 file")]


@pytest.mark.parametrize(("match", "is_row"), [("[b].pt", False), ("b.pt", True)])
def test_what_the_manifest_names_is_a_row_whatever_it_is_by_now(store: Path, match: str, is_row: bool) -> None:
    write(store, "a.pt", torchscript())
    write(store, "b.pt", b"\x89HDF\r\n\x1a\n" + b"\0" * 100)
    manifest = FleetManifest(entries=((match, {"owner": "vision"}),))
    rows = {item.name: (item.owner, item.left_out) for item in read(store, manifest).artifacts if item.left_out}
    assert rows == ({"b": ("vision", "cannot be judged: is no TorchScript: HDF5 file")} if is_row else {})


def program(minor: int = 2) -> bytes:
    said = {"schema_version": {"major": 8, "minor": minor}}
    return zipped({"version": f"8.{minor}", "serialized_exported_program.json": json.dumps(said)})


PACKAGE = zipped({"data/aotinductor/model/a.so": "no library", "data/aotinductor/model/a_metadata.json": "{}"})


def test_programs_and_packages_are_artifacts_whose_content_is_the_whole_file(store: Path) -> None:
    files = {"net.pt": program(), "net.pt2": program(), "other.pt2": program(1), "kept.pt": torchscript()}
    for name, content in {**files, "pack.pt2": PACKAGE}.items():
        write(store, name, content)
    found = by_path(read(store))
    assert {path: item.loaded_as.value for path, item in found.items()} == {
        "net.pt": "program",
        "net.pt2": "program",
        "other.pt2": "program",
        "pack.pt2": "package",
        "kept.pt": "torchscript",
    }
    for path, item in found.items():
        assert item.left_out == "" and item.notes == ()
        assert path == "kept.pt" or (item.program, item.weights) == (item.sha256, "")
    assert found["net.pt"].program == found["net.pt2"].program != found["other.pt2"].program


@pytest.mark.parametrize(
    ("torch", "reads", "predicted", "why"),
    [
        ("2.6.0", Programs(schema=(8, 2), packages=True), Prediction.LOADS, ""),
        ("2.1.2", Programs(schema=(4,)), Prediction.FAILS, "a newer schema, 8.2; torch 2.1.2 reads 4"),
        ("1.13.1", Programs(), Prediction.FAILS, "torch 1.13.1 has no torch.export.load"),
    ],
)
def test_what_a_release_does_with_a_program_is_predicted(
    store: Path, torch: str, reads: Programs, predicted: Prediction, why: str
) -> None:
    write(store, "net.pt2", program())
    write(store, "pack.pt2", PACKAGE)
    found = by_path(read(store, registries={"new": replace(registry(torch), programs=reads)}))
    assert found["net.pt2"].predictions == {"new": predicted}
    assert why in found["net.pt2"].why and bool(found["net.pt2"].why) is bool(why)
    assert ("does not load packages of AOTInductor" in found["pack.pt2"].why) is not reads.packages


def test_an_exported_program_can_be_left_out(store: Path) -> None:
    for name, content in {"net.pt": program(), "net.pt2": program(), "kept.pt": torchscript()}.items():
        write(store, name, content)
    said = '[[artifacts]]\nmatch = "net.*"\nleave_out = "judged by compat"'
    found = read(store, read_fleet_manifest(said, file="fleet.toml"))
    assert sorted(by_path(found)) == ["kept.pt"] and found.notes == ()
    assert {item.path: item.reason for item in found.unjudged} == dict.fromkeys(
        ("net.pt", "net.pt2"), "fleet.toml leaves it out: judged by compat"
    )


def test_two_models_of_one_name_are_two_artifacts(store: Path) -> None:
    """Of these, one was known by the name of the other, whose verdict it then had."""
    for folder in ("prod", "staging", "eu/prod"):
        write(store, f"{folder}/ranker/config.pbtxt", CONFIG)
        write(store, f"{folder}/ranker/1/model.pt", torchscript())
    for path in ("prod/ranker_1.pt", "ranker_1.pt", "prod_ranker_1.pt", "prod/ranker.1.pt"):
        write(store, path, torchscript())
    for path in ("prod/a.mar", "staging/a.mar"):
        mar(store / path, {"m.pt": torchscript()}, "m.pt")
    found = read(store).artifacts
    assert len({item.path for item in found}) == len(found) == 9
    assert len({item.name for item in found}) == 9
    assert {item.path: item.name for item in found}["eu/prod/ranker/1/model.pt"] == "eu_prod_ranker_1"


def mar(path: Path, members: dict[str, bytes], served: str = "", form: str = "zip", folder: str = "./") -> None:
    """Write an archive as torch-model-archiver does, which puts all of a tar into a folder of the model's name."""
    said = {"model": {"modelName": "m", **({"serializedFile": served} if served else {})}}
    content = {**members, "MAR-INF/MANIFEST.json": json.dumps(said).encode()}
    path.parent.mkdir(parents=True, exist_ok=True)
    if form == "zip":
        with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
            for name, data in content.items():
                archive.writestr(name, data)
        return
    with tarfile.open(path, "w:gz") as tar:
        for name, data in content.items():
            info = tarfile.TarInfo(f"{folder}{name}")
            info.size = len(data)
            tar.addfile(info, io.BytesIO(data))


@pytest.mark.parametrize(("name", "form"), [("m.mar", "zip"), ("m.mar", "tar"), ("m.tar.gz", "tar"), ("m.tgz", "tar")])
def test_every_model_of_a_torchserve_archive_is_an_artifact_whatever_its_form(
    store: Path, name: str, form: str
) -> None:
    other = torchscript(CODE.replace("relu", "gelu"))
    members = {"b/second.pt": other, "first.bin": torchscript(), "handler.py": b"", "w.pth": b"\x89HDF\r\n\x1a\n"}
    mar(store / name, members, "first.bin", form)
    found = read(store)
    assert [(item.path, item.member, item.name, item.left_out) for item in found.artifacts] == [
        (name, "first.bin", "m", ""),
        (name, "b/second.pt", "m_second", ""),
    ]
    assert found.artifacts[0].program != found.artifacts[1].program
    assert [(item.path, item.member) for item in found.unjudged] == [(name, "w.pth")]


@pytest.mark.parametrize("folder", ["./", "", "m/"])
def test_a_tar_has_its_files_in_a_folder_or_not(store: Path, folder: str) -> None:
    mar(store / "m.tar.gz", {"first.pt": torchscript(), "second.pt": torchscript()}, "first.pt", "tar", folder)
    inside = folder.removeprefix("./")
    found = {item.member: item.name for item in read(store).artifacts}
    assert found == {f"{inside}first.pt": "m", f"{inside}second.pt": "m_second"}


def test_models_of_one_name_in_one_archive_are_told_apart(store: Path) -> None:
    members = {f"{folder}/m.pt": torchscript() for folder in "abc"}
    mar(store / "m.mar", members)
    mar(store / "m" / "m.mar", members, "b/m.pt")
    found = read(store).artifacts
    assert len({item.name for item in found}) == len({(item.path, item.member) for item in found}) == len(found) == 6


def test_a_manifest_means_an_archive_or_one_model_of_it(store: Path) -> None:
    mar(store / "m.mar", {"a.pt": torchscript(), "b.pt": torchscript()}, "a.pt")
    said = '[[artifacts]]\nmatch = "m.mar"\nowner = "ads"\n[[artifacts]]\nmatch = "m.mar/b.pt"\nseed = 7'
    found = read(store, read_fleet_manifest(said, file="fleet.toml"))
    assert [(item.owner, item.serving.seed) for item in found.artifacts] == [("ads", 0), ("ads", 7)]
    assert found.notes == ()


@pytest.mark.parametrize(
    ("name", "content", "said"),
    [
        ("data.tar.gz", gzip.compress(b"x" * 600, mtime=0), "damaged"),
        ("data.tgz", b"no gzip", "damaged"),
        ("m.mar", b"\x1f\x8b", "damaged"),
        ("m.mar", gzip.compress(b"", mtime=0), "damaged"),
        ("m.mar", gzip.compress(b"\0" * 1024, mtime=0), "without MAR-INF"),
    ],
)
def test_an_archive_that_cannot_be_read_is_a_row(store: Path, name: str, content: bytes, said: str) -> None:
    write(store, name, content)
    (item,) = read(store).artifacts
    assert said in item.left_out


def test_an_archive_of_something_else_and_one_of_an_eager_model_are_counted(store: Path) -> None:
    write(store, "kept.pt", torchscript())
    with tarfile.open(store / "data.tar.gz", "w:gz") as tar:
        tar.addfile(tarfile.TarInfo("images/1.png"), io.BytesIO())
    mar(store / "eager.mar", {"w.pth": b"\x89HDF\r\n\x1a\n", "model.py": b""}, "w.pth")
    mar(store / "code.mar", {"handler.py": b""})
    found = read(store)
    assert sorted(by_path(found)) == ["kept.pt"]
    assert [item.path for item in found.unjudged] == ["code.mar", "data.tar.gz", "eager.mar"]


def test_a_tar_that_unpacks_to_far_more_than_it_is_is_not_read_to_its_end(
    store: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(torchserve, "MOST_MORE_BYTES", 1 << 20)
    mar(store / "m.mar", {"a.pt": b"\0" * (8 << 20)}, "a.pt", "tar")
    (item,) = read(store).artifacts
    assert item.left_out.startswith("zip_bomb")


def test_what_triton_serves_otherwise_or_not_at_all_is_counted_and_torchscript_below_it_is_judged(store: Path) -> None:
    def model(name: str, config: str, *paths: str) -> None:
        write(store, f"{name}/config.pbtxt", config)
        for path in paths:
            write(store, f"{name}/{path}", torchscript())

    model("plain", CONFIG, "1/model.pt", "2/model.pt", "2/helper.pt")
    model("completed", CONFIG.replace('backend: "pytorch"', ""), "1/model.pt")
    model("onnx", 'platform: "onnxruntime_onnx"', "1/model.onnx")
    model("nothing", "max_batch_size: 2", "1/model.bin")
    model("python", 'backend: "python"', "1/model.py", "1/weights/encoder.pt")
    model("ensemble", 'platform: "ensemble"')
    model("empty", CONFIG)
    found = read(store)
    assert {item.path: item.kind.value for item in found.artifacts} == {
        "plain/2/model.pt": "triton",
        "plain/2/helper.pt": "file",
        "completed/1/model.pt": "triton",
        "python/1/weights/encoder.pt": "file",
    }
    assert by_path(found)["completed/1/model.pt"].serving.requests
    assert {item.path: item.reason.removeprefix("a model of Triton that ") for item in found.unjudged} == {
        "plain/1/model.pt": "a version that Triton does not serve, by its version_policy",
        "onnx/config.pbtxt": "is served by onnxruntime_onnx, not by PyTorch",
        "nothing/config.pbtxt": "names no backend, and is no model.pt",
        "python/config.pbtxt": "is served by python, not by PyTorch",
        "ensemble/config.pbtxt": "is served by ensemble, not by PyTorch",
        "empty/config.pbtxt": "a model of Triton without a version that it serves",
    }
    assert found.notes == ("not looked at: 3 other files (.bin 1, .onnx 1, .py 1)",)


INPUT = 'input { name: "ARGS[0]" data_type: TYPE_FP32 dims: [ 2, 6 ] }'


@pytest.mark.parametrize(
    ("config", "content", "left_out"),
    [
        ('platform: "torch_aoti"', PACKAGE, ""),
        ('backend: "pytorch" platform: "torch_aoti"', PACKAGE, ""),
        ('backend: "pytorch" default_model_filename: "model.pt2"', PACKAGE, ""),  # nothing tells how it is loaded
        ("", PACKAGE, ""),  # as Triton completes it
        ('platform: "torch_aoti"', program(), "is an exported program, and Triton's PyTorch backend loads archives"),
        ('backend: "pytorch" default_model_filename: "model.pt2"', program(), "is an exported program, and Triton's"),
        (
            'platform: "torch_aoti"',
            torchscript(),
            "is a TorchScript archive, and Triton loads a package of AOTInductor",
        ),
        (
            'platform: "pytorch_libtorch" default_model_filename: "model.pt2"',
            PACKAGE,
            "is a package of AOTInductor, and Triton loads a TorchScript archive there, by its platform",
        ),
    ],
)
def test_what_triton_does_not_load_as_its_platform_says_is_a_row(
    store: Path, config: str, content: bytes, left_out: str
) -> None:
    write(store, "aoti/config.pbtxt", f"{config}\n{INPUT}")
    write(store, "aoti/1/model.pt2", content)
    (item,) = read(store).artifacts
    assert (item.path, item.kind) == ("aoti/1/model.pt2", StoreKind.TRITON)
    assert item.left_out.startswith(left_out) and bool(item.left_out) is bool(left_out)
    if not left_out:
        assert item.loaded_as.value == "package" and item.serving.requests[0]["inputs"][0]["name"] == "ARGS[0]"


def test_a_state_dict_where_torchscript_is_served_is_a_row(store: Path) -> None:
    write(store, "weights/config.pbtxt", CONFIG)
    write(store, "weights/1/model.pt", b"\x89HDF\r\n\x1a\n" + b"\0" * 100)
    (item,) = read(store).artifacts
    assert item.left_out.startswith("is no TorchScript, which PyTorch's backend loads: HDF5 file")


def test_a_repository_is_not_read_without_protobuf(store: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write(store, "ranker/config.pbtxt", CONFIG)
    write(store, "ranker/1/model.pt", torchscript())
    write(store, "kept.pt", torchscript())
    monkeypatch.setitem(sys.modules, "google.protobuf", None)
    with pytest.raises(EnvironmentUnavailable, match="needs protobuf, which is not installed; pip install") as error:
        read(store)
    assert error.value.exit_code == 3


def test_links_to_folders_are_artifacts_rows_or_counted(store: Path) -> None:
    write(store, "pool/a.pt", torchscript())
    write(store.parent, "outside/b.pt", torchscript())
    (store / "prod").symlink_to("pool")
    (store / "out").symlink_to(store.parent / "outside")
    (store / "pool" / "up").symlink_to("..")
    (store / "gone.pt").symlink_to("nowhere.pt")
    os.mkfifo(store / "pipe.pt")
    found = read(store)
    assert {item.path: item.left_out for item in found.artifacts} == {
        "pool/a.pt": "",
        "prod/a.pt": "",
        "out": "spurious-link: out is a link that leads out of the store",
        "gone.pt": "spurious-vanished: gone.pt is a link to nothing",
        "pipe.pt": "spurious-vanished: pipe.pt is no plain file",
    }
    assert {item.path for item in found.unjudged} == {"pool/up", "prod/up"}


class Objects:
    """A store of any keys, in memory."""

    name = "s3://bucket"
    is_here = False

    def __init__(self, folder: Path, objects: dict[str, bytes]) -> None:
        self._folder, self._objects = folder, objects

    def files(self) -> tuple[Listed, ...]:
        return tuple(Listed(path, len(data)) for path, data in sorted(self._objects.items()))

    def local(self, listed: Listed) -> Path:
        return write(self._folder, digest(listed.path) + ".pt", self._objects[listed.path])


def test_what_runs_code_is_told_where_the_store_is_elsewhere(tmp_path: Path, store: Path) -> None:
    objects = {"a.pt": torchscript(), "a.inputs.py": b"", "b.pt": torchscript(), "b.inputs.npz": b""}
    objects |= {"c.pt2": program(), "d.pt2": PACKAGE, "d.inputs.py": b""}
    progress = Progress(enabled=False)
    far = read_store(
        Objects(tmp_path / "local", objects), FleetManifest(), {}, scratch=tmp_path / "scratch", progress=progress
    )
    assert {item.path: any("--trust" in note for note in item.notes) for item in far.artifacts} == {
        "a.pt": True,
        "b.pt": False,
        "c.pt2": True,
        "d.pt2": True,
    }
    (told,) = by_path(far)["d.pt2"].notes
    assert told == (
        "its requests, d.inputs.py, are a program and it is a package of AOTInductor, which runs code when it is loaded,"
        " from outside of this machine: fleet run --trust runs it"
    )
    for path, data in objects.items():
        write(store, path, data)
    assert {item.notes for item in read(store).artifacts} == {()}


def test_keys_that_a_folder_would_take_for_one_are_artifacts_of_their_own(tmp_path: Path) -> None:
    keys = (
        "a.pt",
        "/a.pt",
        "//a.pt",
        "ads/a.pt",
        "ads//a.pt",
        "./a.pt",
        "ads/../a.pt",
        "m/config.pbtxt",
        "m/1//model.pt",
    )
    objects = dict.fromkeys((*keys, "n//config.pbtxt", "n//1/model.pt", "ads/a.inputs.npz"), torchscript())
    store = Objects(
        tmp_path / "local", objects | {"m/config.pbtxt": CONFIG.encode(), "n//config.pbtxt": CONFIG.encode()}
    )
    progress = Progress(enabled=False)
    found = read_store(store, FleetManifest(), {}, scratch=tmp_path / "scratch", progress=progress)
    expected = {*keys, "n//1/model.pt"} - {"m/config.pbtxt"}
    assert {item.path for item in found.artifacts} == expected
    assert len({item.name for item in found.artifacts}) == len(expected)
    assert {item.path for item in found.artifacts if item.serving.inputs} == {"ads/a.pt"}


def test_a_store_of_other_files_alone_is_refused(store: Path) -> None:
    write(store, "b.pt", b"\x89HDF\r\n\x1a\n" + b"\0" * 100)
    with pytest.raises(SelectionError, match="b.pt is no TorchScript"):
        read(store)


def test_a_name_that_no_plan_could_hold_is_a_row(store: Path) -> None:
    for name in ("lone\udcff.pt", "red\x1b[31m.pt"):
        write(store, name, torchscript())
    assert all("rename it" in item.left_out for item in read(store).artifacts)


def test_requests_in_two_files_are_the_row_of_their_artifact(store: Path) -> None:
    for name in ("a.pt", "a.inputs.npz", "a.inputs.py", "b.pt"):
        write(store, name, torchscript())
    first, second = read(store).artifacts
    assert "in two files, a.inputs.npz and a.inputs.py: keep one" in first.left_out
    assert (second.path, second.left_out) == ("b.pt", "")


def test_a_folder_that_may_not_be_listed_is_a_row(store: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("a.pt", "closed/b.pt"):
        write(store, name, torchscript())
    listing = os.scandir

    def scandir(folder: Path) -> object:  # for root every folder is open
        if folder == store / "closed":
            raise PermissionError(13, "Permission denied")
        return listing(folder)

    monkeypatch.setattr(os, "scandir", scandir)
    first, closed = read(store).artifacts
    assert (first.path, first.left_out) == ("a.pt", "")
    assert (closed.path, closed.left_out) == ("closed", "is a folder that cannot be listed: what it holds is not known")


def test_a_store_without_artifacts_is_refused(store: Path) -> None:
    write(store, "readme.txt", "nothing here")
    with pytest.raises(SelectionError, match="holds no artifact"):
        read(store)
