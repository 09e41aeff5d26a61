"""A given artifact is kept for the run: as it was, whatever becomes of the file that it came from."""

import os
from dataclasses import replace
from pathlib import Path

import pytest

from harness.artifacts.archive.limits import CannotRead
from harness.core.models import Artifact, ModelDeclaration
from harness.artifacts import file_copies
from harness.artifacts.adopted import has_changed
from harness.artifacts.file_copies import Kept
from tests.unit.builders.requests import write_archive
from tests.unit.builders.archives import given
from tests.unit.builders.stages import artifact


def taken(kept: Kept) -> Artifact:
    return artifact(path=str(kept.path), digest=kept.sha256, inputs_digest="")


def test_kept_file_is_what_it_was_when_the_other_is_written_in_place(tmp_path: Path) -> None:
    path = write_archive(tmp_path / "m.pt")
    kept = file_copies.keep(given(path), tmp_path / "run" / "given")
    content = path.read_bytes()
    with path.open("r+b") as stream:
        stream.write(b"other")
    assert kept.path.read_bytes() == content and not has_changed(taken(kept))
    path.unlink()
    assert kept.path.read_bytes() == content


def test_link_to_a_file_is_followed(tmp_path: Path) -> None:
    path = write_archive(tmp_path / "real.pt")
    link = tmp_path / "m.pt"
    link.symlink_to(path)
    kept = file_copies.keep(given(link), tmp_path / "given").path
    assert not kept.is_symlink() and kept.read_bytes() == path.read_bytes()


def test_large_file_is_linked_and_a_write_to_it_is_seen(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(file_copies, "COPIED_BYTES", 10)
    monkeypatch.setattr(file_copies, "_shared", lambda *_: False)
    path = write_archive(tmp_path / "m.pt")
    kept = file_copies.keep(given(path), tmp_path / "given")
    assert kept.path.stat().st_ino == path.stat().st_ino
    assert not has_changed(taken(kept))
    with path.open("r+b") as stream:
        stream.write(b"other")
    assert has_changed(taken(kept))


def test_large_file_that_cannot_be_linked_is_copied(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> None:
        raise PermissionError("another file system")

    monkeypatch.setattr(file_copies, "COPIED_BYTES", 10)
    monkeypatch.setattr(file_copies, "_shared", lambda *_: False)
    monkeypatch.setattr(os, "link", refuse)
    path = write_archive(tmp_path / "m.pt")
    kept = file_copies.keep(given(path), tmp_path / "given").path
    assert kept.read_bytes() == path.read_bytes() and kept.stat().st_ino != path.stat().st_ino


def test_file_is_kept_under_its_content_whatever_its_size_and_time_say(tmp_path: Path) -> None:
    path = tmp_path / "m.pt"
    path.write_bytes(b"one thing")
    os.utime(path, (0, 0))
    first = file_copies.keep(given(path), tmp_path / "given")
    path.write_bytes(b"other one")
    os.utime(path, (0, 0))
    second = file_copies.keep(given(path), tmp_path / "given")
    assert (first.path.read_bytes(), second.path.read_bytes()) == (b"one thing", b"other one")
    os.utime(path, (5, 5))
    assert file_copies.keep(given(path), tmp_path / "given") == second


@pytest.mark.parametrize("kind", ["missing", "folder", "pipe"])
def test_what_is_no_file_any_more_cannot_be_kept(tmp_path: Path, kind: str) -> None:
    path = tmp_path / "m.pt"
    if kind == "folder":
        path.mkdir()
    elif kind == "pipe":
        os.mkfifo(path)
    with pytest.raises(CannotRead):
        file_copies.keep(given(path), tmp_path / "given")


def test_what_a_run_has_kept_is_found_again_for_the_same_plan_only(tmp_path: Path) -> None:
    planned = given(write_archive(tmp_path / "m.pt"))
    assert file_copies.kept_before(planned, tmp_path / "given") is None
    kept = file_copies.keep(planned, tmp_path / "given")
    assert file_copies.kept_before(planned, tmp_path / "given") == kept.path
    assert file_copies.kept_before(replace(planned, source_digest="another"), tmp_path / "given") is None


def content_digest(model: ModelDeclaration, folder: Path) -> str:
    return file_copies.by_content(model, file_copies.keep(model, folder)).source_digest


def test_request_is_by_content_of_the_artifact_and_of_its_requests(tmp_path: Path) -> None:
    path, inputs = write_archive(tmp_path / "m.pt"), tmp_path / "m.inputs.npz"
    inputs.write_bytes(b"one")
    model = given(path)
    assert model.given is not None
    with_inputs = replace(model, given=replace(model.given, inputs=str(inputs)))
    first = content_digest(with_inputs, tmp_path / "given")
    assert content_digest(replace(with_inputs, source_digest="another time"), tmp_path / "given") == first
    inputs.write_bytes(b"two")
    assert content_digest(with_inputs, tmp_path / "given") != first != content_digest(model, tmp_path / "given")
