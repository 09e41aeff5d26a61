"""Which models the next round times, so that it fits into what is left."""

import math
from dataclasses import replace

import pytest

from harness.core.measurement import RatioEstimate
from harness.core.plan import LatencyBudget
from harness.checks.latency.budget import Candidate, further_rounds, next_round, seconds, side_by_side, total_s

OPEN = Candidate(cost_s=1.0, rounds=1, decided_in_s=5.0)
SOON = replace(OPEN, decided_in_s=1.0)
SUSPECT = replace(OPEN, rounds=3, is_suspected=True, decided_in_s=50.0)
NEW = replace(OPEN, rounds=3, is_new=True, decided_in_s=math.inf)
PLANTED = replace(NEW, is_required=True)


def chosen(left_s: float, *, needs_one: bool = False, **candidates: Candidate) -> list[str]:
    return next_round(candidates, start_s=1.0, left_s=left_s, needs_one=needs_one)


def test_all_take_part_where_all_fit() -> None:
    assert chosen(100.0, a=OPEN, b=SUSPECT, c=NEW, p=PLANTED) == ["a", "b", "c", "p"]
    assert chosen(math.inf, a=OPEN) == ["a"]


def test_whoever_is_decided_soonest_comes_first_where_only_one_fits() -> None:
    assert chosen(2.5, late=OPEN, soon=SOON) == ["soon"]
    assert chosen(3.0, late=OPEN, soon=SOON) == ["late", "soon"]


def test_suspicions_come_before_models_without_a_look_and_those_before_the_undecided() -> None:
    assert chosen(6.0, soon=SOON, new=NEW, suspect=SUSPECT) == ["suspect"]
    assert chosen(9.0, soon=SOON, new=NEW, suspect=SUSPECT) == ["new", "suspect"]
    assert chosen(10.0, soon=SOON, new=NEW, suspect=SUSPECT) == ["soon", "new", "suspect"]


def test_of_models_without_a_look_those_go_on_that_had_rounds() -> None:
    assert chosen(5.0, fresh=NEW, begun=replace(NEW, rounds=1)) == ["begun"]


def test_first_looks_leave_the_time_that_would_confirm_the_dearest_of_them() -> None:
    new = replace(NEW, confirmed_in=3)
    dear = replace(new, cost_s=2.0)
    assert chosen(9.0 + 6.0, a=new, b=new) == ["a", "b"]
    assert chosen(9.0 + 6.0 - 0.1, a=new, b=new) == ["a"]
    assert chosen(12.0 + 9.0, a=dear, b=new) == ["a", "b"]
    assert chosen(12.0 + 9.0 - 0.1, a=dear, b=new) == ["b"]
    # The starts of what is required anyway are those of the suspicion, too.
    assert chosen(15.0 + 12.0, a=dear, b=new, p=replace(PLANTED, cost_s=1.0, confirmed_in=3)) == ["a", "b", "p"]
    assert chosen(6.0, a=replace(SUSPECT, confirmed_in=3)) == ["a"]


def test_time_kept_back_goes_to_a_first_look_where_it_would_serve_nobody() -> None:
    new = replace(NEW, confirmed_in=3)
    assert chosen(11.9, a=new) == ["a"]
    assert chosen(5.9, a=new) == []
    assert chosen(11.9, a=new, p=replace(PLANTED, cost_s=1.0)) == ["a", "p"]
    assert chosen(11.9, soon=SOON, a=new) == ["soon", "a"]
    assert chosen(14.9, soon=SOON, a=new, suspect=SUSPECT) == ["a", "suspect"]
    assert chosen(8.9, soon=SOON, a=new, suspect=SUSPECT) == ["suspect"]
    assert chosen(14.9, a=new, b=new, suspect=SUSPECT) == ["a", "b", "suspect"]
    assert chosen(11.9, a=new, b=new, suspect=SUSPECT) == ["a", "suspect"]
    assert chosen(15.0, soon=SOON, a=replace(new, cost_s=30.0)) == ["soon"]


def test_rounds_that_do_not_reach_a_look_are_not_begun() -> None:
    assert chosen(5.9, suspect=SUSPECT) == []
    assert chosen(6.0, suspect=SUSPECT) == ["suspect"]


def test_dear_model_does_not_keep_a_cheap_one_out() -> None:
    assert chosen(4.0, dear=replace(SOON, cost_s=30.0), cheap=OPEN) == ["cheap"]


def test_nothing_is_timed_when_time_is_over_but_what_must_be() -> None:
    assert chosen(0.0, a=OPEN, b=SUSPECT) == []
    assert chosen(-5.0, a=OPEN, p=PLANTED) == ["p"]
    assert chosen(-5.0, a=NEW, b=replace(NEW, rounds=2), p=PLANTED, needs_one=True) == ["b", "p"]
    assert chosen(10.0) == []


def test_models_share_the_starts_of_their_rounds() -> None:
    assert seconds([SUSPECT, OPEN], 1.0) == pytest.approx(3 * 1.0 + 3 * 1.0 + 1.0)
    assert seconds([], 1.0) == 0.0


def test_lanes_share_the_models_but_none_is_in_two_at_once() -> None:
    assert side_by_side([1.0, 2.0, 3.0], 1) == 6.0
    assert side_by_side([1.0, 2.0, 3.0], 2) == 3.0
    assert side_by_side([1.0, 5.0], 2) == 5.0
    assert side_by_side([], 2) == 0.0
    assert seconds([SUSPECT, SUSPECT, OPEN], 1.0, 2) == pytest.approx(3 * 1.0 + 3.5)
    candidates = {"late": OPEN, "soon": SOON}
    assert next_round(candidates, start_s=1.0, left_s=2.5, lanes=2) == ["late", "soon"]


def test_rounds_until_decided_follow_from_the_interval_and_the_limit() -> None:
    def estimate(ratio: float, half: float, pairs: int = 4) -> RatioEstimate:
        return RatioEstimate(
            ratio=ratio, low=ratio / math.exp(half), high=ratio * math.exp(half), pairs=pairs, detectable=math.exp(half)
        )

    assert further_rounds(estimate(1.05 * math.exp(-0.01), 0.02), 0.05) == pytest.approx(12)
    assert further_rounds(estimate(1.0, 0.01), 0.05) == 0.0
    assert further_rounds(estimate(1.05, 0.01), 0.05) > 1e6
    assert further_rounds(replace(estimate(1.0, 0.01, 1), detectable=math.inf), 0.05) == math.inf
    assert further_rounds(None, 0.05) == math.inf


def test_total_is_that_of_a_dozen_models_and_grows_with_more_unless_it_is_written() -> None:
    quick, thorough = LatencyBudget(), LatencyBudget(budget="thorough")
    assert [total_s(quick, models) for models in (1, 12, 100)] == pytest.approx([65, 65, 410])
    assert [total_s(thorough, models) for models in (1, 13, 100)] == [600, 600, 4600]
    assert [total_s(quick, models, 2) for models in (13, 24, 100)] == pytest.approx([65, 65.9, 274.7], abs=0.1)
    assert total_s(LatencyBudget(total_s=20.0), 100) == 20


def test_total_grows_where_first_looks_take_longer_up_to_twice() -> None:
    quick = LatencyBudget()
    totals = [total_s(quick, 13, 2, first_looks_s=looks_s) for looks_s in (0.0, 60.0, 100.0, 500.0)]
    assert totals == pytest.approx([65.0, 66.0, 110.0, 130.0])
    assert total_s(LatencyBudget(total_s=20.0), 13, first_looks_s=500.0) == 20
