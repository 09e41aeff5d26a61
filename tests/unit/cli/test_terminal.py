"""Colour is for a terminal whose reader wants it; lines are as wide as that terminal."""

import fcntl
import io
import os
import pty
import struct
import subprocess
import sys
import termios
from pathlib import Path

import pytest

from harness.report.json.report import dump_report
from harness.cli import terminal
from tests.unit.builders.reports import blocked

PROJECT = Path(__file__).resolve().parents[3]


class Terminal(io.StringIO):
    """A stream that says that it is one."""

    def isatty(self) -> bool:
        return True


@pytest.mark.parametrize(
    ("environment", "wanted"),
    [
        ({"TERM": "xterm"}, True),
        ({"TERM": "xterm", "NO_COLOR": ""}, True),
        ({"TERM": "xterm", "NO_COLOR": "1"}, False),
        ({"TERM": "xterm", "NO_COLOR": "0"}, False),
        ({"TERM": "dumb"}, False),
    ],
)
def test_colour_is_for_readers_who_have_not_refused_it(
    environment: dict[str, str], wanted: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "stdout", Terminal())
    for name in ("NO_COLOR", "TERM"):
        monkeypatch.delenv(name, raising=False)
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    assert terminal.colour() is wanted


def test_a_file_or_a_pipe_gets_no_colour_and_rows_that_are_not_cut(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdout", io.StringIO())
    monkeypatch.setenv("COLUMNS", "90")
    assert not terminal.colour()
    assert terminal.terminal_width() is None
    assert terminal.width() == 90


@pytest.mark.parametrize(("columns", "wide"), [("20", 80), ("80", 80), ("97", 97), ("300", 120)])
def test_lines_are_as_wide_as_the_terminal_within_reason(
    columns: str, wide: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "stdout", Terminal())
    monkeypatch.setenv("COLUMNS", columns)
    assert (terminal.width(), terminal.terminal_width()) == (wide, wide)


def report_in_a_terminal(folder: Path, columns: int, **environment: str) -> str:
    """Return what ``report`` writes to a terminal of so many columns."""
    (folder / "run").mkdir(exist_ok=True)
    (folder / "run" / "plan.json").touch()
    (folder / "run" / "report.json").write_bytes(dump_report(blocked()))
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
    kept = {name: value for name, value in os.environ.items() if name not in ("NO_COLOR", "COLUMNS", "TERM")}
    words = [sys.executable, "-m", "harness", "report", str(folder / "run")]
    process = subprocess.Popen(
        words, cwd=PROJECT, stdin=theirs, stdout=theirs, stderr=theirs, env={**kept, "TERM": "xterm", **environment}
    )
    os.close(theirs)
    said = b""
    with os.fdopen(ours, "rb", buffering=0) as stream:
        while True:
            try:
                piece = stream.read(65536)
            except OSError:  # the last one has hung up
                break
            if not piece:
                break
            said += piece
    assert process.wait(60) == blocked().judgement.exit_code, said
    return said.decode().replace("\r\n", "\n")


def test_a_real_terminal_gets_colour_its_width_and_its_wish(tmp_path: Path) -> None:
    coloured = report_in_a_terminal(tmp_path, 80)
    plain = report_in_a_terminal(tmp_path, 80, NO_COLOR="1")
    assert "\x1b[1;31mBLOCKED\x1b[0m" in coloured
    assert "\x1b" not in plain
    assert "BLOCKED" in plain
    prose = [line for line in plain.splitlines() if "-m harness" not in line and "/" not in line]
    assert max(map(len, prose)) <= 80
    assert "\x1b" not in report_in_a_terminal(tmp_path, 80, TERM="dumb")


def test_only_two_modules_ask_what_a_stream_is() -> None:
    """So that one answer holds for every verb."""
    asking = {
        path.relative_to(PROJECT / "harness").as_posix()
        for path in (PROJECT / "harness").rglob("*.py")
        if "isatty" in path.read_text(encoding="utf-8")
    }
    assert asking == {"machine/progress.py", "cli/terminal.py"}
