"""Progress on standard error."""

import io
import os
import pty
import re
import subprocess
import sys

import pytest

from harness.machine import progress
from harness.machine.progress import Progress


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
def clock() -> Clock:
    return Clock()


def shown_on(stream: io.StringIO, clock: Clock, *, enabled: bool = True) -> Progress:
    """Return a progress that writes again only where a test says ``beat``."""
    return Progress(stream, enabled=enabled, clock=clock.monotonic, beats=False)


def lines(stream: io.StringIO) -> list[str]:
    """Return the printed lines without their times."""
    return [re.sub(r"^\[ *[\d.]+ s\] ", "", line) for line in stream.getvalue().splitlines()]


@pytest.fixture(autouse=True)
def outside_of_ci(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("CI", raising=False)


def test_log_gets_a_line_when_a_stage_begins(clock: Clock) -> None:
    stream = io.StringIO()
    shown = shown_on(stream, clock)
    shown.stage("export", 2)
    shown.step("a")
    shown.step("b")
    shown.stage("compare")
    shown.finish()
    assert lines(stream) == ["export 0/2", "compare"]
    assert clock.now_s == 100.0


@pytest.mark.parametrize(("ci", "interval_s"), [("", 5), ("false", 5), ("true", 30), ("1", 30)])
def test_log_gets_a_line_every_five_seconds_at_most_and_every_thirty_in_ci(
    ci: str, interval_s: int, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CI", ci)
    stream = io.StringIO()
    shown = shown_on(stream, clock)
    shown.stage("export", 99)
    for second in range(1, 2 * interval_s + 2):
        clock.now_s += 1
        shown.step(f"model {second}")
    assert [line.partition("  ")[2] for line in lines(stream)] == ["", f"model {interval_s}", f"model {2 * interval_s}"]


def test_tick_says_what_is_going_on_and_counts_nothing(clock: Clock) -> None:
    stream = io.StringIO()
    shown = shown_on(stream, clock)
    shown.stage("build", 3)
    clock.now_s += 11
    shown.tick("downloading")
    clock.now_s += 11
    shown.step("torch 2.6.0")
    assert lines(stream)[1:] == ["build 0/3  downloading", "build 1/3, about 45 s left  torch 2.6.0"]


def test_beat_says_what_runs_now_and_for_how_long_where_nothing_ends(clock: Clock) -> None:
    stream = io.StringIO()
    shown = shown_on(stream, clock)
    shown.stage("load and call", 9)
    clock.now_s += 4
    shown.step("dlrm")
    shown.beat()
    with shown.running("run ranker") as ranker, shown.running("run tagger"):
        clock.now_s += 1
        shown.beat()
        ranker.at("ranker: load", clock.now_s, before="2.4 s in torch 2.1.2")
        clock.now_s += 5
        shown.beat()
        clock.now_s += 4
        shown.beat()
        clock.now_s += 9
        shown.beat()
    clock.now_s += 300
    shown.beat()
    assert lines(stream) == [
        "load and call 0/9",
        "load and call 1/9, about 30 s left  run ranker (and 1 more)",
        "load and call 1/9, about 25 s left  run tagger, 6 s (and 1 more)",
        "load and call 1/9  run tagger, 19 s (and 1 more)",  # far more than a step took so far: nobody knows
        "load and call 1/9",
    ]


def test_activity_that_takes_long_is_held_against_the_time_that_it_took_before(clock: Clock) -> None:
    stream = io.StringIO()
    shown = shown_on(stream, clock)
    shown.stage("load and call", 9)
    with shown.running("run ranker") as ranker:
        ranker.at("ranker: load", clock.now_s, before="2.4 s in torch 2.1.2")
        clock.now_s += 12
        shown.beat()
    assert lines(stream)[1:] == ["load and call 0/9  ranker: load, 12 s (2.4 s in torch 2.1.2)"]


def test_beat_repeats_what_was_said_last_and_is_silent_outside_of_a_stage(clock: Clock) -> None:
    stream = io.StringIO()
    shown = shown_on(stream, clock)
    shown.beat()
    shown.stage("C++ worker")
    clock.now_s += 5
    shown.tick("compiling")
    clock.now_s += 5
    shown.beat()
    shown.finish()
    clock.now_s += 5
    shown.beat()
    assert lines(stream) == ["C++ worker", "C++ worker  compiling", "C++ worker  compiling"]


def test_line_says_how_long_a_stage_will_take_and_what_was_found(clock: Clock) -> None:
    stream = io.StringIO()
    shown = shown_on(stream, clock)
    shown.stage("load and call", 10)
    clock.now_s += 20
    shown.red(["a", "b"])
    shown.red(["b"])
    shown.step("b")
    clock.now_s += 20
    shown.judged(["a"])
    shown.step("c")
    shown.stage("timing", 5, left_s=240)
    clock.now_s += 130
    shown.tick("a")
    clock.now_s += 130
    shown.tick("b")
    assert lines(stream) == [
        "load and call 0/10",
        "load and call 1/10, about 3 min left, 2 red  b",
        "load and call 2/10, about 3 min left, 1 red  c",
        "timing 0/5, about 4 min left, 1 red",
        "timing 0/5, about 2 min left, 1 red  a",
        "timing 0/5, 1 red  b",  # it takes longer than was thought
    ]
    shown.red(["b"])
    shown.waived = {"a"}
    clock.now_s += 130
    shown.tick("c")
    assert lines(stream)[-1] == "timing 0/5, 1 red, 1 red with a waiver  c"


@pytest.mark.parametrize(
    ("seconds", "words"),
    [(0.3, "5 s"), (12, "10 s"), (38, "40 s"), (99, "100 s"), (101, "2 min"), (3000, "50 min"), (7300, "2 h")],
)
def test_time_that_is_known_roughly_is_said_roughly(seconds: float, words: str) -> None:
    assert progress.rough_duration(seconds) == f"about {words}"


def test_terminal_has_one_line_rewritten_in_place_kept_short_and_gone_in_the_end(clock: Clock) -> None:
    stream = Terminal()
    shown = shown_on(stream, clock)
    shown.stage("export", 2)
    clock.now_s += 1
    shown.step("x" * 300)
    parts = stream.getvalue().split("\r\x1b[K")
    assert [len(part) <= 100 for part in parts] == [True] * 3
    shown.stage("compare")
    assert "\n" not in stream.getvalue()
    shown.finish()
    assert stream.getvalue().endswith("compare\r\x1b[K")


def test_note_stands_above_the_line_of_a_terminal(clock: Clock) -> None:
    stream = Terminal()
    shown = shown_on(stream, clock)
    shown.stage("export")
    clock.now_s += 1
    shown.note("one model is red")
    assert stream.getvalue().endswith("\r\x1b[Kone model is red\n[   0.0 s] export")


def test_note_stays_on_a_line_of_its_own() -> None:
    stream, terminal = io.StringIO(), Terminal()
    Progress(stream).note("planted defect missed")
    Progress(terminal).note("planted defect missed")
    assert stream.getvalue() == "planted defect missed\n"
    assert terminal.getvalue() == "\r\x1b[Kplanted defect missed\n"


@pytest.mark.parametrize("stream", [io.StringIO(), Terminal()])
def test_disabled_progress_prints_nothing(stream: io.StringIO, clock: Clock) -> None:
    shown = shown_on(stream, clock, enabled=False)
    shown.stage("export", 2)
    clock.now_s += 10
    shown.step("a")
    shown.tick("b")
    shown.note("c")
    shown.finish()
    assert stream.getvalue() == ""


def test_what_it_says_steers_no_terminal(clock: Clock) -> None:
    stream = io.StringIO()
    shown = shown_on(stream, clock)
    shown.stage("a\x1b[2J")
    shown.note("b\x9b31m\u202e\nc")
    assert lines(stream) == [r"a\x1b[2J", r"b\x9b31m\u202e\nc"]


PROGRAM = """
from harness.machine.progress import Progress
shown = Progress()
shown.stage("export", 300)
for index in range(300):
    shown.step(f"model {index} with a long name " * 9)
shown.red(["a", "b"])
shown.note("so far  3 models: 2 FAIL, 1 well")
shown.stage("timing", 3, left_s=240)
shown.finish()
"""


WAITS = """
import time
from harness.machine.progress import Progress
shown = Progress()
shown.stage("load and call", 2)
with shown.running("ranker: load"):
    time.sleep(4.2)
shown.finish()
"""


def read_all(descriptor: int) -> str:
    """Return what comes out of a terminal until its last writer is gone."""
    parts: list[bytes] = []
    while True:
        try:
            part = os.read(descriptor, 65536)
        except OSError:  # what Linux says then
            return b"".join(parts).decode()
        if not part:
            return b"".join(parts).decode()
        parts.append(part)


def test_on_a_real_terminal_one_line_is_rewritten_and_only_notes_stay() -> None:
    ours, theirs = pty.openpty()
    with subprocess.Popen(
        [sys.executable, "-c", PROGRAM], stderr=theirs, env={**os.environ, "TERM": "xterm", "PYTHONPATH": os.getcwd()}
    ) as child:
        os.close(theirs)
        said = read_all(ours)
        assert child.wait() == 0
    os.close(ours)
    assert said.count("\n") == 1  # the note's
    seen = [part.rpartition("\n")[2] for part in said.split("\r\x1b[K")]
    assert max(map(len, seen)) < 80 and seen[-1] == ""
    assert re.search(r"timing 0/3, about 4 min left, 2 red$", seen[-2])


def test_through_a_real_pipe_stages_and_notes_are_plain_lines() -> None:
    command, environment = [sys.executable, "-c", PROGRAM], {**os.environ, "PYTHONPATH": os.getcwd()}
    said = subprocess.run(command, env=environment, capture_output=True, text=True, check=True).stderr
    assert "\x1b" not in said and "\r" not in said
    assert [re.sub(r"^\[ *[\d.]+ s\] ", "", line) for line in said.splitlines()] == [
        "export 0/300",
        "so far  3 models: 2 FAIL, 1 well",
        "timing 0/3, about 4 min left, 2 red",
    ]


def test_clock_of_a_real_terminal_runs_while_nothing_ends() -> None:
    ours, theirs = pty.openpty()
    with subprocess.Popen(
        [sys.executable, "-c", WAITS], stderr=theirs, env={**os.environ, "TERM": "xterm", "PYTHONPATH": os.getcwd()}
    ) as child:
        os.close(theirs)
        said = read_all(ours)
        assert child.wait() == 0
    os.close(ours)
    seen = said.split("\r\x1b[K")
    assert any(re.search(r"load and call 0/2  ranker: load, [34] s$", part) for part in seen), seen
    assert len(seen) >= 4 and seen[-1] == ""
