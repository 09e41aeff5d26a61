import itertools
import statistics

import pytest

from harness.checks.load.arrivals import poisson, recorded


def gaps(times: list[float]) -> list[float]:
    return [later - earlier for earlier, later in itertools.pairwise(times)]


def test_drawn_arrivals_have_the_rate_and_exponential_gaps() -> None:
    times = poisson(500, 20, seed=3)
    assert times == sorted(times)
    assert times[-1] < 20
    assert len(times) == pytest.approx(10_000, rel=0.05)
    between = gaps(times)
    assert statistics.stdev(between) == pytest.approx(statistics.fmean(between), rel=0.05)


def test_both_sides_meet_the_same_arrivals_and_other_blocks_others() -> None:
    assert poisson(100, 2, seed=1) == poisson(100, 2, seed=1) != poisson(100, 2, seed=2)


def test_recorded_arrivals_are_scaled_and_their_bursts_stay() -> None:
    burst = [second + place * 0.001 for second in range(50) for place in range(10)]
    times = recorded(burst, rate=100, seconds=10, seed=0)
    assert len(times) == pytest.approx(1000, rel=0.05)
    assert sum(gap < 0.001 for gap in gaps(times)) == pytest.approx(900, rel=0.05)
    assert recorded([0.0, 1.0], rate=5, seconds=1.9, seed=0) == pytest.approx([0.2 * place for place in range(1, 10)])


@pytest.mark.parametrize("times", [[], [0.0], [1.0, 1.0]])
def test_requests_of_one_moment_have_no_rate(times: list[float]) -> None:
    with pytest.raises(ValueError, match="one moment"):
        recorded(times, rate=5, seconds=2, seed=0)
