"""Deadlines over a diary, without processes; the processes are in test_probe_runner."""

import json
import time
from pathlib import Path

import pytest

from harness.domain.probe import Deadline
from harness.runtime import process, watchdog
from harness.runtime.event_reader import Diary, EventTail
from harness.runtime.zygote import Child

DEADLINE = Deadline(load_s=100.0, call_s=10.0, total_s=1000.0)


def began(phase: str, seconds_ago: float, *, model: str = "m", thread: int = 0) -> str:
    ns = time.monotonic_ns() - int(seconds_ago * 1e9)
    return json.dumps({"ev": "begin", "phase": phase, "model": model, "thread": thread, "ident": 1, "ns": ns})


def late(*lines: str, seconds_ago: float = 0.0) -> list[tuple[str, str]] | None:
    diary = Diary()
    diary.feed(lines)
    found = watchdog.overdue(diary, DEADLINE, time.monotonic() - seconds_ago)
    return None if found is None else [(opened.phase, opened.model) for opened in found]


def test_phases_within_their_deadline_are_not_late() -> None:
    assert late(began("call", 5)) is None
    assert late(began("load", 50)) is None


def test_call_has_the_deadline_of_calls_and_load_that_of_loads() -> None:
    assert late(began("call", 11)) == [("call", "m")]
    assert late(began("load", 11)) is None
    assert late(began("load", 101)) == [("load", "m")]


def test_only_the_late_thread_is_named() -> None:
    assert late(began("call", 11, model="a", thread=0), began("call", 1, model="b", thread=1)) == [("call", "a")]


def test_waiting_at_the_barrier_is_nobodys_hang() -> None:
    assert late(began("barrier", 500, model="")) is None


def test_spent_total_names_every_open_phase() -> None:
    lines = began("call", 5, model="a", thread=0), began("load", 5, model="b", thread=1)
    assert late(*lines, seconds_ago=1001) == [("call", "a"), ("load", "b")]


def test_spent_total_outside_of_every_phase_is_an_end_too() -> None:
    assert late(seconds_ago=1001) == []


def test_finished_phase_is_not_late() -> None:
    ended = json.dumps({"ev": "end", "phase": "call", "model": "m", "thread": 0, "ns": time.monotonic_ns()})
    assert late(began("call", 500), ended) is None


def test_tail_reads_each_line_once_and_waits_for_the_rest_of_a_torn_one(tmp_path: Path) -> None:
    path = tmp_path / "events.jsonl"
    tail = EventTail(path)
    assert not tail.refresh().hello
    line = began("load", 1).encode() + b"\n"
    path.write_bytes(b'{"ev":"hello","ns":1}\n' + line[:20])
    assert tail.refresh().hello
    assert not tail.diary.open
    path.write_bytes(path.read_bytes() + line[20:])
    assert [opened.phase for opened in tail.refresh().open.values()] == ["load"]
    assert len(tail.refresh().open) == 1


@pytest.mark.parametrize(
    "line",
    [
        "",
        "5",
        "[]",
        "null",
        '"text"',
        "{}",
        '{"ev":"begin","ns":1}',
        '{"ev":"end","ns":1}',
        '{"ev":3,"ns":1}',
        '{"ev":"x","ns":"y"}',
        "{",
    ],
)
def test_strange_line_in_the_diary_is_skipped(line: str) -> None:
    diary = Diary()
    diary.feed([line, began("load", 1)])
    assert len(diary.open) == 1


def test_child_that_was_never_forked_ends_with_the_total(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(process, "REAP_DEADLINE_S", 0.1)
    ending = watchdog.watch(Child(run_dir=str(tmp_path)), tmp_path, Deadline(load_s=1, call_s=1, total_s=0.1))
    assert (ending.killed, ending.reaped, ending.overdue) == (True, False, ())


def test_child_that_has_ended_is_not_killed(tmp_path: Path) -> None:
    child = Child(run_dir=str(tmp_path))
    child.ended.set()
    ending = watchdog.watch(child, tmp_path, Deadline(load_s=0, call_s=0, total_s=0))
    assert (ending.killed, ending.reaped, ending.stacks) == (False, True, "")
