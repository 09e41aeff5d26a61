"""What was asked of the gate, and by how much it is not met. Pure."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from benchmarks.calibrate.tallies import (
    WITHIN_S,
    Count,
    Row,
    counted,
    fails,
    found_in_time,
    is_found,
    is_ordinary,
    same_rows,
    slow_rows,
)

LEAST_BENCHMARKS, LEAST_SAME, LEAST_MODELS = 60, 300, 36
FALSE_BEFORE, FOUND = 0.01, 0.95
# At each length of a call: of identical code at most so many fail; of a budget and a size, in percent, so many are found.
FALSE_OF_A_LENGTH, LEAST_SAME_OF_A_LENGTH = 0.005, 24
FOUND_OF_A_LENGTH = {("quick", 10): (0.98, 16), ("thorough", 5): (0.95, 8)}
COMMON_WITHIN = 1.007


@dataclass(frozen=True)
class Bar:
    """One thing that was asked for; ``short`` says by how much it is not met, empty where it is."""

    what: str
    asked: str
    found: str
    short: str


def latency_bars(benchmarks: Sequence[Row]) -> list[Bar]:
    """Return the bars of latency."""
    same = same_rows(benchmarks)
    suspected, failed = counted(same, lambda row: bool(row["suspected"])), counted(same, fails)
    bars = [
        _at_most("REGRESSED on identical code, before confirmation", suspected, FALSE_BEFORE),
        _at_most("REGRESSED on identical code, after it", failed, 0.0),
    ]
    for budget, size in (("quick", 10), ("thorough", 5)):
        within = f"within {WITHIN_S[budget]:.0f} s per model"
        found = counted(slow_rows(benchmarks, budget, size), found_in_time)
        bars.append(_at_least(f"a slowdown by {size} % is found {within} ({budget})", found))
    ordinary = [row for row in same if is_ordinary(row)]
    failed, models = counted(ordinary, fails), len({row["base"] for row in ordinary})
    words = f"{failed.count} in {failed.of} benchmarks of {models} models"
    bars.append(_no_false_fail("no false FAIL for latency: the zoo against itself", words, failed.count, models))
    return bars


def length_bars(benchmarks: Sequence[Row]) -> list[Bar]:
    """Return the bars of calls of several lengths, each of the length that comes out worst."""
    lengths = dict.fromkeys(row["base"] for row in benchmarks)
    same = [
        (counted([row for row in same_rows(benchmarks) if row["base"] == length], fails), length) for length in lengths
    ]
    failed, worst = max(same, key=lambda one: (one[0].rate, -one[0].of))
    asked = f"at most {100 * FALSE_OF_A_LENGTH:.1f} % of {LEAST_SAME_OF_A_LENGTH} or more"
    over = [f"{100 * (failed.rate - FALSE_OF_A_LENGTH):.1f} points too many"] if failed.rate > FALSE_OF_A_LENGTH else []
    short = ", ".join([*over, *_too_few(failed, LEAST_SAME_OF_A_LENGTH)])
    bars = [
        Bar(f"FAIL on identical code, at each of {len(lengths)} lengths of a call", asked, _of(failed, worst), short)
    ]
    for (budget, size), (rate, least) in FOUND_OF_A_LENGTH.items():
        slow = slow_rows(benchmarks, budget, size)
        each = [(counted([row for row in slow if row["base"] == length], is_found), length) for length in lengths]
        found, worst = min(each, key=lambda one: (one[0].rate, one[0].of))
        under = [f"{100 * (rate - found.rate):.1f} points too few"] if found.of and found.rate < rate else []
        what = f"a slowdown by {size} % is found at each length ({budget})"
        asked = f"at least {100 * rate:.0f} % of {least} or more"
        bars.append(Bar(what, asked, _of(found, worst), ", ".join([*under, *_too_few(found, least)])))
    return bars


def _of(count: Count, length: str) -> str:
    return f"{count.words}, of {length}"


def common_bars(commons: Sequence[Row]) -> list[Bar]:
    """Return the bar of a slowdown that all models share, in batches that planted one; none where older results lack it.

    Whether it is told is asked, and to how much; what was planted is not to be found in the interval, since the calls do
    more than what is repeated.
    """
    commons = [row for row in commons if row["size"] > 0]
    if not commons:
        return []
    told = counted(commons, lambda row: row["low"] > 1 and row["high"] / row["ratio"] <= COMMON_WITHIN)
    short = f"{100 * (FOUND - told.rate):.1f} points too few" if told.rate < FOUND else ""
    asked = f"at least {100 * FOUND:.0f} % of the batches"
    return [Bar("a slowdown that all models share is told, to 0.7 %", asked, told.words, short)]


def numbers_bars(numbers: Mapping[str, Any]) -> list[Bar]:
    """Return the bars of values: no false FAIL in whole runs, no far drift unseen."""
    bars = []
    if "same_against_same" in numbers:
        found = numbers["same_against_same"]["summary"]
        words = (
            f"{found['false_alarms']} in {found['cells']} cells: {found['model_runs']} runs of a model, "
            f"{found['models']} models"
        )
        what = "no false FAIL for anything else: runs of the zoo, one release on both sides"
        bars.append(_no_false_fail(what, words, found["false_alarms"], found["models"]))
    if "seeded" in numbers:
        far = numbers["seeded"]["far_drifts"]
        count = Count(far["count"], far["n"])
        short = "" if count.of and count.count == count.of else f"{count.of - count.count} missed"
        bars.append(Bar("a drift of values above ten tolerances is found", "all", count.words, short))
    return bars


def _no_false_fail(what: str, words: str, failed: int, models: int) -> Bar:
    short = [f"{failed} too many"] if failed else []
    short += [f"{LEAST_MODELS - models} models too few"] if models < LEAST_MODELS else []
    return Bar(what, f"0, {LEAST_MODELS} models or more", words, ", ".join(short))


def _at_most(what: str, found: Count, rate: float) -> Bar:
    asked = f"at most {100 * rate:.0f} % of {LEAST_SAME} or more" if rate else f"none of {LEAST_SAME} or more"
    short = [f"{100 * (found.rate - rate):.1f} points too many"] if found.rate > rate else []
    return Bar(what, asked, found.words, ", ".join([*short, *_too_few(found, LEAST_SAME)]))


def _at_least(what: str, found: Count) -> Bar:
    asked = f"at least {100 * FOUND:.0f} % of {LEAST_BENCHMARKS} or more"
    short = [f"{100 * (FOUND - found.rate):.1f} points too few"] if found.of and found.rate < FOUND else []
    return Bar(what, asked, found.words, ", ".join([*short, *_too_few(found, LEAST_BENCHMARKS)]))


def _too_few(found: Count, least: int) -> list[str]:
    return [f"{least - found.of} benchmarks too few"] if found.of < least else []
