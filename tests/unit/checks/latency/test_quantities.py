"""What a benchmark tells beside the steady call."""

import math
from typing import Any

from harness.core.measurement import PairSample, Quantity
from harness.checks.latency.quantities import excess_growth_bytes, quantity_priors
from harness.checks.latency.statistics import measure
from tests.unit.builders.tensors import arm_sample, near, pair_sample

TURNS = [{"old": 1.0, "control": 1.0, "new": 1.0}] * 3


def found(*samples: PairSample) -> Any:
    return measure("m", samples).quantities


def both(old: dict[str, Any], new: dict[str, Any], **changes: Any) -> PairSample:
    """A sample whose old side has one process only."""
    return pair_sample(TURNS, arms={"old": arm_sample(**old), "new": arm_sample(**new)}, **changes)


def test_each_quantity_has_both_medians_and_a_ratio() -> None:
    old = {"load_s": 2.0, "calls_s": (8.0, 4.0, 1.0, 1.0), "mean_s": 1.0, "p90_s": 1.0, "p99_s": 2.0, "request_s": 0.5}
    new = {
        "load_s": 3.0,
        "calls_s": (8.0, 8.0, 1.0, 1.0),
        "mean_s": 1.25,
        "p90_s": 2.0,
        "p99_s": 8.0,
        "request_s": 0.25,
    }
    quantities = found(both(old, new), both(old, new, round_=1))
    ratios = {name: quantity.ratio.ratio for name, quantity in quantities.items() if quantity.ratio is not None}
    assert ratios == {
        "load": near(1.5),
        "call_0": near(1.0),
        "call_1": near(2.0),
        "first_calls": near(18 / 14),
        "p50": near(1.0),
        "mean": near(1.25),
        "p90": near(2.0),
        "p99": near(4.0),
        "request": near(0.5),
    }
    assert (quantities["load"].old, quantities["load"].new, quantities["load"].unit) == (2.0, 3.0, "s")


def test_what_a_side_did_not_tell_is_not_there() -> None:
    assert set(found(both({"p90_s": 1.0}, {}))) == {"load", "p50"}
    assert set(found(both({"replay_s": 1.0}, {"replay_s": 1.0}))) == {"load", "p50", "replay"}


def test_both_old_processes_count() -> None:
    arms = {"old": arm_sample(1.0), "control": arm_sample(4.0), "new": arm_sample(4.0)}
    load = found(pair_sample(TURNS, arms=arms))["load"]
    assert load.old == 2.5
    assert load.ratio.ratio == near(2.0)


def test_first_calls_are_as_many_on_every_side() -> None:
    quantity = found(both({"calls_s": (1.0, 1.0)}, {"calls_s": (1.0, 2.0, 99.0, 99.0)}))["first_calls"]
    assert (quantity.old, quantity.new) == (2.0, 3.0)


def test_no_more_than_four_calls_count_as_first() -> None:
    assert found(both({"calls_s": (1.0,) * 9}, {"calls_s": (1.0,) * 9}))["first_calls"].new == 4.0


def test_calls_until_steady_end_with_the_last_slow_one() -> None:
    quantity = found(both({"calls_s": (50.0, 1.0, 1.1)}, {"calls_s": (50.0, 1.0, 30.0, 1.0, 1.9)}))[
        "calls_until_steady"
    ]
    assert quantity == Quantity(old=1.0, new=3.0, unit="calls")


def test_control_that_made_too_few_calls_does_not_say_when_it_was_warm() -> None:
    slow = (50.0, 1.0, 30.0, 1.0, 30.0, 1.0)
    arms = {name: arm_sample(calls_s=slow[:count]) for name, count in (("old", 6), ("new", 6), ("control", 4))}
    assert found(pair_sample(TURNS, arms=arms))["calls_until_steady"] == Quantity(old=5.0, new=5.0, unit="calls")


def test_memory_that_is_not_needed_makes_no_ratio() -> None:
    quantity = found(both({"peak_rss_bytes": 0}, {"peak_rss_bytes": 5}))["peak_rss"]
    assert (quantity.old, quantity.new, quantity.unit, quantity.ratio) == (0, 5, "bytes", None)


