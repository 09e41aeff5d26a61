"""What nobody needs: measured and removed, and nothing beyond a link; what the system refuses, in words."""

import os
import shutil
import subprocess
import zipfile
from pathlib import Path

import pytest

from harness.core.errors import RunDirError
from harness.machine import files
from harness.machine.files import emptied, new_zip, refusal, remove, size_of
from tests.programs.disks import fill, small_disk


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


def test_a_folder_that_is_emptied_is_no_link_any_more(tmp_path: Path) -> None:
    (tmp_path / "kept").mkdir()
    (tmp_path / "kept" / "a").touch()
    (tmp_path / "probe").symlink_to(tmp_path / "kept")
    assert list(emptied(tmp_path / "probe").iterdir()) == []
    assert not (tmp_path / "probe").is_symlink() and (tmp_path / "kept" / "a").exists()


def test_a_disk_without_inodes_is_named_with_the_folder(tmp_path: Path) -> None:
    with small_disk(tmp_path / "disk") as disk:
        fill(disk, inodes_left=1)
        with pytest.raises(RunDirError, match=r"disk/probe/folder cannot be made: the disk is full .*inodes"):
            emptied(disk / "probe" / "folder")


def test_a_tree_that_cannot_be_copied_gives_the_first_reason(tmp_path: Path) -> None:
    (tmp_path / "tree").mkdir()
    for name in ("a", "b"):
        (tmp_path / "tree" / name).symlink_to("nowhere")
    with pytest.raises(shutil.Error) as caught:
        shutil.copytree(tmp_path / "tree", tmp_path / "copy")
    assert refusal(caught.value)[:-2] == f"[Errno 2] No such file or directory: '{tmp_path}/tree/"


def test_an_interrupt_while_a_member_is_written_is_raised_as_it_is(tmp_path: Path) -> None:
    path = tmp_path / "probe.zip"
    with pytest.raises(KeyboardInterrupt), new_zip(path, zipfile.ZIP_DEFLATED) as archive:
        archive.open("stacks.txt", "w").write(b"half")
        raise KeyboardInterrupt
    with new_zip(tmp_path / "whole.zip", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("stacks.txt", b"whole")
    with zipfile.ZipFile(tmp_path / "whole.zip") as archive:
        assert archive.read("stacks.txt") == b"whole"


def test_git_sees_nothing_of_a_folder_that_is_made(tmp_path: Path) -> None:
    files.make_ignored(tmp_path / "reports" / "matrix")
    assert (tmp_path / "reports" / ".gitignore").read_text().splitlines()[-1] == "*"
    assert [path.name for path in (tmp_path / "reports" / "matrix").iterdir()] == []
    subprocess.run(("git", "init", "-q", tmp_path), check=True)
    (tmp_path / "reports" / "matrix" / "result").touch()
    (tmp_path / "mine").touch()
    status = subprocess.run(
        ("git", "-C", tmp_path, "status", "--porcelain", "-uall"), capture_output=True, text=True, check=True
    )
    assert status.stdout == "?? mine\n"


def test_a_folder_that_is_there_is_left_as_it_is(tmp_path: Path) -> None:
    (tmp_path / "reports").mkdir()
    files.make_ignored(tmp_path / "reports")
    assert not list((tmp_path / "reports").iterdir())


def test_a_lock_is_shared_or_had_alone(tmp_path: Path) -> None:
    first, second = files.lock_shared(tmp_path / "lock"), files.lock_shared(tmp_path / "lock")
    assert first is not None and second is not None
    assert files.lock_alone(tmp_path / "lock") is None
    os.close(first)
    assert files.lock_alone(tmp_path / "lock") is None
    os.close(second)
    alone = files.lock_alone(tmp_path / "lock")
    assert alone is not None and files.lock_shared(tmp_path / "lock") is None
    os.close(alone)
