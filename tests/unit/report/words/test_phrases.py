"""Numbers and enums as words."""

import math

import pytest

from harness.core import text as plain
from harness.core.measurement import RatioEstimate
from harness.core.outcome import Outcome, Status
from harness.core.errors import ExitCode
from harness.report.words import phrases


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0.0, "0 s"),
        (2.1e-7, "0.21 us"),
        (0.000118, "118 us"),
        (0.0118, "11.8 ms"),
        (0.118, "118 ms"),
        (0.99949, "999 ms"),
        (0.9996, "1.00 s"),
        (12.34, "12.3 s"),
        (59.4, "59.4 s"),
        (59.6, "1 min 00 s"),
        (125.0, "2 min 05 s"),
        (3725.0, "1 h 02 min"),
        (-0.5, "-500 ms"),
        (math.nan, "nan"),
        (math.inf, "inf"),
    ],
)
def test_seconds_have_a_fitting_unit(value: float, text: str) -> None:
    assert phrases.seconds(value) == text


@pytest.mark.parametrize(
    ("pair", "text"),
    [
        ((0.118, 0.131), "118 -> 131 ms"),
        ((0.98, 1.2), "0.98 -> 1.20 s"),
        ((0.0, 0.0), "0.00 -> 0.00 us"),
        ((1.0, math.inf), "1.00 s -> inf"),
    ],
)
def test_a_pair_of_times_shares_one_unit(pair: tuple[float, float], text: str) -> None:
    assert phrases.seconds_pair(*pair) == text


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0, "0 B"),
        (999, "999 B"),
        (1023.9, "1.00 KiB"),
        (186 * 2**10, "186 KiB"),
        (412.3 * 2**20, "412 MiB"),
        (1.24 * 2**30, "1.24 GiB"),
        (5000 * 2**30, "5000 GiB"),
        (math.nan, "nan"),
    ],
)
def test_sizes_have_a_fitting_unit(value: float, text: str) -> None:
    assert phrases.size(value) == text


@pytest.mark.parametrize(
    ("value", "text"), [(1.23 * 2**20, "+1.23 MiB"), (-2.1 * 2**10, "-2.10 KiB"), (0.0, "+0 B"), (-math.inf, "-inf")]
)
def test_growth_has_a_sign(value: float, text: str) -> None:
    assert phrases.growth(value) == text


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (1.021, "+2.1 %"),
        (0.979, "-2.1 %"),
        (1.0, "0.0 %"),
        (0.99999, "0.0 %"),
        (1.9996, "+100 %"),
        (8.0, "+700 %"),
        (12.34, "x12.3"),
        (5e6, "x>999"),
        (math.inf, "x>999"),
        (math.nan, "nan"),
    ],
)
def test_percent_fits_seven_columns(value: float, text: str) -> None:
    assert phrases.percent(value) == text
    assert len(text) <= 7


@pytest.mark.parametrize(
    ("low", "high", "value", "text"),
    [
        (0.997, 1.045, 1.021, "+2.1 % [-0.3, +4.5]"),
        (0.0, math.inf, 1.021, "+2.1 % (1 pair)"),
        (11.0, 14.0, 12.3, "x12.3 [11.0, 14.0]"),
    ],
)
def test_a_ratio_shows_its_interval(low: float, high: float, value: float, text: str) -> None:
    assert RatioEstimate(ratio=value, low=low, high=high, pairs=1, detectable=1.0).words == text


def test_every_outcome_has_a_short_word() -> None:
    assert all(0 < len(phrases.outcome_word(outcome)) <= 7 for outcome in Outcome)
    assert phrases.outcome_word(None) == phrases.outcome_word(Outcome.NOT_RUN) == "-"


def test_every_status_has_a_place_in_the_table() -> None:
    assert sorted(phrases.STATUS_ORDER) == sorted(Status)


def test_every_exit_code_has_words() -> None:
    assert all(phrases.exit_words(code) != "unknown" for code in ExitCode)
    assert phrases.exit_words(99) == "unknown"


@pytest.mark.parametrize(("room", "shown"), [(13, "models/a/b.pt"), (12, "...ls/a/b.pt"), (4, "...t")])
def test_of_a_long_path_the_end_is_kept(room: int, shown: str) -> None:
    assert phrases.ending("models/a/b.pt", room) == shown


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("fused_ranker", "fused_ranker"),
        ("\x1b[31m", "\\x1b[31m"),
        ("a\r\nb\u2028c", "a\\r\\nb\\u2028c"),
        ("\u202eevil", "\\u202eevil"),
        ("\ud800\ufffe\U000e0001", "\\ud800\\ufffe\\U000e0001"),
        ("modèle_\u5e74", "modèle_\u5e74"),
    ],
)
def test_visible_escapes_what_cannot_be_printed(text: str, shown: str) -> None:
    assert plain.visible(text) == shown


def test_prose_is_one_line() -> None:
    assert plain.prose("  a\n\tb \x1b[0m ") == "a b \\x1b[0m"


@pytest.mark.parametrize("limit", [5, 6, 9, 20])
def test_shorten_keeps_head_and_tail(limit: int) -> None:
    short = phrases.shorten("abcdefghijklmnopqrstuvwxyz", limit)
    assert len(short) == limit
    assert short.startswith("a")
    assert short.endswith("z")
    assert phrases.shorten("abc", limit) == "abc"
