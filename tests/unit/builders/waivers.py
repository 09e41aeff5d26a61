"""Waivers as tests need them."""

import datetime
from typing import Any

from harness.domain.verdict import Finding, Waiver
from tests.unit.builders.verdicts import finding

DAY = datetime.date(2026, 11, 21)
PAIR = ("2.1.2+cu121", "2.6.0+cu124")


def waiver(kind: str = "values", **changes: Any) -> Waiver:
    """Return a waiver of ann for ``kind`` on model ``m`` that ends on ``DAY``."""
    defaults = {"model": "m", "kind": kind, "reason": "known drift", "owner": "ann", "expires": DAY}
    return Waiver(**{**defaults, **changes})


def in_days(days: int) -> datetime.date:
    """Return the day so many days after ``DAY``."""
    return DAY + datetime.timedelta(days=days)


def sized(size: float | None, kind: str = "values") -> Finding:
    """Return a finding of that size."""
    base = finding(kind)
    return Finding(kind=kind, message=base.message, size=size)
