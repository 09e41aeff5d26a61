"""``golden/waivers.toml`` on disk: changed by one at a time, never half-written, never lost."""

import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from harness.verdict.waivers import file
from harness.core.errors import ConfigError

PROJECT = Path(__file__).resolve().parents[4]
APPEND = """
import sys
from pathlib import Path
from harness.verdict.waivers import file
for number in range(20):
    file.change(Path(sys.argv[1]), lambda text: text + f"{sys.argv[2]} {number}\\n")
"""


def test_a_file_that_is_not_there_is_empty_and_made(tmp_path: Path) -> None:
    path = tmp_path / "golden" / "waivers.toml"
    assert file.read(path) == ""
    file.change(path, lambda text: text + "# new\n")
    assert path.read_text() == "# new\n"
    assert os.listdir(path.parent) == ["waivers.toml"]


def test_line_ends_are_read_as_they_are(tmp_path: Path) -> None:
    path = tmp_path / "waivers.toml"
    path.write_bytes(b"# a\r\n")
    file.change(path, lambda text: text + "# b\r\n")
    assert path.read_bytes() == b"# a\r\n# b\r\n"


def test_what_two_processes_add_at_once_is_all_there(tmp_path: Path) -> None:
    path = tmp_path / "waivers.toml"
    command = [sys.executable, "-c", APPEND, str(path)]
    both = [subprocess.Popen([*command, name], cwd=PROJECT) for name in ("one", "two")]
    assert [process.wait(60) for process in both] == [0, 0]
    assert sorted(path.read_text().splitlines()) == sorted(f"{name} {n}" for name in ("one", "two") for n in range(20))


def test_what_threads_add_at_once_is_all_there(tmp_path: Path) -> None:
    path = tmp_path / "waivers.toml"
    with ThreadPoolExecutor(4) as pool:
        list(pool.map(lambda n: file.change(path, lambda text: f"{text}{n}\n"), range(12)))
    assert sorted(map(int, path.read_text().split())) == list(range(12))


def test_who_may_read_and_write_it_stays_as_it_was(tmp_path: Path) -> None:
    path = tmp_path / "waivers.toml"
    path.write_text("# kept\n")
    path.chmod(0o640)
    file.change(path, lambda text: text + "# more\n")
    assert path.stat().st_mode & 0o777 == 0o640
    path.chmod(0o440)
    file.change(path, lambda text: text)
    with pytest.raises(ConfigError, match="it is read-only"):
        file.change(path, lambda text: text + "# lost\n")
    assert path.read_text() == "# kept\n# more\n"


def test_a_link_stays_one(tmp_path: Path) -> None:
    real, link = tmp_path / "real.toml", tmp_path / "waivers.toml"
    real.write_text("# kept\n")
    link.symlink_to(real)
    file.change(link, lambda text: text + "# more\n")
    assert link.is_symlink()
    assert real.read_text() == "# kept\n# more\n"


def test_an_edit_that_is_refused_changes_nothing(tmp_path: Path) -> None:
    path = tmp_path / "waivers.toml"
    path.write_text("# kept\n")

    def refuse(text: str) -> str:
        raise ConfigError("no", "no")

    with pytest.raises(ConfigError):
        file.change(path, refuse)
    assert path.read_text() == "# kept\n"
    file.change(path, lambda text: text)  # the lock is free again


def test_a_disk_that_is_full_leaves_the_old_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "waivers.toml"
    path.write_text("# kept\n")

    def full(self: Path, data: bytes) -> int:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Path, "write_bytes", full)
    with pytest.raises(ConfigError, match="the disk is full"):
        file.change(path, lambda text: text + "# more\n")
    monkeypatch.undo()
    assert path.read_text() == "# kept\n"
    assert os.listdir(tmp_path) == ["waivers.toml"]


def test_a_file_that_another_process_keeps_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "waivers.toml"
    monkeypatch.setattr(file, "WAIT_S", 0.05)

    def meanwhile(text: str) -> str:
        with pytest.raises(ConfigError, match="is being changed by another process"):
            file.change(path, lambda text: "# lost\n")
        return "# mine\n"

    file.change(path, meanwhile)
    assert path.read_text() == "# mine\n"


def test_a_file_that_is_no_text_is_named(tmp_path: Path) -> None:
    path = tmp_path / "waivers.toml"
    path.write_bytes("gr\u00fcn".encode("latin-1"))
    with pytest.raises(ConfigError, match=r"waivers\.toml cannot be read"):
        file.read(path)
