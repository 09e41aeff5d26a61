"""After how many rounds one looks, and how sure each look has to be."""

import math
import random
from itertools import takewhile

import pytest

from harness.checks.latency.looks import POCOCK, RESERVE, level_at, look_from
from harness.checks.latency.statistics import interval

QUICK = (3, 4, 6, 8)


def all_looks(looks: tuple[int, ...], most: int) -> list[int]:
    return [rounds for rounds in range(1, most) if look_from(rounds, looks) == rounds]


def test_looks_go_on_after_the_planned_ones_each_after_half_as_many_rounds_more() -> None:
    assert all_looks(QUICK, 50) == [3, 4, 6, 8, 12, 18, 27, 41]
    assert all_looks((3,), 13) == [3, 5, 8, 12]


def test_planned_looks_have_pococks_level_and_the_further_ones_share_a_reserve() -> None:
    assert [level_at(rounds, QUICK) for rounds in (2, 3, 8)] == [POCOCK[3]] * 3
    assert [level_at(rounds, QUICK) for rounds in (9, 12, 13, 18, 27)] == [0.005, 0.005, 0.0025, 0.0025, 0.00125]
    assert sum(level_at(rounds, QUICK) for rounds in all_looks(QUICK, 10_000) if rounds > 8) <= RESERVE
    assert level_at(7, ()) == POCOCK[0]


@pytest.mark.parametrize(
    "looks",
    [QUICK, pytest.param((3,), marks=pytest.mark.slow), pytest.param((4, 6, 9, 14, 20), marks=pytest.mark.slow)],
)
def test_run_that_goes_on_and_on_errs_no_more_often_than_planned_and_reserved(looks: tuple[int, ...]) -> None:
    """Identical code, an interval that excludes "no change" at any look; Student's t makes Pocock's 5 % up to 6 %."""
    chance, runs = random.Random(48), 1500
    planned = further = 0
    for _ in range(runs):
        logs = [chance.gauss(0.0, 0.01) for _ in range(64)]
        for rounds in takewhile(lambda rounds: rounds <= len(logs), all_looks(looks, 65)):
            found = interval(logs[:rounds], level=level_at(rounds, looks))
            assert found is not None
            if not found.low <= 1 <= found.high:
                if rounds <= looks[-1]:
                    planned += 1
                else:
                    further += 1
                break
    allowed = RESERVE + 3 * math.sqrt(RESERVE / runs)
    assert planned / runs <= 0.075
    assert further / runs <= allowed


def test_looks_at_the_planned_level_for_ever_would_err_more_often() -> None:
    """The twin: what the reserve is there for."""
    chance, runs, wrong = random.Random(48), 400, 0
    for _ in range(runs):
        logs = [chance.gauss(0.0, 0.01) for _ in range(64)]
        found = [interval(logs[:rounds], level=POCOCK[3]) for rounds in all_looks(QUICK, 65)]
        wrong += any(item is not None and not item.low <= 1 <= item.high for item in found)
    assert wrong / runs > 0.075
