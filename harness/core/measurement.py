"""Times and memory as measured, and the estimates made of them. No verdict lives here."""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum

# The processes of a round. The control is a second one of the old release: same against same.
NEW, OLD, CONTROL = "new", "old", "control"
# A ratio from here on reads better as a factor than as a percentage.
FACTORS_FROM = 10.0


@dataclass(frozen=True, kw_only=True, slots=True)
class Block:
    """One short block of calls in one process.

    Attributes:
        arm: ``"old"``, ``"new"`` or ``"control"`` (a second process of the old release: same against same).
        turn: blocks of one turn ran one right after the other, one per arm, in an order drawn anew.
        p50_s: median seconds per call of the block.
        waited: share of the block's time in which the calling thread was ready and had no core, 0 to 1.
    """

    arm: str
    turn: int
    p50_s: float
    calls: int
    waited: float = 0.0


@dataclass(frozen=True, kw_only=True, slots=True)
class ArmSample:
    """One model in one process of one round; None is "not measured".

    Attributes:
        load_s: seconds of ``torch.jit.load``.
        calls_s: seconds of call 0, 1, 2, ... after load.
        mean_s: mean seconds per call over all blocks of the round; ``p90_s``, ``p99_s``: quantiles of them.
        request_s: wall time over answered requests while several threads call at once: 1 / throughput;
            ``request_cpu_s``: CPU time of the process over them.
        peak_rss_bytes: how far loading and the first calls raised the peak of resident memory above what was resident
            before; ``device_bytes``: the same for the GPU's allocator.
        growth_bytes: growth of resident memory from the end of the first block to the end of the last.
        shapes_s: per other input set of another shape, in the warm process: seconds of call 0, 1, 2, ...
        replay_s: median seconds of a replayed graph.
        missing: quantity -> why this process could not tell it, in words: ``request``, ``replay``, ``new_shape:SET``.
    """

    load_s: float
    calls_s: tuple[float, ...]
    mean_s: float | None = None
    p90_s: float | None = None
    p99_s: float | None = None
    request_s: float | None = None
    request_cpu_s: float | None = None
    peak_rss_bytes: int | None = None
    device_bytes: int | None = None
    growth_bytes: int | None = None
    shapes_s: Mapping[str, tuple[float, ...]] = field(default_factory=dict)
    replay_s: float | None = None
    missing: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True, slots=True)
class PairSample:
    """One model in one round of fresh processes.

    Attributes:
        round: index of the round of fresh processes.
        blocks: steady-state blocks in the order they ran.
        arms: arm -> what else its process told.
        spent_s: what loading, first calls and blocks took, without the start of the processes and without the extras.
    """

    model: str
    round: int
    blocks: tuple[Block, ...]
    arms: Mapping[str, ArmSample]
    spent_s: float = 0.0


@dataclass(frozen=True, kw_only=True, slots=True)
class RatioEstimate:
    """A ratio new/old with its 95 % confidence interval; the unit is a pair of fresh processes.

    Attributes:
        ratio: geometric mean over pairs.
        low, high: bounds of the interval; (0, inf) with fewer than two pairs.
        detectable: upper bound over ratio: with limit L a true ratio of (1 + L) x this would have been told from L
            half of the time.
    """

    ratio: float
    low: float
    high: float
    pairs: int
    detectable: float

    @property
    def inverse(self) -> "RatioEstimate":
        """The ratio the other way round: of rates where it is of times."""
        low, high = (1 / bound if bound > 0 else math.inf for bound in (self.high, self.low))
        return replace(self, ratio=1 / self.ratio, low=low, high=high)

    @property
    def centre(self) -> str:
        """The ratio alone: ``+2.1 %``, from x10 on as a factor."""
        return f"x{self.ratio:.1f}" if self.ratio >= FACTORS_FROM else f"{signed_percent(self.ratio)} %"

    @property
    def words(self) -> str:
        """The ratio with its interval: ``+2.1 % [-0.3, +4.5]``, from x10 on as factors, or ``+2.1 % (1 pair)``."""
        if self.ratio >= FACTORS_FROM:
            low, high = f"{self.low:.1f}", f"{self.high:.1f}"
        else:
            low, high = signed_percent(self.low), signed_percent(self.high)
        if not (math.isfinite(self.low) and math.isfinite(self.high)):
            return f"{self.centre} ({self.pairs} pair{'' if self.pairs == 1 else 's'})"
        return f"{self.centre} [{low}, {high}]"


def limit_words(ratio: float) -> str:
    """Return a limit the way limits are written everywhere: 1.05 as ``+5 %``, 1.025 as ``+2.5 %``."""
    return f"+{100 * (ratio - 1):.4g} %"


def signed_percent(ratio: float) -> str:
    """Return a ratio as a signed change: one decimal below 100, none above; a rounded zero is ``0.0``."""
    change = (ratio - 1) * 100
    text = f"{change:+.{1 if abs(change) < 99.95 else 0}f}"
    return "0.0" if text in {"+0.0", "-0.0"} else text


