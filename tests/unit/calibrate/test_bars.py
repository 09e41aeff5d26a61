"""A bar is met or says by how much it is not."""

from collections.abc import Callable
from typing import Any

import pytest

from benchmarks.calibrate.batches import SLOW
from benchmarks.calibrate.bars import Bar, common_bars, latency_bars, length_bars, numbers_bars
from benchmarks.calibrate.tallies import (
    Count,
    detection_rows,
    false_kinds,
    found_in_time,
    is_found,
    quantity_rows,
    rival_rows,
)
from tests.unit.calibrate import results
from tests.unit.calibrate.results import benchmark, found


def bar(words: str, bars: list[Bar]) -> Bar:
    return next(one for one in bars if words in one.what)


def test_enough_clean_benchmarks_meet_the_bars() -> None:
    same = [benchmark(base=f"model_{index % 40}") for index in range(300)]
    slow = [*(found(10) for _ in range(60)), *(found(5, budget="thorough", spent_s=50.0) for _ in range(60))]
    assert [one.short for one in latency_bars([*same, *slow])] == [""] * 5


def test_three_suspicions_in_300_are_one_percent_and_four_are_more() -> None:
    clean = [benchmark(base=f"model_{index % 40}") for index in range(296)]
    three = [*clean, benchmark(), *(benchmark(suspected=1) for _ in range(3))]
    four = [*clean, *(benchmark(suspected=1) for _ in range(4))]
    assert bar("before confirmation", latency_bars(three)).short == ""
    assert bar("before confirmation", latency_bars(four)).short == "0.3 points too many"


def test_one_confirmed_false_alarm_misses_its_bar() -> None:
    same = [
        *(benchmark(base=f"model_{index % 40}") for index in range(299)),
        benchmark(base="bert", status="FAIL", findings="latency"),
    ]
    assert bar("after it", latency_bars(same)).short == "0.3 points too many"
    assert bar("against itself", latency_bars(same)).short == "1 too many"


def test_a_slowdown_that_is_found_too_late_counts_as_missed() -> None:
    slow = [*(found(10) for _ in range(56)), *(found(10, spent_s=10.1) for _ in range(4))]
    assert bar("10 %", latency_bars(slow)).short == "1.7 points too few"


def test_too_few_benchmarks_never_meet_a_bar() -> None:
    assert bar("10 %", latency_bars([found(10)] * 59)).short == "1 benchmarks too few"
    assert bar("5 %", latency_bars([])).short == "60 benchmarks too few"
    assert "299 benchmarks too few" in bar("after it", latency_bars([benchmark()])).short
    assert bar("against itself", latency_bars([benchmark(base="bert")])).short == "35 models too few"


def test_each_length_of_a_call_must_meet_its_bars_by_itself() -> None:
    def of_each(make: Callable[[str], dict[str, Any]], times: int) -> list[dict[str, Any]]:
        return [make(length) for length in ("1ms", "100ms") for _ in range(times)]

    quick = of_each(lambda length: found(10, base=length), 16)
    thorough = of_each(lambda length: found(5, base=length, budget="thorough"), 8)
    same = of_each(lambda length: benchmark(base=length), 24)
    assert [one.short for one in length_bars([*same, *quick, *thorough])] == [""] * 3
    missed = benchmark(SLOW, size=10, base="100ms")
    failed = benchmark(base="1ms", status="FAIL", findings="latency")
    false, found_10, found_5 = length_bars([*same[1:], failed, *quick[:-1], missed, *thorough[:-1]])
    assert (false.short, false.found[:7], false.found[-6:]) == ("3.7 points too many", "1 of 24", "of 1ms")
    assert (found_10.short, found_10.found[:8]) == ("4.2 points too few", "15 of 16")
    assert (found_5.short, found_5.found[-8:]) == ("1 benchmarks too few", "of 100ms")


def test_a_missed_drift_and_a_false_fail_of_a_whole_run_are_told() -> None:
    numbers = results.numbers()
    assert [one.short for one in numbers_bars(numbers)] == ["", ""]
    numbers["seeded"]["far_drifts"]["count"] = 9
    numbers["same_against_same"]["summary"]["false_alarms"] = 2
    assert [one.short for one in numbers_bars(numbers)] == ["2 too many", "1 missed"]
    assert numbers_bars({}) == []


@pytest.mark.parametrize(
    ("row", "is_one"),
    [
        (found(10), True),
        (found(10, status="INCONCLUSIVE"), False),
        (found(10, findings="tail"), False),
        (benchmark(), False),
    ],
)
def test_found_means_told_and_failed(row: dict[str, object], is_one: bool) -> None:
    assert is_found(row) is is_one


def test_a_thorough_benchmark_may_take_a_minute() -> None:
    assert found_in_time(found(5, budget="thorough", spent_s=59.0))
    assert not found_in_time(found(5, budget="quick", spent_s=59.0))


def test_what_says_nothing_is_no_false_alarm() -> None:
    assert false_kinds(benchmark(findings="latency_undecided+recompiles")) == []
    assert false_kinds(benchmark(findings="latency_undecided+tail")) == ["tail"]


def test_a_rate_comes_with_its_interval_and_nothing_is_no_rate() -> None:
    assert Count(0, 60).words == "0 of 60: 0.0 % (0.0 to 6.0)"
    assert Count(0, 0).words == "not measured"


def test_tables_count_each_benchmark_once() -> None:
    latency = results.latency()
    rows = [dict(zip(latency["columns"], row, strict=True)) for row in latency["benchmarks"]]
    assert {(row[0], row[1]): row[2].partition(":")[0] for row in detection_rows(rows)} == {
        ("quick", "none"): "0 of 12",
        ("quick", "3 %"): "0 of 1",
        ("quick", "10 %"): "2 of 2",
        ("quick", "20 %"): "1 of 1",
        ("thorough", "none"): "0 of 1",
        ("thorough", "5 %"): "1 of 1",
    }
    assert all(told.startswith("1 of 1:") and twin.startswith("0 of 1:") for _, _, told, twin in quantity_rows(rows))
    beside = [dict(zip(latency["rival_columns"], row, strict=True)) for row in latency["rivals"]]
    of_threshold = next(row for row in rival_rows(rows, beside) if "median:5%" in row[0])
    assert [cell.partition(":")[0] for cell in of_threshold[1:]] == ["1 of 1", "1 of 1", "0 of 1", "0 of 1"]


def common(ratio: float, half: float, size: int = 5) -> dict[str, float]:
    return {"ratio": ratio, "low": ratio / half, "high": ratio * half, "size": size}


def test_what_all_models_share_is_told_and_narrowly() -> None:
    well = [common(1.045, 1.006)] * 19
    assert [one.short for one in common_bars([*well, common(1.045, 1.02)])] == [""]
    (untold, wide) = (common_bars([*well[:9], one])[0] for one in (common(1.002, 1.005), common(1.045, 1.02)))
    assert (untold.short, wide.short) == ("5.0 points too few", "5.0 points too few")
    assert common_bars([]) == common_bars([common(1.0, 1.005, size=0)]) == []
