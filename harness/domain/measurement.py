"""Times as measured, and the estimate made of them. No verdict lives here."""

import math
from dataclasses import dataclass

# A ratio from here on reads better as a factor than as a percentage.
FACTORS_FROM = 10.0


@dataclass(frozen=True, kw_only=True, slots=True)
class Block:
    """One short block of calls in one process: seconds per call."""

    arm: str
    per_call_s: float
    calls: int


@dataclass(frozen=True, kw_only=True, slots=True)
class PairSample:
    """One model in one round of fresh processes.

    Arms are ``"old"``, ``"new"`` and ``"twin"`` (a second process of the old release: same against same).

    Attributes:
        round: index of the round of fresh processes.
        blocks: steady-state blocks in the order they ran.
        load_s: per arm, seconds of ``torch.jit.load``.
        first_calls_s: per arm, seconds of call 0, 1, 2, ... after load.
    """

    model: str
    round: int
    blocks: tuple[Block, ...]
    load_s: dict[str, float]
    first_calls_s: dict[str, tuple[float, ...]]


@dataclass(frozen=True, kw_only=True, slots=True)
class RatioEstimate:
    """A ratio new/old with its 95 % confidence interval; the unit is a pair of fresh processes.

    Attributes:
        ratio: geometric mean over pairs.
        low, high: bounds of the interval; (0, inf) with fewer than two pairs.
        pairs: number of process pairs.
        detectable: smallest ratio above 1 that an interval of this width could have shown to exceed 1.
    """

    ratio: float
    low: float
    high: float
    pairs: int
    detectable: float

    @property
    def words(self) -> str:
        """The ratio with its interval: ``+2.1 % [-0.3, +4.5]``, from x10 on as factors, or ``+2.1 % (1 pair)``."""
        if self.ratio >= FACTORS_FROM:
            centre, low, high = f"x{self.ratio:.1f}", f"{self.low:.1f}", f"{self.high:.1f}"
        else:
            centre, low, high = (signed_percent(value) for value in (self.ratio, self.low, self.high))
            centre += " %"
        if not (math.isfinite(self.low) and math.isfinite(self.high)):
            return f"{centre} ({self.pairs} pair{'' if self.pairs == 1 else 's'})"
        return f"{centre} [{low}, {high}]"


def signed_percent(ratio: float) -> str:
    """Return a ratio as a signed change: one decimal below 100, none above; a rounded zero is ``0.0``."""
    change = (ratio - 1) * 100
    text = f"{change:+.{1 if abs(change) < 99.95 else 0}f}"
    return "0.0" if text in {"+0.0", "-0.0"} else text


@dataclass(frozen=True, kw_only=True, slots=True)
class LatencyMeasurement:
    """Everything the duel learnt about one model.

    ``steady``, ``load`` and ``first_calls`` are new/old; ``same_against_same`` is twin/old: what this machine
    makes of two processes of one build. Medians are seconds per call or per load.
    """

    model: str
    samples: tuple[PairSample, ...]
    steady: RatioEstimate | None = None
    same_against_same: RatioEstimate | None = None
    load: RatioEstimate | None = None
    first_calls: RatioEstimate | None = None
    confirmation: RatioEstimate | None = None
    steady_old_s: float | None = None
    steady_new_s: float | None = None
    problem: str = ""
