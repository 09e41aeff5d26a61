"""Progress on standard error."""

import io
import re

import pytest

from harness.system import progress
from harness.system.progress import Progress


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


class Clock:
    """A clock that a test moves."""

    def __init__(self) -> None:
        self.now_s = 100.0

    def monotonic(self) -> float:
        return self.now_s


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    clock = Clock()
    monkeypatch.setattr(progress, "time", clock)
    return clock


def lines(stream: io.StringIO) -> list[str]:
    """Return the printed lines without their times."""
    return [re.sub(r"^\[ *[\d.]+ s\] ", "", line) for line in stream.getvalue().splitlines()]


def test_log_gets_a_line_when_a_stage_begins_and_when_it_ends(clock: Clock) -> None:
    stream = io.StringIO()
    shown = Progress(stream)
    shown.stage("export", 2)
    shown.step("a")
    shown.step("b")
    shown.stage("compare")
    shown.finish()
    assert lines(stream) == ["export 0/2", "export 2/2  done", "compare", "compare  done"]
    assert clock.now_s == 100.0


def test_log_gets_a_line_every_two_seconds_at_most(clock: Clock) -> None:
    stream = io.StringIO()
    shown = Progress(stream)
    shown.stage("export", 9)
    for name in ("a", "b", "c", "d"):
        clock.now_s += 0.9
        shown.step(name)
    assert lines(stream) == ["export 0/9", "export 3/9  c"]
    assert stream.getvalue().splitlines()[1].startswith("[   2.7 s]")


def test_tick_says_what_is_going_on_and_counts_nothing(clock: Clock) -> None:
    stream = io.StringIO()
    shown = Progress(stream)
    shown.stage("build", 3)
    clock.now_s += 5
    shown.tick("downloading")
    clock.now_s += 5
    shown.step("torch 2.6.0")
    assert lines(stream)[1:] == ["build 0/3  downloading", "build 1/3  torch 2.6.0"]


def test_terminal_line_is_rewritten_in_place_and_kept_short(clock: Clock) -> None:
    stream = Terminal()
    shown = Progress(stream)
    shown.stage("export", 2)
    clock.now_s += 1
    shown.step("x" * 300)
    parts = stream.getvalue().split("\r\x1b[K")
    assert [len(part) <= 100 for part in parts] == [True] * 3
    assert "\n" not in stream.getvalue()
    shown.finish()
    assert stream.getvalue().endswith("export 1/2  done\n")


@pytest.mark.usefixtures("clock")
def test_note_stays_on_a_line_of_its_own() -> None:
    stream, terminal = io.StringIO(), Terminal()
    Progress(stream).note("planted defect missed")
    Progress(terminal).note("planted defect missed")
    assert stream.getvalue() == "planted defect missed\n"
    assert terminal.getvalue() == "\r\x1b[Kplanted defect missed\n"


@pytest.mark.usefixtures("clock")
def test_end_is_reported_once() -> None:
    stream = io.StringIO()
    shown = Progress(stream)
    shown.finish()
    assert stream.getvalue() == ""
    shown.stage("export")
    shown.finish()
    shown.finish()
    assert lines(stream) == ["export", "export  done"]


@pytest.mark.parametrize("stream", [io.StringIO(), Terminal()])
def test_disabled_progress_prints_nothing(stream: io.StringIO, clock: Clock) -> None:
    shown = Progress(stream, enabled=False)
    shown.stage("export", 2)
    clock.now_s += 10
    shown.step("a")
    shown.tick("b")
    shown.note("c")
    shown.finish()
    assert stream.getvalue() == ""


def test_what_it_says_steers_no_terminal() -> None:
    stream = io.StringIO()
    shown = Progress(stream)
    shown.stage("a\x1b[2J")
    shown.note("b\x9b31m\u202e\nc")
    assert lines(stream) == [r"a\x1b[2J", r"b\x9b31m\u202e\nc"]
