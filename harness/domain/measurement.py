"""Times as measured, and the estimate made of them. No verdict lives here."""

from dataclasses import dataclass


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
