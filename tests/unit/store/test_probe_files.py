"""The files of a probe lie in one zip file, whole, whatever happens then."""

import os
import signal
import sys
import zipfile
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest

from harness.core.errors import RunDirError
from harness.store import probe_files
from harness.store.probe_files import PACKED, compact, opened, read, read_result

FILES = {
    "request.json": b'{"verb": "run"}',
    "events.jsonl": b'{"ev": "bye"}\n' * 1000,
    "stdout": b"",
    "stderr": b"a warning",
    "stacks.txt": b"== gate stacks armed 1\n",
    "stacks.txt.17": b"",
    "result.json": b'{"key": "k"}',
    "outputs/tensors.jsonl": b'{"model": "m"}\n',
    "outputs/tensors.bin": bytes(range(256)),
}
STAY = {"m.pt": b"an archive", "inputs/tensors.bin": b"1234", "work/made": b"by the model"}


def left_by_a_probe(folder: Path) -> Path:
    for name, content in (FILES | STAY).items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
    return folder


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return left_by_a_probe(tmp_path / "probes" / "k")


def left(folder: Path) -> set[str]:
    return {str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file()}


def test_every_byte_is_found_again_and_what_later_workers_read_stays(folder: Path) -> None:
    compact(folder)
    assert left(folder) == {PACKED, *STAY}
    assert not (folder / "outputs").exists()
    assert {name: read(folder, name) for name in FILES} == FILES
    assert (folder / PACKED).stat().st_size < 2500
    with pytest.raises(FileNotFoundError):
        opened(folder, "stacks-1.gdb.txt")


def killed(action: Callable[[], None], moment: int) -> bool:
    """Act in a process that is killed before that change of a file; return whether it came to it."""
    child = os.fork()
    if child == 0:
        seen = 0

        def maybe_die(event: str, _: object) -> None:
            nonlocal seen
            if event in ("open", "os.rename", "os.remove", "os.rmdir"):
                seen += 1
                if seen > moment:
                    os.kill(os.getpid(), signal.SIGKILL)

        sys.addaudithook(maybe_die)
        action()
        os._exit(0)
    return os.WIFSIGNALED(os.waitpid(child, 0)[1])


def test_compacting_that_is_killed_at_any_moment_loses_nothing_and_is_finished_by_the_next(tmp_path: Path) -> None:
    moment = 0
    while killed(partial(compact, folder := left_by_a_probe(tmp_path / str(moment))), moment):
        assert {name: read(folder, name) for name in FILES} == FILES, moment
        compact(folder)
        assert {name: read(folder, name) for name in FILES} == FILES, moment
        assert left(folder) == {PACKED, *STAY}, moment
        moment += 1
    assert moment > 2 * len(FILES)


def test_what_tells_why_a_probe_failed_stays_beside_the_zip_file_as_well(folder: Path) -> None:
    (folder / "stacks.txt.17").write_bytes(b"== gate stacks armed 2\nThread 0x1\n")
    compact(folder, failed=True)
    assert left(folder) == {PACKED, "stderr", "stacks.txt.17", *STAY}
    with zipfile.ZipFile(folder / PACKED) as archive:
        assert set(archive.namelist()) == set(FILES)


@pytest.mark.parametrize("name", ["outputs", "outputs/tensors.bin", "stdout"])
def test_nothing_is_moved_that_a_link_leads_to(folder: Path, tmp_path: Path, name: str) -> None:
    (folder / name).rename(tmp_path / "elsewhere")
    (folder / name).symlink_to(tmp_path / "elsewhere")
    linked = sorted((tmp_path / "elsewhere").rglob("*"))
    compact(folder)
    assert (folder / PACKED).is_file() and (folder / name).is_symlink()
    assert (tmp_path / "elsewhere").exists() and sorted((tmp_path / "elsewhere").rglob("*")) == linked


def test_a_file_that_is_planted_under_the_name_of_the_draft_is_not_written_through(
    folder: Path, tmp_path: Path
) -> None:
    (tmp_path / "elsewhere").write_bytes(b"1")
    (folder / f".{PACKED}.part").symlink_to(tmp_path / "elsewhere")
    compact(folder)
    assert (tmp_path / "elsewhere").read_bytes() == b"1" and left(folder) == {PACKED, *STAY}


def test_what_is_large_is_mapped_and_stays_as_it_is(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(probe_files, "IN_MEMORY_BYTES", 255)
    compact(folder)
    assert left(folder) == {PACKED, "outputs/tensors.bin", "events.jsonl", *STAY}
    assert read(folder, "outputs/tensors.bin") == FILES["outputs/tensors.bin"]


@pytest.mark.parametrize("damage", ["torn", "changed", "larger"])
def test_a_damaged_file_is_named_with_what_to_do(folder: Path, damage: str, monkeypatch: pytest.MonkeyPatch) -> None:
    compact(folder)
    path = folder / PACKED
    content = path.read_bytes()
    if damage == "larger":
        monkeypatch.setattr(probe_files, "IN_MEMORY_BYTES", 10)
    elif damage == "torn":
        path.write_bytes(content[:-30])
    else:
        with zipfile.ZipFile(path) as archive:
            at = archive.getinfo("result.json").header_offset + 30 + len("result.json") + 2
        path.write_bytes(content[:at] + bytes([content[at] ^ 1]) + content[at + 1 :])
    with pytest.raises(RunDirError, match=r"probe\.zip is damaged: .*"):
        read_result(folder / "result.json")
