"""What takes a symptom away, and what it costs."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from harness.domain.measurement import RatioEstimate


@dataclass(frozen=True, kw_only=True, slots=True)
class Price:
    """What one quantity costs under a cure: ratios to the old release and to the uncured new one; None: not known."""

    quantity: str
    to_old: RatioEstimate | None = None
    to_new: RatioEstimate | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class Cure:
    """A set of settings that was tried on one model.

    Attributes:
        names: of the settings, as in ``harness/policy/mitigations.py``.
        cures: applied and read back, the symptom gone in every repeat, outputs equal to the golden.
        minimal: no smaller set of them cures; ``repeats``: how many clean runs say so.
        breaks: other models that fail under it.
        prices: what was measured, in the order in which it is shown.
        paste: where ("python", "c++", "triton", "environment") -> the lines to paste; absent where there is no way.
        note: why it does not cure, or what a reader should know.
    """

    names: tuple[str, ...]
    cures: bool
    minimal: bool = True
    repeats: int = 1
    breaks: tuple[str, ...] = ()
    prices: tuple[Price, ...] = ()
    paste: Mapping[str, str] = field(default_factory=dict)
    note: str = ""
