"""Independent probes side by side."""

import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from concurrent.futures import Future
from pathlib import Path
import pytest
from harness.machine import pool
from harness.machine.pool import Background, Cancelled, DeadlineExceeded, Patience


def test_results_come_in_the_order_of_the_items() -> None:
    second_done = threading.Event()

    def work(item: int) -> int:
        if item == 0:
            assert second_done.wait(10)
        else:
            second_done.set()
        return item * 10

    assert pool.each(work, [0, 1, 2], jobs=2) == [0, 10, 20]


def test_no_items_give_no_results() -> None:
    assert pool.each(str, [], jobs=2) == []


@pytest.mark.parametrize("jobs", [0, -3])
def test_fewer_than_one_job_is_one(jobs: int) -> None:
    assert pool.each(str, [1, 2], jobs=jobs) == ["1", "2"]


def test_no_more_than_jobs_run_at_once() -> None:
    lock, running, most = threading.Lock(), 0, 0
    together = threading.Barrier(2)

    def work(_item: int) -> None:
        nonlocal running, most
        with lock:
            running += 1
            most = max(most, running)
        together.wait(10)
        with lock:
            running -= 1

    pool.each(work, range(4), jobs=2)
    assert most == 2


def test_first_exception_is_raised_and_cancels_what_has_not_begun() -> None:
    begun: list[int] = []
    release = threading.Event()

    def work(item: int) -> None:
        begun.append(item)
        if item == 0:
            raise ValueError("first")
        release.wait(5)

    try:
        with pytest.raises(ValueError, match="first"):
            pool.each(work, range(5), jobs=1)
    finally:
        release.set()
    for thread in threading.enumerate():
        if thread.name.startswith("probe"):
            thread.join(30)
    assert begun in ([0], [0, 1])


def test_exception_does_not_wait_for_what_still_runs() -> None:
    release, running, ended = threading.Event(), threading.Event(), threading.Event()

    def work(item: int) -> None:
        if item == 0:
            running.set()
            release.wait(10)
            ended.set()
        else:
            assert running.wait(10)
            raise ValueError("second")

    try:
        with pytest.raises(ValueError, match="second"):
            pool.each(work, [0, 1], jobs=2)
        assert not ended.is_set()
    finally:
        release.set()


WAITS: dict[str, Callable[[Callable[[], None]], object]] = {
    "each": lambda work: pool.each(lambda _: work(), [0], jobs=1),
    "answer": lambda work: pool.answer(_begun(work)),
    "side by side": lambda work: pool.run_side_by_side({0: lambda cancelled: _then_wait(work, cancelled)}),
    "background": lambda work: _in_background(work),
}


def _then_wait(work: Callable[[], None], cancelled: threading.Event) -> None:
    work()
    cancelled.wait(30)


def _in_background(work: Callable[[], None]) -> None:
    with Background(lambda cancelled: _then_wait(work, cancelled)) as begun:
        begun.result()


def _begun(work: Callable[[], None]) -> "Future[None]":
    threading.Thread(target=work, daemon=True).start()
    return Future()


@pytest.mark.parametrize("name", WAITS)
def test_a_signal_that_wakes_nobody_ends_the_wait_all_the_same(name: str) -> None:
    """As one that arrives just before the wait begins; here it goes to a thread that the main one waits for."""
    release = threading.Event()

    def work() -> None:
        time.sleep(0.2)  # until the main thread waits
        signal.pthread_kill(threading.get_ident(), signal.SIGINT)
        if name == "each":
            release.wait(30)

    begin = time.monotonic()
    try:
        with pytest.raises(KeyboardInterrupt):
            WAITS[name](work)
        assert time.monotonic() - begin < 20
    finally:
        release.set()


@pytest.mark.slow
def test_tests_that_interrupt_pass_behind_nohup_and_in_the_background() -> None:
    """As with ``nohup pytest`` or ``pytest &`` in a script. An ignored SIGINT would interrupt nobody, for ever."""
    asked = f"{Path(__file__)}::test_a_signal_that_wakes_nobody_ends_the_wait_all_the_same"
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", asked]
    shell = ["sh", "-c", "trap '' INT TERM CHLD; exec \"$@\"", "sh"]
    done = subprocess.run(
        [*shell, *command], cwd=Path(__file__).parents[3], capture_output=True, text=True, timeout=120
    )
    assert done.returncode == 0, done.stdout


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


def test_background_work_goes_on_beside_the_block_and_gives_its_result() -> None:
    beside = threading.Event()
    with Background(lambda _: beside.wait(30)) as begun:
        assert begun.result(tick=beside.set) is True


def test_what_background_work_raises_is_raised_where_its_result_is_asked_for() -> None:
    with Background(lambda _: int("x")) as begun, pytest.raises(ValueError, match="invalid literal"):
        begun.result()


def test_background_work_has_ended_where_its_block_is_left_early() -> None:
    ended = threading.Event()

    def piece(cancelled: threading.Event) -> None:
        if cancelled.wait(30):
            time.sleep(0.2)  # it cleans up
            ended.set()

    with pytest.raises(KeyError), Background(piece):
        raise KeyError
    assert ended.is_set()
