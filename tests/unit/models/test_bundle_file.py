"""A bundle comes from anywhere: whatever was done to it, it is refused by name, or it is what was written."""

import hashlib
import json
import random
import struct
import tracemalloc
import zipfile
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from harness.domain.golden import ARTIFACT, BUNDLE_SCHEMA_VERSION, DESCRIPTION
from harness.errors import ExitCode, GoldenError, RunDirError
from harness.models import bundles
from harness.models.bundles import BundleStore
from harness.models.bundles import write_bundle
from harness.models.bundles import INPUTS_INDEX, OUTPUTS_BIN, bundle_declaration, read_bundle, unpack_bundle
from tests.unit.builders.requests import write_archive, write_artifact
from tests.unit.builders.bundles import REMEMBERED, described, make_bundle, members_of, rewritten, write_members


@pytest.fixture
def bundle(tmp_path: Path) -> Path:
    """A healthy bundle of model ``m``."""
    return make_bundle(tmp_path)


def refused(path: Path, folder: Path, match: str) -> None:
    """Check that unpacking is refused, by the name of the file, with what to do."""
    with pytest.raises(GoldenError, match=match) as caught:
        unpack_bundle(path, folder)
    assert str(path) in caught.value.message
    assert caught.value.hint
    assert caught.value.exit_code is ExitCode.CONFIGURATION


def test_a_healthy_bundle_is_taken(bundle: Path, tmp_path: Path) -> None:
    assert unpack_bundle(bundle, tmp_path / "run").model == "m"
    assert read_bundle(bundle).files.keys() == members_of(bundle).keys() - {DESCRIPTION}


@pytest.mark.parametrize(
    ("make", "match"),
    [
        (lambda path: path.write_bytes(b""), "is no golden bundle"),
        (lambda path: path.write_bytes(b"PK\x03\x04"), "truncated"),
        (lambda path: path.write_text("not a zip"), "is no golden bundle"),
        (write_archive, "is no golden bundle: it has no bundle.json"),
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
            found = unpack_bundle(bundle, tmp_path / "run")
        except GoldenError:
            continue
        taken += 1  # a bit that nobody reads: a time, a version
        assert found == bundles._decoded(bundle, members[DESCRIPTION])
        assert all((tmp_path / "run" / name).read_bytes() == members[name] for name in found.files)
    assert taken < 30


@pytest.mark.parametrize("name", [ARTIFACT, OUTPUTS_BIN, INPUTS_INDEX])
def test_a_member_that_was_changed_is_named(bundle: Path, tmp_path: Path, name: str) -> None:
    members = members_of(bundle)
    write_members(bundle, {**members, name: b"x" + members[name][1:]})
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
        if data[at + 46 : at + 46 + name_bytes] != DESCRIPTION.encode():
            size = 5000
            sizes += size
            data[at + 20 : at + 28] = struct.pack("<II", size, size)
            data[at + 42 : at + 46] = struct.pack("<I", 0)
        at += 46 + name_bytes + extra_bytes
    assert sizes > len(data)
    bundle.write_bytes(data)
    refused(bundle, tmp_path / "run", "lie over each other")


def test_a_member_that_is_there_twice_is_refused(bundle: Path, tmp_path: Path) -> None:
    with zipfile.ZipFile(bundle, "a") as archive, pytest.warns(UserWarning, match="Duplicate name"):
        archive.writestr(ARTIFACT, b"another")
    refused(bundle, tmp_path / "run", "more than once")


@pytest.mark.parametrize("name", ["../../evil.pt", "/etc/evil", "extra.txt", "inputs/../artifact.pt"])
def test_a_member_of_another_name_is_refused_and_nothing_is_written(bundle: Path, tmp_path: Path, name: str) -> None:
    write_members(bundle, {**members_of(bundle), name: b"evil"})
    before = sorted(tmp_path.rglob("*"))
    refused(bundle, tmp_path / "run", "none of a bundle's|would leave the folder")
    assert sorted(tmp_path.rglob("*")) == before


@pytest.mark.parametrize("name", [OUTPUTS_BIN, INPUTS_INDEX])
def test_a_missing_member_is_named(bundle: Path, tmp_path: Path, name: str) -> None:
    rewritten(bundle, {name: None})
    refused(bundle, tmp_path / "run", f"has no '{name}'")


@pytest.mark.parametrize(
    ("key", "value", "match"),
    [
        ("digest", "0" * 64, "artifact.pt is another than bundle.json promises"),
        ("digest", "../../../x", "artifact.pt is another than bundle.json promises"),
        ("size_bytes", -5, "artifact.pt has [0-9]+ bytes, and bundle.json promises -5"),
    ],
)
def test_an_artifact_that_is_not_the_described_one_is_refused(
    bundle: Path, tmp_path: Path, key: str, value: object, match: str
) -> None:
    artifact = json.loads(members_of(bundle)[DESCRIPTION])["artifact"]
    rewritten(bundle, {}, description={"artifact": {**artifact, key: value}})
    refused(bundle, tmp_path / "run", match)


def test_a_later_version_is_refused_with_the_way_out(bundle: Path, tmp_path: Path) -> None:
    rewritten(bundle, {}, description={"schema_version": BUNDLE_SCHEMA_VERSION + 1, "model": {"of": "another shape"}})
    refused(bundle, tmp_path / "run", f"version {BUNDLE_SCHEMA_VERSION + 1}, and this gate reads versions up to")
    with pytest.raises(GoldenError) as caught:
        bundle_declaration(bundle)
    assert "as new as the one that packed it" in caught.value.hint


@pytest.mark.parametrize(
    "data", [b"", b"{", b"[1]", b"\xff", b'{"schema_version": 1}', b'{"schema_version": "one"}', b"[" * 100_000]
)
def test_a_description_that_is_none_is_refused(bundle: Path, tmp_path: Path, data: bytes) -> None:
    write_members(bundle, {**members_of(bundle), DESCRIPTION: data})
    refused(bundle, tmp_path / "run", "bundle.json is not what a bundle holds")


def test_a_description_without_a_digest_is_refused(bundle: Path, tmp_path: Path) -> None:
    files = json.loads(members_of(bundle)[DESCRIPTION])["files"]
    rewritten(bundle, {}, description={"files": {ARTIFACT: files[ARTIFACT]}})
    refused(bundle, tmp_path / "run", "does not have the digest of each member")


def test_an_index_beyond_the_limit_is_neither_read_nor_written(
    bundle: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(bundles.LARGEST, INPUTS_INDEX, 10)
    refused(bundle, tmp_path / "run", f"{INPUTS_INDEX} has [0-9]+ bytes; at most 10 are read")
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
    assert (tmp_path / "run" / ARTIFACT).stat().st_size == 64 << 20


def test_a_folder_that_cannot_be_written_is_a_run_dir_error(bundle: Path, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(RunDirError, match="cannot be written"):
        unpack_bundle(bundle, tmp_path / "file")
    with pytest.raises(RunDirError, match="cannot be written"):
        write_bundle(tmp_path / "file", described(), write_artifact(tmp_path / "made-of"), REMEMBERED)


def test_an_interrupted_writer_leaves_the_old_file_and_no_part(
    bundle: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = bundle.read_bytes()

    def interrupted(*_: object) -> object:
        assert list(tmp_path.glob(".m.gate.*"))
        raise KeyboardInterrupt

    monkeypatch.setattr("harness.models.bundles.lines_of", interrupted)
    with pytest.raises(KeyboardInterrupt):
        make_bundle(tmp_path, computes_in=None)
    assert bundle.read_bytes() == before
    assert not list(tmp_path.glob(".*"))
