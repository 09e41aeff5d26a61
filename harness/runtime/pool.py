"""Runs independent probes side by side; an interrupt cancels what has not begun and goes on up at once."""

from collections.abc import Callable, Iterable
from concurrent.futures import FIRST_EXCEPTION, ThreadPoolExecutor, wait
from typing import TypeVar

Item = TypeVar("Item")
Result = TypeVar("Result")


def each(function: Callable[[Item], Result], items: Iterable[Item], *, jobs: int) -> list[Result]:
    """Return ``function`` of every item, in order, ``jobs`` at a time.

    The first exception cancels what has not begun and is raised; what runs is left to whoever owns the
    processes it waits for (closing the probe runner ends them).
    """
    pool = ThreadPoolExecutor(max_workers=max(1, jobs), thread_name_prefix="probe")
    futures = [pool.submit(function, item) for item in items]
    try:
        done, _ = wait(futures, return_when=FIRST_EXCEPTION)
        for future in done:
            error = future.exception()
            if error is not None:
                raise error
        return [future.result() for future in futures]
    finally:
        pool.shutdown(wait=False, cancel_futures=True)