def test_growth_is_per_call_after_the_first_block() -> None:
    growth = found(both({"growth_bytes": 0}, {"growth_bytes": 4000}, calls=100))["growth"]
    assert (growth.old, growth.new, growth.ratio) == (0.0, 20.0, None)  # two blocks of 100 calls


def test_excess_growth_is_the_least_over_rounds_against_the_worse_old_process() -> None:
    def sample(new: int | None, round_: int, old: int = 10, twin: int = 0) -> PairSample:
        growths = {"old": old, "control": twin, "new": new}
        arms = {name: arm_sample(growth_bytes=growth) for name, growth in growths.items()}
        return pair_sample(TURNS, round_=round_, arms=arms)

    assert excess_growth_bytes([sample(1000, 0), sample(500, 1), sample(800, 2, twin=700)]) == 100
    assert excess_growth_bytes([sample(1000, 0), sample(0, 1)]) == -10
    assert excess_growth_bytes([sample(None, 0)]) is None
    assert excess_growth_bytes([]) is None


def test_recompilation_is_reported_in_warm_calls_of_that_shape() -> None:
    warm = (1.0,) * 4
    quantities = found(
        both(
            {"shapes_s": {"batch_7": (2.0, 1.0, 1.0, 1.0, *warm)}},
            {"shapes_s": {"batch_7": (9.0, 30.0, 1.0, 1.0, *warm)}},
        )
    )
    assert quantities["recompilation:batch_7"] == Quantity(old=1.0, new=37.0, unit="calls")
    assert quantities["new_shape:batch_7"].ratio.ratio == near(41 / 5)


def test_another_shape_that_is_merely_slower_recompiles_nothing() -> None:
    slow = (7.0,) * 8
    assert found(both({"shapes_s": {"b": slow}}, {"shapes_s": {"b": slow}}))["recompilation:b"].new == 0.0


def test_too_few_calls_at_a_shape_tell_no_recompilation() -> None:
    quantities = found(both({"shapes_s": {"b": (1.0, 1.0)}}, {"shapes_s": {"b": (2.0, 1.0)}}))
    assert "recompilation:b" not in quantities
    assert math.isclose(quantities["new_shape:b"].new, 3.0)


def test_what_a_process_could_not_tell_is_kept_with_the_side() -> None:
    samples = [
        both({}, {"missing": {"request": "RuntimeError: no"}}),
        both(
            {"missing": {"replay": "no graph"}},
            {"missing": {"replay": "no graph either", "request": "later"}},
            round_=1,
        ),
    ]
    assert measure("m", samples).missing == {
        "request": ("", "RuntimeError: no"),
        "replay": ("no graph", "no graph either"),
    }


def test_models_lend_each_other_the_variance_of_what_two_rounds_tell() -> None:
    def model(*logs: float) -> list[PairSample]:
        return [
            both(
                {"request_s": 1.0, "load_s": 1.0}, {"request_s": math.exp(log), "load_s": math.exp(log)}, round_=number
            )
            for number, log in enumerate(logs)
        ]

    usual = [model(0.01 * at, 0.01 * at + 0.02) for at in range(8)]
    priors = quantity_priors([*usual, model(0.05)])
    assert set(priors) == {"request"}  # loads have three rounds, and a single one tells no variance
    lucky = model(0.100, 0.1001)
    alone, lent = found(*lucky), measure("m", lucky, beside=priors).quantities
    assert lent["load"] == alone["load"]
    ratio = lent["request"].ratio
    assert ratio is not None
    # Not as sure as two rounds that happen to agree, and surer than two that differ as usual.
    assert alone["request"].ratio.detectable < ratio.detectable < found(*usual[0])["request"].ratio.detectable
    assert ratio.ratio == near(math.exp(0.10005))


def test_fresh_rounds_have_quantities_of_their_own() -> None:
    slow, same = {"load_s": 3.0}, {"load_s": 1.0}
    result = measure("m", [both({"load_s": 1.0}, slow)], [both({"load_s": 1.0}, same, round_=1)])
    assert (result.quantities["load"].new, result.fresh_quantities["load"].new) == (3.0, 1.0)
