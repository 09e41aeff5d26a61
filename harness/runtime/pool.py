"""Runs independent probes side by side; an interrupt cancels what has not begun and goes on up at once."""

from collections.abc import Callable, Iterable
from concurrent.futures import FIRST_EXCEPTION, Future, ThreadPoolExecutor, wait
from typing import Final, TypeVar

# A signal that comes between Python's last look for one and the begin of a wait, or to another thread, does not end
# the wait: it is seen when the wait ends by itself.
INTERRUPT_S: Final = 0.5

Item = TypeVar("Item")
Result = TypeVar("Result")


def each(function: Callable[[Item], Result], items: Iterable[Item], *, jobs: int) -> list[Result]:
    """Return ``function`` of every item, in order, ``jobs`` at a time.

    The first exception cancels what has not begun and is raised; what runs is left to whoever owns the
    processes it waits for (closing the probe runner ends them).
    """
    pool = ThreadPoolExecutor(max_workers=max(1, jobs), thread_name_prefix="probe")
    try:
        futures: list[Future[Result]] = [pool.submit(function, item) for item in items]
        pending = set(futures)
        while pending:
            done, pending = wait(pending, timeout=INTERRUPT_S, return_when=FIRST_EXCEPTION)
            for future in done:
                error = future.exception()
                if error is not None:
                    raise error
        return [future.result() for future in futures]
    finally:
        pool.shutdown(wait=False, cancel_futures=True)


def answer(future: "Future[Result]") -> Result:
    """Return the result of ``future``, or raise what it raised; an interrupt ends the wait for it."""
    while not wait((future,), timeout=INTERRUPT_S).done:
        pass
    return future.result()
