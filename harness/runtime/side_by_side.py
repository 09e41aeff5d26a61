"""Blocking pieces of work run side by side in threads, with every failure collected and Ctrl-C passed on."""

import threading
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Final, TypeVar

from harness.errors import EnvironmentUnavailable
from harness.runtime.pool import INTERRUPT_S

_JOIN_S: Final = 15.0

T = TypeVar("T")


class Cancelled(Exception):
    """Raised by a piece of work after its ``cancelled`` event was set and it has cleaned up."""


def run_side_by_side(
    work: Mapping[int, Callable[[threading.Event], T]], cancelled: threading.Event | None = None
) -> tuple[dict[int, T], dict[int, Exception]]:
    """Return the results and the failures of all pieces of ``work``, after every one has ended.

    Each piece gets an event and must end soon once it is set. Signals reach the main thread only, so the pieces never
    see KeyboardInterrupt themselves.

    Args:
        cancelled: the event, where the caller itself may want to end them.

    Raises:
        KeyboardInterrupt: raised here after the event was set and the pieces had 15 s to clean up.
    """
    cancelled = cancelled or threading.Event()
    results: dict[int, T] = {}
    failures: dict[int, Exception] = {}

    def run(key: int, piece: Callable[[threading.Event], T]) -> None:
        try:
            results[key] = piece(cancelled)
        except Exception as error:  # noqa: BLE001  the caller gets every failure
            failures[key] = error

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