@dataclass(frozen=True, kw_only=True, slots=True)
class Quantity:
    """One quantity of both releases: medians over rounds, and the ratio new/old.

    ``unit``: ``"s"``, ``"bytes"`` or ``"calls"``; ``ratio``: None where a side is zero or was not measured, or a ratio
    means nothing.
    """

    old: float
    new: float
    unit: str = "s"
    ratio: RatioEstimate | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class Problem:
    """Why a model has no sample.

    ``arm``: whose process it is the doing of; empty where it is nobody's; ``refused``: whether that process answered an
    error, and can go on with other models.
    """

    words: str
    arm: str = ""
    refused: bool = False


NO_PROBLEM = Problem(words="")


@dataclass(frozen=True, kw_only=True, slots=True)
class LatencyMeasurement:
    """Everything the benchmark learnt about one model.

    Attributes:
        steady: new/old of the median call, against the processes of the old release that timed the model.
        same_against_same: control/old: what this machine makes of two processes of one build; None where fewer than two
            rounds had both.
        confirmation: ``steady`` from the fresh rounds that a suspicion asked for; None where there was none.
        quantities: by name, from the rounds of the search; ``harness/checks/latency/quantities.py`` has the list.
        fresh_quantities: the same from the fresh rounds alone.
        missing: quantity -> (why the old release, why the new one could not tell it); empty where it could.
        growth_bytes: by how much more the new release's resident memory grew over the blocks of a round than the
            old's, the least over all rounds; None where not measured.
        lenders: models of the run whose rounds say how much rounds vary; 0: its own alone, for they are too few.
        own: what is left of ``steady`` without the slowdown that the release costs all models, shrunken; None where
            no common part was estimated.
        waited: largest share of an arm's blocks in which the caller waited for a core, 0 to 1.
        spent_s: measuring time without the start of processes.
        problem: why something was not measured, in words; ``problem_of``: the arm whose doing that is, and ``refused``:
            whether it answered an error.
        out_of_time: whether it is still open because the time of the benchmark was over.
        runtime: the worker that was timed, ``"python"`` or ``"libtorch"``.
    """

    model: str
    samples: tuple[PairSample, ...]
    steady: RatioEstimate | None = None
    same_against_same: RatioEstimate | None = None
    confirmation: RatioEstimate | None = None
    quantities: Mapping[str, Quantity] = field(default_factory=dict)
    fresh_quantities: Mapping[str, Quantity] = field(default_factory=dict)
    missing: Mapping[str, tuple[str, str]] = field(default_factory=dict)
    growth_bytes: int | None = None
    lenders: int = 0
    own: RatioEstimate | None = None
    waited: float = 0.0
    spent_s: float = 0.0
    problem: str = ""
    problem_of: str = ""
    refused: bool = False
    out_of_time: bool = False
    runtime: str = "python"

    @property
    def shown(self) -> RatioEstimate | None:
        """The steady ratio as judged: of fresh rounds if any, as those before were continued for being large."""
        return self.confirmation if self.confirmation is not None else self.steady

    @property
    def shown_quantities(self) -> Mapping[str, Quantity]:
        """The quantities of the rounds that ``shown`` comes of."""
        return self.fresh_quantities if self.confirmation is not None else self.quantities

    @property
    def call_s(self) -> tuple[float, float] | None:
        """Seconds of a warm call in the old and in the new release; None where not measured."""
        p50 = self.shown_quantities.get("p50") or self.quantities.get("p50")
        return (p50.old, p50.new) if p50 is not None else None

    def ratio(self, quantity: str) -> RatioEstimate | None:
        measured = self.quantities.get(quantity)
        return measured.ratio if measured is not None else None


class Shape(StrEnum):
    """What the slowdown that all models share looks like."""

    SHARE = "share"
    PER_OPERATOR = "per_operator"
    UNKNOWN = "unknown"


@dataclass(frozen=True, kw_only=True, slots=True)
class CommonSlowdown:
    """What a release costs all timed models alike; what each pays beyond it is ``LatencyMeasurement.own``.

    Attributes:
        ratio: new/old of what they share; its ``pairs`` are the rounds that all of them took part in.
        models: those that it was estimated of; ``apart``: left out, for their own part stands out.
        control: the same of the second old process over the first: what this machine makes of equal processes.
        spread: standard deviation of the models' own parts, as a logarithm: 0.02 is about 2 %.
        call_s: the most that it costs a call of any timed model, in seconds.
        shape: whether it is a share of each call or a time per operator call, where the data tell.
        per_operator_s: seconds per operator call, where that is what it looks like.
    """

    ratio: RatioEstimate
    models: tuple[str, ...]
    apart: tuple[str, ...] = ()
    control: RatioEstimate | None = None
    spread: float = 0.0
    call_s: float = 0.0
    shape: Shape = Shape.UNKNOWN
    per_operator_s: float | None = None
