"""Limits in every notation, and those that two readers would read differently."""

import pytest

from harness.config.limits import AmbiguousLimit, ratio_of
from harness.core.measurement import limit_words
from tests.unit.builders.tensors import near


@pytest.mark.parametrize("written", ["+5 %", "5 %", "5%", "+5%", " +5 % ", "5.0 %", 0.05, "0.05", "x1.05"])
@pytest.mark.parametrize("ratios", [True, False])
def test_every_notation_means_the_same_and_is_shown_in_one(written: object, *, ratios: bool) -> None:
    assert ratio_of(written, ratios=ratios) == near(1.05)
    assert limit_words(ratio_of(written, ratios=ratios)) == "+5 %"


@pytest.mark.parametrize(
    ("written", "ratio"), [(1.05, 1.05), ("1.5", 1.5), ("x3", 3.0), ("+150 %", 2.5), (0.5, 1.5), (1.999, 1.999)]
)
def test_policy_takes_ratios_too(written: object, ratio: float) -> None:
    assert ratio_of(written, ratios=True) == near(ratio)


@pytest.mark.parametrize(
    ("written", "ratios", "said"),
    [
        (5, True, '5 may mean 5 % or +400 %: write "+5 %" or "x5"'),
        (2.0, True, '2 may mean 2 % or +100 %: write "+2 %" or "x2"'),
        (1.05, False, '1.05 may mean 1.05 % or +5 %: write "+1.05 %" or "x1.05"'),
        (1, False, '1 may mean 1 % or that nothing may grow: write "+1 %", or a small one such as "+0.1 %"'),
    ],
)
def test_number_that_may_be_a_percentage_or_a_factor_is_refused(written: object, said: str, *, ratios: bool) -> None:
    with pytest.raises(AmbiguousLimit) as caught:
        ratio_of(written, ratios=ratios)
    assert str(caught.value) == said


@pytest.mark.parametrize(
    "written", [0, -0.05, 1, True, None, [], "", "five", "-5 %", "0 %", "x1", "x0.9", "5 percent", "nan", 1e10, "inf"]
)
def test_what_is_no_limit_is_refused(written: object) -> None:
    with pytest.raises((ValueError, TypeError)) as caught:
        ratio_of(written, ratios=True)
    assert not isinstance(caught.value, AmbiguousLimit)
