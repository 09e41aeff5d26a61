"""The clocks. Everywhere else a time is an argument."""

import datetime
import time


def monotonic_ns() -> int:
    """Return the monotonic clock that workers stamp their events with, in nanoseconds."""
    return time.monotonic_ns()


def utc_now() -> datetime.datetime:
    """Return now, in UTC."""
    return datetime.datetime.now(datetime.UTC)


def today() -> datetime.date:
    """Return today's date, in UTC."""
    return utc_now().date()
