"""A given artifact is kept for the run, and taken over without torch."""

import hashlib
import os
from pathlib import Path

import pytest

from harness.archive.limits import CannotRead
from harness.domain.artifact import InputSet
from harness.domain.fixture import GivenArtifact, ModelDeclaration
from harness.domain.outcome import Outcome
from harness.domain.probe import Failure, ModelResult, ProbeResult
from harness.runtime import given_store
from harness.worker import wire
from tests.unit.runtime.builders import write_archive


def given(path: Path, digest: str = "0123456789abcdef") -> ModelDeclaration:
    return ModelDeclaration(
        name="m",
        package_root=str(path.parent),
        module="",
        factory="",
        source=path.name,
        line=0,
        source_digest=digest,
        how="file",
        given=GivenArtifact(path=str(path)),
    )


def adoption(folder: Path, **marks: object) -> ProbeResult:
    folder.mkdir()
    if marks:
        (folder / "inputs").mkdir()
        for name in (wire.TENSORS_INDEX, wire.TENSORS_BIN):
            (folder / "inputs" / name).write_bytes(b"")
    model = ModelResult(
        model="m", outcome=Outcome.COMPLETED if marks else Outcome.CRASH, phase="" if marks else "infer"
    )
    return ProbeResult(
        key="k",
        side="old",
        outcome=model.outcome,
        directory=str(folder),
        models=(model,),
        data=marks,
        exit_detail="" if marks else "signal SIGSEGV",
    )


def test_kept_file_costs_nothing_and_outlives_its_name(tmp_path: Path) -> None:
    path = write_archive(tmp_path / "m.pt")
    kept = given_store.keep(given(path), tmp_path / "run" / "given")
    assert kept.stat().st_ino == path.stat().st_ino
    content = path.read_bytes()
    path.unlink()
    assert kept.read_bytes() == content


def test_link_to_a_file_is_followed(tmp_path: Path) -> None:
    path = write_archive(tmp_path / "real.pt")
    link = tmp_path / "m.pt"
    link.symlink_to(path)
    kept = given_store.keep(given(link), tmp_path / "given")
    assert not kept.is_symlink() and kept.read_bytes() == path.read_bytes()


def test_file_that_cannot_be_linked_is_copied(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> None:
        raise PermissionError("another file system")

    monkeypatch.setattr(os, "link", refuse)
    path = write_archive(tmp_path / "m.pt")
    kept = given_store.keep(given(path), tmp_path / "given")
    assert kept.read_bytes() == path.read_bytes() and kept.stat().st_ino != path.stat().st_ino


def test_another_content_under_the_same_name_is_kept_beside_the_first(tmp_path: Path) -> None:
    path = write_archive(tmp_path / "m.pt")
    first = given_store.keep(given(path, "1" * 16), tmp_path / "given")
    path.unlink()
    path.write_bytes(b"another")
    assert given_store.keep(given(path, "2" * 16), tmp_path / "given") != first


@pytest.mark.parametrize("kind", ["missing", "folder", "pipe"])
def test_what_is_no_file_any_more_cannot_be_kept(tmp_path: Path, kind: str) -> None:
    path = tmp_path / "m.pt"
    if kind == "folder":
        path.mkdir()
    elif kind == "pipe":
        os.mkfifo(path)
    with pytest.raises(CannotRead):
        given_store.keep(given(path), tmp_path / "given")


def test_artifact_has_what_the_adoption_and_the_file_say(tmp_path: Path) -> None:
    path = write_archive(tmp_path / "m.pt")
    marks = {"adopted": {"input_sets": [["example", "encode"]], "inputs_note": ""}}
    found = given_store.adopted(given(path), path, adoption(tmp_path / "probe", **marks))
    assert found.digest == hashlib.sha256(path.read_bytes()).hexdigest()
    assert found.input_sets == (InputSet(name="example", method="encode"),)
    assert (found.path, found.inputs_dir, found.inputs_note) == (str(path), str(tmp_path / "probe" / "inputs"), "")


def test_file_that_no_reader_understands_is_taken_over_all_the_same(tmp_path: Path) -> None:
    path = tmp_path / "m.pt"
    path.write_bytes(b"PK\x03\x04 torn")
    marks = {"adopted": {"input_sets": [], "inputs_note": "it does not load"}}
    found = given_store.adopted(given(path), path, adoption(tmp_path / "probe", **marks))
    assert (found.operators, found.operator_version, found.size_bytes) == ((), None, 9)


def test_adoption_that_ended_badly_leaves_an_artifact_that_is_only_loaded(tmp_path: Path) -> None:
    path = write_archive(tmp_path / "m.pt")
    found = given_store.adopted(given(path), path, adoption(tmp_path / "probe"))
    assert found.input_sets == ()
    assert "infer" in found.inputs_note and "SIGSEGV" in found.inputs_note
    assert (Path(found.inputs_dir) / wire.TENSORS_INDEX).read_bytes() == b""


def test_error_of_the_adoption_is_quoted(tmp_path: Path) -> None:
    path = write_archive(tmp_path / "m.pt")
    failure = Failure(type="RuntimeError", message="Unknown builtin op: a::b", phase="load")
    broken = adoption(tmp_path / "probe")
    model = ModelResult(model="m", outcome=Outcome.LOAD_ERROR, phase="load", failure=failure)
    found = given_store.adopted(
        given(path),
        path,
        ProbeResult(key="k", side="old", outcome=Outcome.COMPLETED, directory=broken.directory, models=(model,)),
    )
    assert "Unknown builtin op" in found.inputs_note
