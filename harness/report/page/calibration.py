"""How often the gate finds and misses what it looks for, as this version was calibrated."""

from dataclasses import dataclass

import msgspec


@dataclass(frozen=True, kw_only=True, slots=True)
class CalibrationLine:
    """One thing that was asked of the gate and measured; ``short`` says by how much it is not met, empty where it is.

    ``nox -s calibrate -- page`` writes them; ``docs/calibration.md`` says how they were measured.
    """

    what: str
    asked: str
    found: str
    short: str = ""


def calibration_lines(data: str) -> tuple[CalibrationLine, ...]:
    """Return the lines of ``calibration.json``."""
    return msgspec.json.decode(data, type=tuple[CalibrationLine, ...])
