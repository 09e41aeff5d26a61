"""Frozen types to JSON files and back."""

import errno
import os
import threading
from dataclasses import dataclass, replace
from pathlib import Path

import pytest

from harness.core.environment import EnvSpec
from harness.core.errors import RunDirError
from harness.store import codec


@dataclass(frozen=True)
class Point:
    x: int
    tags: dict[str, int]


def test_equal_values_give_equal_bytes_whatever_the_order_of_keys() -> None:
    one, other = Point(1, {"a": 1, "b": 2}), Point(1, {"b": 2, "a": 1})
    assert codec.canonical(one) == codec.canonical(other) == b'{"x":1,"tags":{"a":1,"b":2}}'
    assert codec.digest(one) == codec.digest(other)
    assert len(codec.digest(one)) == 64


def test_different_values_give_different_digests() -> None:
    assert codec.digest(Point(1, {})) != codec.digest(Point(2, {}))
    assert codec.digest(Point(1, {})) != codec.digest(Point(1, {"a": 1}))


def test_pretty_is_the_same_value_on_many_lines(tmp_path: Path) -> None:
    text = codec.pretty(Point(1, {"a": 1}))
    assert text.endswith(b"}\n")
    assert text.count(b"\n") == 6
    (tmp_path / "p.json").write_bytes(text)
    assert codec.read_json(tmp_path / "p.json", Point) == Point(1, {"a": 1})


def test_domain_types_survive_the_round_trip(tmp_path: Path) -> None:
    spec = EnvSpec(name="torch 2.6.0", release="2.6.0", extras=("numpy<2",))
    codec.write_atomically(tmp_path / "spec.json", codec.canonical(spec))
    assert codec.read_json(tmp_path / "spec.json", EnvSpec) == spec
    assert codec.read_json(tmp_path / "spec.json", EnvSpec) != replace(spec, release="2.6.1")


def test_write_replaces_the_old_content_and_leaves_nothing_beside_it(tmp_path: Path) -> None:
    path = tmp_path / "a.json"
    codec.write_atomically(path, b"old")
    codec.write_atomically(path, b"new")
    assert path.read_bytes() == b"new"
    assert [item.name for item in tmp_path.iterdir()] == ["a.json"]


def test_kill_before_the_rename_leaves_the_old_content(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "a.json"
    codec.write_atomically(path, b"old")

    def killed(_self: Path, _target: Path) -> None:
        assert path.read_bytes() == b"old"
        raise KeyboardInterrupt

    monkeypatch.setattr(Path, "replace", killed)
    with pytest.raises(KeyboardInterrupt):
        codec.write_atomically(path, b"new")
    assert path.read_bytes() == b"old"


def test_full_disk_is_named_and_keeps_the_old_content(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "a.json"
    codec.write_atomically(path, b"old")
    original = Path.write_bytes

    def full(self: Path, data: bytes) -> int:
        original(self, data[:1])
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(Path, "write_bytes", full)
    with pytest.raises(RunDirError, match="the disk is full"):
        codec.write_atomically(path, b"new")
    assert path.read_bytes() == b"old"
    assert [item.name for item in tmp_path.iterdir()] == ["a.json"]


def test_a_link_in_the_place_of_the_draft_is_not_followed(tmp_path: Path) -> None:
    (tmp_path / "kept").write_bytes(b"kept")
    draft = tmp_path / f".a.json.{os.getpid()}.{threading.get_ident()}.part"
    draft.symlink_to(tmp_path / "kept")
    codec.write_atomically(tmp_path / "a.json", b"new")
    assert (tmp_path / "a.json").read_bytes() == b"new"
    assert (tmp_path / "kept").read_bytes() == b"kept"


def test_folder_that_does_not_exist_is_a_run_dir_error(tmp_path: Path) -> None:
    with pytest.raises(RunDirError, match="cannot be written: No such file or directory"):
        codec.write_atomically(tmp_path / "absent" / "a.json", b"x")


def test_file_in_place_of_the_folder_is_a_run_dir_error(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(RunDirError, match="cannot be written: Not a directory"):
        codec.write_atomically(tmp_path / "file" / "a.json", b"x")


def test_folder_in_place_of_the_file_is_a_run_dir_error_and_leaves_no_rest(tmp_path: Path) -> None:
    (tmp_path / "a.json").mkdir()
    with pytest.raises(RunDirError, match="cannot be written: Is a directory"):
        codec.write_atomically(tmp_path / "a.json", b"x")
    assert [item.name for item in tmp_path.iterdir()] == ["a.json"]


def test_missing_file_is_a_run_dir_error(tmp_path: Path) -> None:
    with pytest.raises(RunDirError, match="cannot be read: No such file or directory"):
        codec.read_json(tmp_path / "a.json", Point)


@pytest.mark.parametrize("text", ["", "{", '{"x": 1}', '{"x": "1", "tags": {}}', '{"x": 1, "tags": {}} x', "\udcff"])
def test_damaged_file_is_a_run_dir_error_that_names_it(tmp_path: Path, text: str) -> None:
    path = tmp_path / "a.json"
    path.write_bytes(text.encode("utf-8", "surrogateescape"))
    with pytest.raises(RunDirError, match=r"a\.json is damaged or from another version"):
        codec.read_json(path, Point)
