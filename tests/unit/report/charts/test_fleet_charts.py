"""Charts over all models: every model is on them, where its verdict puts it, and the words say the same."""

import re
from dataclasses import replace

from harness.core.measurement import RatioEstimate
from harness.core.outcome import Status
from harness.report.excess import Steady
from harness.report.charts.fleet_charts import fleet_figures, interval_chart, tone_of


def steady(change: float, status: Status = Status.PASS, name: str = "m") -> Steady:
    ratio = RatioEstimate(ratio=1 + change, low=0.99 + change, high=1.01 + change, pairs=3, detectable=1.02)
    return Steady(model=name, ratio=ratio, limit=1.03, status=status)


TIMED = (
    steady(0.19, Status.FAIL, "slow"),
    steady(0.02, Status.INCONCLUSIVE, "open"),
    steady(0.0, name="same"),
    steady(-0.2, name="fast"),
)


def dots(svg: str) -> list[str]:
    return re.findall(r'class="dot (\w+)"', svg)


def test_a_verdict_gives_a_model_its_colour() -> None:
    assert [tone_of(item) for item in TIMED] == ["bad", "open", "quiet", "good"]
    assert tone_of(replace(TIMED[0], status=Status.XFAIL)) == "quiet"


def test_every_model_has_its_interval_and_is_named() -> None:
    svg = interval_chart(TIMED)
    assert dots(svg) == ["bad", "open", "quiet", "good"]
    for words in ("slow: +19.0 % [+18.0, +20.0], beyond the limit", "fast: -20.0 %", "clearly faster"):
        assert words in svg
    assert 'class="limit"' in svg and "1 beyond the limit, 1 undecided, 1 within the limit, 1 clearly faster" in svg


def test_a_model_far_beyond_the_axis_is_drawn_at_its_end_and_leaves_the_others_apart() -> None:
    many = [steady(3.0, Status.FAIL, "far"), *(steady(0.001 * number, name=f"m{number}") for number in range(30))]
    svg = interval_chart(many)
    assert re.search(r'<path d="M[^"]*z" class="dot bad"><title>far: \+300 %', svg)
    heights = [float(y) for y in re.findall(r'<circle cx="[^"]*" cy="([^"]*)"', svg)]
    assert max(heights) - min(heights) > 10


def test_what_was_not_measured_has_no_chart() -> None:
    assert list(fleet_figures([], 3)) == [] and len(list(fleet_figures(TIMED, 9))) == 1
