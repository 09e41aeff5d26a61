"""Quantiles of Student's t, and levels that hold over several looks."""

import math
import random
import statistics

import pytest

from harness.latency.statistics import POCOCK, cumulative, level_per_look, quantile
from tests.unit.builders.tensors import near

# NIST/SEMATECH e-Handbook of Statistical Methods, 1.3.6.7.2.
TABLE = {(0.975, 1): 12.706, (0.975, 2): 4.303, (0.975, 5): 2.571, (0.95, 10): 1.812, (0.995, 30): 2.750}


@pytest.mark.parametrize(("probability", "degrees"), TABLE)
def test_quantile_is_that_of_the_tables(probability: float, degrees: int) -> None:
    assert quantile(probability, degrees) == near(TABLE[probability, degrees], abs=1e-3)


@pytest.mark.parametrize("degrees", [1, 2, 3, 8, 9, 250])
def test_quantile_inverts_the_cumulative(degrees: int) -> None:
    for probability in (0.5, 0.7, 0.9, 0.999):
        assert cumulative(quantile(probability, degrees), degrees) == near(probability, abs=1e-9)


def test_many_degrees_are_nearly_normal() -> None:
    assert quantile(0.975, 2000) == near(statistics.NormalDist().inv_cdf(0.975), rel=1e-3)


def test_more_looks_ask_for_more_each_and_no_more_than_bonferroni() -> None:
    levels = [level_per_look(looks) for looks in range(1, 15)]
    assert levels == sorted(levels, reverse=True)
    assert all(level >= 0.05 / looks for looks, level in enumerate(levels, start=1))
    assert level_per_look(len(POCOCK) + 5) == 0.05 / (len(POCOCK) + 5)


@pytest.mark.parametrize("looks", [(3, 4, 6, 8), (4, 6, 9, 14, 20)])
def test_looking_again_and_again_errs_about_as_often_as_looking_once(looks: tuple[int, ...]) -> None:
    """Simulated at length: 5.4 and 5.6 %. With 0.05 at every look the second schedule would err in 12 % and more."""
    rng, runs = random.Random(7), 8000
    wrong = 0
    for _ in range(runs):
        values = [rng.gauss(0, 1) for _ in range(looks[-1])]
        for count in looks:
            seen = values[:count]
            t = abs(statistics.fmean(seen)) / (statistics.stdev(seen) / math.sqrt(count))
            if t > quantile(1 - level_per_look(len(looks)) / 2, count - 1):
                wrong += 1
                break
    assert 0.045 < wrong / runs < 0.062
