"""Waiting that somebody is told of, that has an end, and that another thread may end."""

import threading
import time

import pytest

from harness.system import pool
from harness.system.pool import Cancelled, DeadlineExceeded, Patience


def patient(seconds: float, ticks: list[float] | None = None, cancelled: threading.Event | None = None) -> Patience:
    return Patience(
        deadline=time.monotonic() + seconds,
        tick=lambda: (ticks if ticks is not None else []).append(time.monotonic()),
        cancelled=cancelled or threading.Event(),
    )


def test_what_has_happened_already_is_not_waited_for() -> None:
    ticks: list[float] = []
    patient(-1, ticks).wait_until(lambda: True)
    assert ticks == []


def test_wait_ends_when_it_happens_and_somebody_is_reported_meanwhile(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pool, "_TICK_S", 0.05)
    answers, ticks = iter([False] * 10 + [True]), list[float]()
    patient(60, ticks).wait_until(lambda: next(answers))
    assert next(answers, None) is None
    assert ticks
    assert len(ticks) < 10


def test_wait_ends_at_its_deadline() -> None:
    with pytest.raises(DeadlineExceeded):
        patient(0.05).wait_until(lambda: False)


def test_wait_is_ended_from_another_thread() -> None:
    cancelled = threading.Event()
    cancelled.set()
    with pytest.raises(Cancelled):
        patient(60, cancelled=cancelled).wait_until(lambda: False)
