"""What nobody needs: measured and removed, and nothing beyond a link."""

from pathlib import Path

import pytest

from harness.errors import RunDirError
from harness.system.files import remove, size_of


def test_files_and_folders_are_measured_and_removed(tmp_path: Path) -> None:
    folder = tmp_path / "folder" / "inner"
    folder.mkdir(parents=True)
    (folder / "a").write_bytes(b"12345")
    (tmp_path / "folder" / "b").write_bytes(b"67")
    assert (size_of(tmp_path / "folder"), size_of(folder / "a")) == (7, 5)
    remove(folder / "a")
    remove(tmp_path / "folder")
    assert list(tmp_path.iterdir()) == []


def test_a_link_is_removed_and_not_what_it_leads_to(tmp_path: Path) -> None:
    (tmp_path / "kept").mkdir()
    (tmp_path / "kept" / "a").write_bytes(b"1" * 500)
    link = tmp_path / "link"
    link.symlink_to(tmp_path / "kept")
    assert size_of(link) < 500
    remove(link)
    assert (tmp_path / "kept" / "a").exists() and not link.is_symlink()


def test_what_cannot_be_removed_is_named(tmp_path: Path) -> None:
    with pytest.raises(RunDirError, match="absent cannot be removed"):
        remove(tmp_path / "absent")
