"""Variances that the models of a run decide on together."""

import math

import pytest

from harness.checks.latency.moderation import Prior, Spread, fit_prior, moderated
from tests.unit.builders.tensors import near

# limma 3.58, squeezeVar(c(1, 2, 4, 8, 0.5, 3) * 1e-4, df = 2) has df.prior Inf for these, and the mean as its prior.
ALIKE = [Spread(variance=value * 1e-4, degrees=2) for value in (1, 2, 4, 8, 0.5, 3)]


def test_variances_that_differ_no_more_than_by_chance_are_one() -> None:
    prior = fit_prior(ALIKE)
    assert prior is not None
    assert (prior.degrees, prior.pooled, prior.models) == (math.inf, 12, 6)
    assert prior.variance == near(18.5e-4 / 6)
    lent = moderated(ALIKE[0], prior)
    assert (lent.degrees, lent.variance) == (7.0, near((5 * prior.variance + 2 * 1e-4) / 7))


def test_variances_that_differ_in_earnest_are_borrowed_little() -> None:
    wild = [Spread(variance=10.0**power, degrees=40) for power in (-8, -6, -4, -2, 0)]
    prior = fit_prior(wild)
    assert prior is not None
    assert prior.degrees < 1
    assert moderated(wild[4], prior).variance == near(1.0, rel=0.05)


def test_own_and_usual_variance_are_weighed_by_their_degrees() -> None:
    prior = Prior(variance=4e-4, degrees=6.0, pooled=24.0, models=12)
    assert moderated(Spread(variance=1e-4, degrees=2), prior) == Spread(variance=near(3.25e-4), degrees=8.0)
    assert moderated(Spread(variance=1e-4, degrees=2), None) == Spread(variance=1e-4, degrees=2)


def test_no_more_degrees_stand_behind_an_interval_than_all_models_have() -> None:
    prior = Prior(variance=4e-4, degrees=90.0, pooled=4.0, models=3)
    assert moderated(Spread(variance=1e-4, degrees=2), prior).degrees == 4.0


@pytest.mark.parametrize("count", [0, 1, 2])
def test_too_few_models_lend_nothing(count: int) -> None:
    assert fit_prior(ALIKE[:count]) is None
    assert fit_prior([*ALIKE[:count], Spread(variance=0.0, degrees=0)]) is None


def test_a_model_without_any_noise_does_not_end_the_borrowing() -> None:
    prior = fit_prior([*ALIKE, Spread(variance=0.0, degrees=2)])
    assert prior is not None
    assert 0 < prior.variance < 4e-4
