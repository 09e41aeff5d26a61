"""The clocks. Everywhere else a time is an argument."""

import datetime as dt
import time


def monotonic_ns() -> int:
    """Return the monotonic clock that workers stamp their events with, in nanoseconds."""
    return time.monotonic_ns()


def utc_now() -> dt.datetime:
    return dt.datetime.now(dt.UTC)


def today() -> dt.date:
    return utc_now().date()
