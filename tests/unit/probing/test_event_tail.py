"""A event_log is followed in pieces, however large an artifact makes it."""

from pathlib import Path

import pytest

from harness.probing import events
from harness.probing.events import EventTail
from tests.unit.builders.requests import event


def test_lines_come_as_they_are_written(tmp_path: Path) -> None:
    path = tmp_path / "events.jsonl"
    tail = EventTail(path)
    assert not tail.refresh().hello
    path.write_text(event("hello") + "\n" + event("bye")[:5])
    assert (tail.refresh().hello, tail.event_log.bye) == (True, False)
    path.write_text(event("hello") + "\n" + event("bye") + "\n")
    assert tail.refresh().bye


def test_a_long_event_log_is_read_in_pieces_to_its_end(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(events, "LONGEST_LINE_BYTES", 100)
    path = tmp_path / "events.jsonl"
    path.write_text("\n".join([event("hello"), *(event("mark", name=str(n), data=n) for n in range(50)), event("bye")]))
    found = EventTail(path).refresh()
    assert (found.hello, len(found.marks), found.bye) == (True, 50, False)


def test_a_line_that_is_none_of_ours_is_skipped(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(events, "LONGEST_LINE_BYTES", 100)
    path = tmp_path / "events.jsonl"
    path.write_text(event("hello") + "\n" + "[" * 1000 + "\n" + event("bye") + "\n")
    found = EventTail(path).refresh()
    assert (found.hello, found.bye) == (True, True)


def test_a_event_log_without_end_is_not_read_to_its_end(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(events, "LONGEST_LINE_BYTES", 100)
    monkeypatch.setattr(events, "MOST_EVENT_LOG_BYTES", 1000)
    path = tmp_path / "events.jsonl"
    path.write_text(event("hello") + "\n" * 2000 + event("bye") + "\n")
    found = EventTail(path).refresh()
    assert (found.hello, found.bye) == (True, False)
