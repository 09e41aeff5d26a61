"""Moments of a report as numbers, for the formats that want them so."""

import datetime as dt


def seconds_since_epoch(text: str) -> float | None:
    """Return a moment or the begin of a day, in UTC where it has no zone; None where it is neither."""
    try:
        moment = dt.datetime.fromisoformat(text)
    except ValueError:
        return None
    return (moment if moment.tzinfo else moment.replace(tzinfo=dt.UTC)).timestamp()
