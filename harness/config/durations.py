"""How long, as the command line says it: ``10min``, ``90s``, ``1.5h``."""

import re

from harness.config.schema import shown
from harness.core.errors import ConfigError

UNITS = {"s": 1, "min": 60, "h": 3600}
MOST_H = 1000
_DURATION = re.compile(r"(\d{1,9}(?:\.\d{1,9})?) ?(s|min|h)", re.ASCII)


def seconds_of(text: str, where: str) -> float:
    """Return a duration in seconds. Raises ``ConfigError``: no unit, 0, or longer than ``MOST_H`` hours."""
    match = _DURATION.fullmatch(text.strip())
    seconds = float(match[1]) * UNITS[match[2]] if match else 0.0
    if not 0 < seconds <= MOST_H * UNITS["h"]:
        raise ConfigError(f"{where}: expected a time with its unit, got {shown(text)}", "such as 90s, 10min or 1h")
    return seconds
