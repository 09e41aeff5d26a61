"""Work in threads: independent probes in parallel, blocking pieces side by side, and waits that can be cancelled."""

import threading
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import FIRST_EXCEPTION, Future, ThreadPoolExecutor, wait
from dataclasses import dataclass
from typing import Final, Generic, Self, TypeVar

from harness.core.errors import EnvironmentUnavailable

# A signal that comes between Python's last look for one and the begin of a wait, or to another thread, does not end
# the wait: it is seen when the wait ends by itself.
INTERRUPT_S: Final = 0.5

Item = TypeVar("Item")
Result = TypeVar("Result")
First = TypeVar("First")
Second = TypeVar("Second")


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


def both(first: Callable[[], First], second: Callable[[], Second]) -> tuple[First, Second]:
    results: list[First] = []
    two: list[Second] = []
    calls: tuple[Callable[[], None], ...] = (lambda: results.append(first()), lambda: two.append(second()))
    each(lambda call: call(), calls, jobs=2)
    return results[0], two[0]


def answer(future: "Future[Result]") -> Result:
    while not wait((future,), timeout=INTERRUPT_S).done:
        pass
    return future.result()


_JOIN_S: Final = 15.0

T = TypeVar("T")
Key = TypeVar("Key")


class Cancelled(Exception):
    """Raised by a piece of work after its ``cancelled`` event was set and it has cleaned up."""


def run_side_by_side(
    work: Mapping[Key, Callable[[threading.Event], T]],
    cancelled: threading.Event | None = None,
    *,
    first_failure_cancels: bool = False,
) -> tuple[dict[Key, T], dict[Key, Exception]]:
    """Return the results and the failures of all pieces of ``work``, after every one has ended.

    Each piece gets an event and must end soon once it is set. Signals reach the main thread only, so the pieces never
    see KeyboardInterrupt themselves. ``cancelled``: the event, where the caller itself may want to end them;
    ``first_failure_cancels``: whether the others end with the first that fails; they are no failures then. Raises
    ``KeyboardInterrupt``: raised here after the event was set and the pieces had 15 s to clean up.
    """
    cancelled = cancelled or threading.Event()
    results: dict[Key, T] = {}
    failures: dict[Key, Exception] = {}

    def run(key: Key, piece: Callable[[threading.Event], T]) -> None:
        try:
            results[key] = piece(cancelled)
        except Exception as error:  # noqa: BLE001  the caller gets every failure
            if not (isinstance(error, Cancelled) and failures):
                failures[key] = error
            if first_failure_cancels:
                cancelled.set()

    threads = [threading.Thread(target=run, args=item, daemon=True) for item in work.items()]
    try:
        for thread in threads:
            thread.start()
        for thread in threads:
            while thread.is_alive():
                thread.join(INTERRUPT_S)
    except BaseException:
        cancelled.set()
        limit = time.monotonic() + _JOIN_S
        for thread in threads:
            if thread.ident is not None:
                thread.join(max(0.0, limit - time.monotonic()))
        raise
    return results, failures


def raise_failures(failures: Sequence[Exception]) -> None:
    """Raise what went wrong as one exception, or return if nothing did.

    Raises:
        EnvironmentUnavailable: all failures are of this kind; the message has one line for each.
        Exception: the first failure of another kind, as it is.
    """
    for failure in failures:
        if not isinstance(failure, EnvironmentUnavailable):
            raise failure
    unavailable = [failure for failure in failures if isinstance(failure, EnvironmentUnavailable)]
    if len(unavailable) == 1:
        raise unavailable[0]
    if unavailable:
        lines = "\n".join(f"  {failure}" for failure in unavailable)
        raise EnvironmentUnavailable(f"{len(unavailable)} environments could not be provisioned:\n{lines}")


class Background(Generic[T]):
    """Work in a thread of its own until the ``with`` block ends: then ``piece``'s event is set, and it must end."""

    def __init__(self, piece: Callable[[threading.Event], T]) -> None:
        self._cancelled = threading.Event()
        self._pool = ThreadPoolExecutor(max_workers=1, thread_name_prefix="background")
        self._future = self._pool.submit(piece, self._cancelled)

    def result(self, tick: Callable[[], None] = lambda: None) -> T:
        """Return what the piece returns or raise what it raised; ``tick`` is called twice a second until then."""
        while not wait((self._future,), timeout=INTERRUPT_S).done:
            tick()
        return self._future.result()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._cancelled.set()
        wait((self._future,), timeout=_JOIN_S)
        self._pool.shutdown(wait=False, cancel_futures=True)


_POLL_S: Final = 0.02
_TICK_S: Final = 2.0


class DeadlineExceeded(Exception):
    """Raised where what was waited for did not happen in time."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Patience:
    """How a build waits; ``deadline``: on ``time.monotonic()``; ``tick``: called about every 2 s while it waits."""

    deadline: float
    tick: Callable[[], None]
    cancelled: threading.Event

    def wait_until(self, has_happened: Callable[[], bool]) -> None:
        """Return once ``has_happened``, which is asked 50 times a second.

        Raises ``Cancelled``: ``cancelled`` was set; ``DeadlineExceeded``: it did not happen in time.
        """
        next_tick = time.monotonic() + _TICK_S
        while not has_happened():
            now = time.monotonic()
            if now >= self.deadline:
                raise DeadlineExceeded
            if now >= next_tick:
                next_tick = now + _TICK_S
                self.tick()
            if self.cancelled.wait(_POLL_S):
                raise Cancelled
