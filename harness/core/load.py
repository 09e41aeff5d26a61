"""Load that both releases of a server were put under, as measured. No verdict lives here."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Final

from harness.core.measurement import RatioEstimate
from harness.core.outcome import Status

LOAD_LIMITS: Final[Mapping[str, float]] = {
    "p50": 1.05,
    "p90": 1.05,
    "p99": 1.05,
    "p99.9": 1.10,
    "ceiling": 1.05,
    "within_slo": 1.05,
}
"""Worse by more than this factor is worth stopping for, where the table of the server does not say otherwise."""


class LoadKind(StrEnum):
    """What a block of load is for."""

    WARM_UP = "warm-up"
    """Not counted."""
    STEADY = "steady"
    """Requests at the rate of the comparison, whatever the answers take."""
    CEILING = "ceiling"
    """As many requests at a time as there are connections, for the rate that cannot be exceeded."""
    SWEEP = "sweep"
    """Requests at one of several rates, for the curve of latency over rate."""


@dataclass(frozen=True, kw_only=True, slots=True)
class LoadPlan:
    """How much load.

    Attributes:
        rate: requests a second of the comparison; None: half of what the old release cannot exceed.
        seconds: length of a block.
        turns: blocks of each server in a round, turn by turn.
        rounds: fresh servers of each side; as many again confirm a suspicion.
        connections: that are open before a block, and how many requests a closed loop has under way.
        patience_s: how long after a block's last request answers are waited for.
        slo_s: time within which 99 of 100 requests must be answered, None where none is set.
        recorded: whether requests arrive as they did when they were recorded, scaled to the rate; else at random.
        limits: quantity -> ratio, worse over better, from which on it counts; a key only where it was written.
    """

    rate: float | None = None
    seconds: float = 2.0
    turns: int = 3
    rounds: int = 6
    connections: int = 8
    patience_s: float = 10.0
    slo_s: float | None = None
    recorded: bool = False
    limits: Mapping[str, float] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True, slots=True)
class LoadBlock:
    """What became of the requests of a block.

    Attributes:
        arm: ``"old"``, ``"new"`` or ``"control"`` (a second server of the old release).
        rate: requests a second that were to arrive; 0 in a closed loop.
        sent: requests that were sent; ``unsent``: that were not, because too many were without an answer already.
        answered: with a status below 400. ``refused``: status -> how many. ``broken``: connections that ended without
            an answer, or could not be made. ``unanswered``: still without an answer when patience ended.
        wall_s: from the first request to the last answer, or to the end of patience.
        late_p99_s: by how much requests were sent late by our own doing; 99 of 100 by less.
    """

    arm: str
    round: int
    kind: LoadKind
    rate: float
    sent: int
    answered: int
    refused: Mapping[str, int]
    broken: int
    unanswered: int
    unsent: int
    wall_s: float
    late_p99_s: float

    @property
    def failed(self) -> int:
        """Requests that got no answer, or an error for one."""
        return sum(self.refused.values()) + self.broken + self.unanswered


@dataclass(frozen=True, kw_only=True, slots=True)
class LoadQuantity:
    """One quantity of both sides.

    Attributes:
        name: ``"p50"``, ``"p90"``, ``"p99"``, ``"p99.9"`` (seconds), ``"ceiling"`` or ``"within_slo"`` (requests a
            second).
        old, new: of all rounds together; infinite where too many requests had no answer.
        ratio: worse over better: new/old of times, old/new of rates; None where a side has no finite value.
        control: the same of the old release against itself.
        fresh: the same of the rounds that were to confirm a suspicion; None where there were none.
    """

    name: str
    old: float
    new: float
    ratio: RatioEstimate | None
    control: RatioEstimate | None
    fresh: RatioEstimate | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class CurvePoint:
    """Quantiles in seconds of the answers at one rate; infinite where too many requests had none."""

    arm: str
    rate: float
    p50_s: float
    p99_s: float


@dataclass(frozen=True, kw_only=True, slots=True)
class LoadMeasurement:
    """Both releases of a server under the same load.

    Attributes:
        rate: requests a second of the comparison. ``rounds``: fresh servers of each side, those that confirm included.
        late_p99_s: by how much the generator itself was late, in the median block: it cannot make the rate where that
            is long.
    """

    plan: LoadPlan
    rate: float
    rounds: int
    quantities: tuple[LoadQuantity, ...]
    blocks: tuple[LoadBlock, ...]
    curve: tuple[CurvePoint, ...] = ()
    late_p99_s: float = 0.0


@dataclass(frozen=True, kw_only=True, slots=True)
class LoadFailure:
    """Why a load ended early: a server of ``arm`` was never ready; ``log``: the last lines that it wrote."""

    arm: str
    ended: str
    log: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True, slots=True)
class LoadRow:
    """One quantity judged.

    Attributes:
        name: of the ``LoadQuantity``, or ``"failed"``: requests without an answer.
        limit: ratio, worse over better, from which on it counts.
        varies: whether the old release differs from itself by more than that.
    """

    name: str
    status: Status
    limit: float
    varies: bool = False
