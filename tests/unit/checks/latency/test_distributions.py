"""Quantiles of Student's t, levels that hold over several looks, and the derivatives of log-gamma."""

import math
import random
import statistics

import pytest

from harness.checks.latency.distributions import cumulative, digamma, quantile, trigamma, trigamma_inverse
from harness.checks.latency.looks import POCOCK, level_per_look
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


@pytest.mark.parametrize("looks", [(3, 4, 6, 8), pytest.param((4, 6, 9, 14, 20), marks=pytest.mark.slow)])
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


# Values of SciPy 1.17: scipy.stats.t.ppf, scipy.special.digamma and polygamma(1, x).
REAL_DEGREES = {
    (0.975, 1.5): 6.016663104427929,
    (0.975, 6.4): 2.410314499647891,
    (0.9909, 4.9): 3.482479772560245,
    (0.9909, 12.3): 2.7217054245918852,
    (0.999, 33.3): 3.353759480147865,
}
DERIVATIVES = {
    0.01: (-100.56088545786868, 10001.621213528311),
    0.5: (-1.9635100260214235, 4.93480220054468),
    1.0: (-0.5772156649015329, 1.6449340668482266),
    2.5: (0.7031566406452432, 0.4903577561002349),
    9.9: (2.2411803166063815, 0.1062830416287406),
    40.0: (3.6763273740348428, 0.025315103841291032),
    1000.0: (6.907255195648812, 0.001000500166666633),
}


@pytest.mark.parametrize(("probability", "degrees"), REAL_DEGREES)
def test_quantile_of_degrees_between_whole_ones_is_scipys(probability: float, degrees: float) -> None:
    assert quantile(probability, degrees) == near(REAL_DEGREES[probability, degrees], rel=1e-9)


def test_infinite_degrees_are_normal() -> None:
    assert quantile(0.975, math.inf) == near(statistics.NormalDist().inv_cdf(0.975))


@pytest.mark.parametrize("x", DERIVATIVES)
def test_derivatives_of_log_gamma_are_scipys(x: float) -> None:
    assert digamma(x) == near(DERIVATIVES[x][0], rel=1e-11)
    assert trigamma(x) == near(DERIVATIVES[x][1], rel=1e-11)
    assert trigamma_inverse(DERIVATIVES[x][1]) == near(x, rel=1e-9)
