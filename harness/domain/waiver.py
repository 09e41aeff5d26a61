"""Waivers: known findings with an owner and an expiry date. They hang off stable names, never off fixtures."""

from dataclasses import dataclass
from datetime import date
from enum import StrEnum


@dataclass(frozen=True, kw_only=True, slots=True)
class Waiver:
    """One entry of ``golden/waivers.toml``: findings of ``kind`` on ``model`` are known until ``expires``.

    Attributes:
        expires: the last day that it counts.
        issue: a link to where it is followed up, or empty.
        bound: the largest size (``Finding.size``) that it covers; None where any.
        old, new: specifiers (PEP 440) of the torch releases that it is for, e.g. ``"~=2.6.0"``; empty where any.
        scenario, device, profile: those that it is for; each empty where any.
    """

    model: str
    kind: str
    reason: str
    owner: str
    expires: date
    issue: str = ""
    bound: float | None = None
    old: str = ""
    new: str = ""
    scenario: str = ""
    device: str = ""
    profile: str = ""


class WaiverState(StrEnum):
    """What a waiver did in a run."""

    USED = "used"
    EXCEEDED = "exceeded"
    EXPIRED = "expired"
    OTHER_PAIR = "other pair"
    UNUSED = "unused"
    NOT_JUDGED = "not judged"


@dataclass(frozen=True, kw_only=True, slots=True)
class WaiverUse:
    """A waiver and what it did in a run.

    Attributes:
        cells: in which a finding of its kind was; those that it let be XFAIL, or would have.
        size: of the largest such finding; None where nothing was found, or it has no size.
        broad: what makes it cover more than it need, in words.
        days_left: until its last day; negative once it is over.
    """

    waiver: Waiver
    state: WaiverState
    cells: tuple[str, ...] = ()
    size: float | None = None
    broad: tuple[str, ...] = ()
    days_left: int = 0
