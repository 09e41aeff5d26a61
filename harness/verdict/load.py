"""Whether a server of the new release answers more slowly under load, or holds fewer requests; pure."""

from collections.abc import Collection, Mapping
from typing import Final

from harness.checks.startup.rates import more_often
from harness.core.load import LOAD_LIMITS, LoadFailure, LoadKind, LoadMeasurement, LoadPlan, LoadQuantity, LoadRow
from harness.core.measurement import CONTROL, NEW, OLD, RatioEstimate
from harness.core.outcome import Status

LATE_S, LATE_SHARE = 1e-3, 0.1
"""A generator that sends one request in a hundred later than both of these (seconds; share of the old median) does not
make the rate that was asked for, and what it measured is not judged."""
FAILED: Final = "failed"
"""The row of requests without an answer."""
NOT_READY: Final = "ready"
"""The row of a server that was not ready for a round."""
FAILED_LEVEL = 1e-3
RATES = ("ceiling", "within_slo")
"""Quantities of which more is better."""


def is_worse(ratio: RatioEstimate | None, limit: float) -> bool:
    """Whether a ratio, above 1 where it is worse, seems so: its interval lies above 1, and it itself above the limit.

    On identical servers that happens once in 40; fresh rounds must show the same, which makes it once in 1,600. With
    the whole interval above the limit, a tail that is 10 % slower would be found in half of the runs: a 99th percentile
    is known to some 4 % after two minutes.
    """
    return ratio is not None and ratio.low > 1 and ratio.ratio > limit


def limits_of(plan: LoadPlan) -> Mapping[str, float]:
    return {**LOAD_LIMITS, **plan.limits}


def suspects(measurement: LoadMeasurement) -> tuple[str, ...]:
    """Return the names of quantities that fresh rounds are to confirm."""
    limits = limits_of(measurement.plan)
    return tuple(item.name for item in measurement.quantities if is_worse(item.ratio, limits[item.name]))


def made_the_rate(measurement: LoadMeasurement) -> bool:
    """Whether the generator sent its requests when they were due."""
    median = next((item.old for item in measurement.quantities if item.name == "p50"), 0.0)
    return measurement.late_p99_s <= max(LATE_S, LATE_SHARE * median)


def load_rows(measurement: LoadMeasurement | None, failure: LoadFailure | None = None) -> tuple[LoadRow, ...]:
    """Return what each quantity comes to; nothing is said where the generator did not make the rate.

    A server that was ready twice before, and is not in a round of the load, is one that nothing can be told of.
    """
    if failure is not None:
        return (LoadRow(name=NOT_READY, status=Status.INCONCLUSIVE, limit=1.0),)
    if measurement is None:
        return ()
    limits = limits_of(measurement.plan)
    late = not made_the_rate(measurement)
    rows = [
        LoadRow(
            name=item.name,
            status=Status.INCONCLUSIVE if late else judged(item, limits[item.name]),
            limit=limits[item.name],
            varies=varies(item, limits[item.name]),
        )
        for item in measurement.quantities
    ]
    return (*rows, LoadRow(name=FAILED, status=failed_status(measurement), limit=1.0))


def varies(quantity: LoadQuantity, limit: float) -> bool:
    """Whether the old release differs from itself by more than the limit, in either direction."""
    control = quantity.control
    return control is not None and (is_worse(control, limit) or (control.high < 1 and control.ratio < 1 / limit))


def judged(quantity: LoadQuantity, limit: float) -> Status:
    """Return what is to be said of a quantity, given a generator that made the rate."""
    if varies(quantity, limit):
        return Status.INCONCLUSIVE
    if is_worse(quantity.ratio, limit):
        return Status.FAIL if is_worse(quantity.fresh, limit) else Status.INCONCLUSIVE
    if quantity.ratio is not None and quantity.ratio.high < limit:
        return Status.PASS
    return Status.INCONCLUSIVE


def failed_status(measurement: LoadMeasurement) -> Status:
    """Return what is to be said of requests without an answer: the new release must not leave out more of them.

    By Fisher's exact test at a level of 1 in 1,000. Requests fail together, so it counts blocks in which any failed.
    """
    old, new = unanswered(measurement)
    if not new[0]:
        return Status.PASS
    return Status.FAIL if more_often(*new, *old, FAILED_LEVEL) else Status.INCONCLUSIVE


def unanswered(measurement: LoadMeasurement) -> tuple[tuple[int, int], tuple[int, int]]:
    """Return, of the old side and of the new, in how many blocks a request had no answer, and of how many."""

    def of(arms: Collection[str]) -> tuple[int, int]:
        blocks = [one for one in measurement.blocks if one.kind is LoadKind.STEADY and one.arm in arms]
        return sum(one.failed + one.unsent > 0 for one in blocks), len(blocks)

    return of((OLD, CONTROL)), of((NEW,))
