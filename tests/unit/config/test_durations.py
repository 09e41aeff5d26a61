"""How long, as the command line says it."""

import pytest

from harness.config.durations import seconds_of
from harness.core.errors import ConfigError


@pytest.mark.parametrize(
    ("text", "seconds"),
    [("90s", 90), ("10min", 600), ("10 min", 600), ("1h", 3600), ("1.5h", 5400), (" 2s ", 2), ("2d", 172800)],
)
def test_time_with_its_unit_is_read(text: str, seconds: float) -> None:
    assert seconds_of(text, "--more") == seconds


@pytest.mark.parametrize(
    "text", ["10", "", "min", "-5min", "0s", "10m", "1e3s", "10minutes", "1001h", "42d", "٣s", "9" * 5000 + "s"]
)
def test_anything_else_is_refused_in_words(text: str) -> None:
    with pytest.raises(ConfigError, match=r"^--more: expected a time with its unit, got ") as refusal:
        seconds_of(text, "--more")
    assert refusal.value.hint == "such as 90s, 10min, 1h or 2d"


def test_a_limit_of_its_own_allows_more() -> None:
    assert seconds_of("90d", "--older-than", most_h=24 * 3650) == 90 * 86400
