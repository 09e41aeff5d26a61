"""What takes a symptom away, and what it costs."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from harness.domain.measurement import RatioEstimate


@dataclass(frozen=True, kw_only=True, slots=True)
class Setting:
    """One thing that a server can set otherwise.

    Attributes:
        name: by which policy accepts it; ``about``: what it does, in a few words.
        switches, env, numerics: what it adds to the serving profile, see ``ServingProfile``.
        intra_op_threads, inter_op_threads: pool sizes in place of the profile's; None leaves them.
        one_at_a_time: steps of a script, ``"load"`` or ``"calls"``, of which it lets only one happen at a time.
        cuda_only: whether it means nothing without a GPU.
        waives: the worker cannot read its effect back; what it would say then.
    """

    name: str
    about: str
    switches: Mapping[str, bool | int] = field(default_factory=dict)
    intra_op_threads: int | None = None
    inter_op_threads: int | None = None
    env: Mapping[str, str] = field(default_factory=dict)
    numerics: Mapping[str, bool | str] = field(default_factory=dict)
    one_at_a_time: tuple[str, ...] = ()
    cuda_only: bool = False
    waives: str = ""

    @property
    def values(self) -> Mapping[str, bool | int | str]:
        """What it sets in a profile, by the name of each: switches, numerics, variables, pools."""
        pools = {"intra_op_threads": self.intra_op_threads, "inter_op_threads": self.inter_op_threads}
        sizes = {name: size for name, size in pools.items() if size is not None}
        return {**self.switches, **self.numerics, **self.env, **sizes}


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
        names: of the settings, as in ``harness/settings/table.py``.
        cures: applied and read back, the symptom gone in every repeat, outputs equal to the golden.
        untestable: that could not be told: not there in this release, without effect, or the machine was too busy.
        minimal: no smaller set of them cures; False where a smaller one could not be tested.
        repeats: how many clean runs say so.
        breaks: other models that fail under it.
        prices: what was measured, in the order in which it is shown.
        paste: where ("python", "c++", "triton", "environment") -> the lines to paste; absent where there is no way.
        note: why it does not cure, or what a reader should know.
    """

    names: tuple[str, ...]
    cures: bool
    untestable: bool = False
    minimal: bool = True
    repeats: int = 1
    breaks: tuple[str, ...] = ()
    prices: tuple[Price, ...] = ()
    paste: Mapping[str, str] = field(default_factory=dict)
    note: str = ""

    @property
    def name(self) -> str:
        """All its settings in one line."""
        return " + ".join(self.names)

    def price(self, quantity: str) -> Price | None:
        """Return what one quantity costs, None where it was not measured."""
        return next((price for price in self.prices if price.quantity == quantity), None)


class CureAnswer(StrEnum):
    """What the search for a cure came to."""

    NOTHING = "nothing to cure"
    CURED = "cured"
    NOT_FOUND = "no cure found"
    UNDECIDED = "undecided"


@dataclass(frozen=True, kw_only=True, slots=True)
class Curing:
    """What ``mitigate`` found about one model.

    Attributes:
        old, new: names of the environments.
        scenario: the cell in which it was looked for, e.g. ``"alone"``; ``words``: as a reader calls it.
        symptom: the findings of the cell, one line each.
        cures: every set that was tried, the curing ones first, cheapest first.
        price_note: why there is no price, or none against the uncured new release; empty where there are both.
        ended: why the search ended early, empty where it did not.
        notes: what else a reader should know.
    """

    model: str
    old: str
    new: str
    scenario: str
    words: str
    answer: CureAnswer
    symptom: tuple[str, ...] = ()
    cures: tuple[Cure, ...] = ()
    price_note: str = ""
    ended: str = ""
    notes: tuple[str, ...] = ()
