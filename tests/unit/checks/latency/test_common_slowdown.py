"""What all models share and what is each one's own, on rounds without chance, and in words."""

import math
from collections.abc import Sequence
from dataclasses import replace

import pytest

from harness.core.measurement import CommonSlowdown, LatencyMeasurement, PairSample, Shape
from harness.core.plan import LatencyBudget, PolicySettings
from harness.checks.latency.common_slowdown import common_slowdown, with_own_parts
from harness.verdict.latency import common_notes, common_words, judge_common, may_be_taken_off
from harness.checks.latency.statistics import measure
from tests.unit.builders.tensors import arm_sample, near, pair_sample
from tests.unit.builders.verdicts import measured, ratio

WOBBLE = (0.004, -0.004, 0.001, -0.001, 0.003)


def timed(
    name: str, truth: float, at: int, call_s: float = 0.01, rounds: Sequence[int] = (0, 1, 2)
) -> LatencyMeasurement:
    """A model whose rounds differ a little, each model's in another order."""
    samples = []
    for number in rounds:
        new_s = call_s * truth * math.exp(WOBBLE[(at + number * (1 + at % 2)) % 5])
        times = {"old": call_s, "control": call_s * 1.0005, "new": new_s}
        arms = {arm: arm_sample() for arm in times}
        samples.append(replace(pair_sample([times], round_=number), arms=arms))
    return measure(name, samples)


def fleet(truths: Sequence[float], calls_s: Sequence[float] = ()) -> dict[str, LatencyMeasurement]:
    calls_s = calls_s or [0.01] * len(truths)
    return {
        f"m{at}": timed(f"m{at}", truth, at, call_s)
        for at, (truth, call_s) in enumerate(zip(truths, calls_s, strict=True))
    }


def partly_controlled(item: LatencyMeasurement, wobble: float, of: int = 3) -> list[PairSample]:
    """The samples with a control in one round of ``of``, which is off by ``wobble`` in the even ones."""
    samples = []
    for sample in item.samples:
        has_control = (int(item.model[1:]) + sample.round) % of == 0
        kept = [block for block in sample.blocks if block.arm != "control"]
        if has_control:
            (old,) = (block for block in kept if block.arm == "old")
            off = wobble if sample.round % 2 == 0 else -wobble
            kept.append(replace(old, arm="control", p50_s=old.p50_s * math.exp(off)))
        samples.append(replace(sample, blocks=tuple(kept)))
    return samples


def found_of(measurements: dict[str, LatencyMeasurement], operators: dict[str, int] | None = None) -> CommonSlowdown:
    found = common_slowdown(measurements, operators)
    assert found is not None
    return found


def test_what_all_share_is_common_and_what_one_has_beyond_it_is_its_own() -> None:
    measurements = fleet([1.04] * 9 + [1.04 * 1.08])
    found = found_of(measurements)
    assert (found.ratio.ratio, found.apart, len(found.models)) == (near(1.04, rel=3e-3), ("m9",), 9)
    assert found.call_s == near(4e-4, rel=0.1)
    own = with_own_parts(measurements, found)
    assert own["m9"].own is not None
    assert own["m9"].own.ratio == near(1.08, rel=5e-3)
    assert all(item.own is not None and abs(item.own.ratio - 1) < 0.005 for item in list(own.values())[:9])


def test_own_part_is_that_of_fresh_rounds_where_there_are_any() -> None:
    measurements = fleet([1.04] * 9)
    late = [*timed("m0", 1.20, 0).samples, *timed("m0", 1.04, 0, rounds=(3, 4, 5)).samples]
    measurements["m0"] = measure("m0", late[:3], late[3:])
    own = with_own_parts(measurements, found_of(fleet([1.04] * 9)))["m0"].own
    assert own is not None
    assert abs(own.ratio - 1) < 0.01


@pytest.mark.parametrize("count", [0, 1, 2])
def test_too_few_models_have_nothing_in_common_that_could_be_told(count: int) -> None:
    measurements = fleet([1.04] * count)
    assert common_slowdown(measurements) is None
    assert with_own_parts(measurements, None) == measurements
    assert not any("was not estimated" in note for note in common_notes(None, measurements))


def test_timed_models_that_share_no_rounds_are_said_to_tell_nothing_in_common() -> None:
    (note, *_) = common_notes(None, fleet([1.04] * 3))
    assert note.startswith("what the release costs all models was not estimated: that takes 3")


def test_models_without_two_rounds_in_common_have_no_common_part() -> None:
    measurements = {f"m{at}": timed(f"m{at}", 1.0, at, rounds=(at, at + 1)) for at in range(4)}
    assert common_slowdown(measurements) is None


@pytest.mark.parametrize(("wobbles", "wider"), [(0.0, False), (0.02, True)])
def test_what_some_controls_tell_of_a_round_widens_the_common_part_of_all(wobbles: float, wider: bool) -> None:  # noqa: FBT001
    """In each round another two of six models have one, and two old processes differ there by as much for both."""
    quiet = found_of(fleet([1.04] * 6))
    measurements = {name: measure(name, partly_controlled(item, wobbles)) for name, item in fleet([1.04] * 6).items()}
    found = found_of(measurements)
    assert found.control is not None
    assert found.control.low <= 1 <= found.control.high
    assert (math.log(found.ratio.detectable) > 2 * math.log(quiet.ratio.detectable)) == wider


def test_single_controls_of_a_round_tell_nothing_of_it() -> None:
    measurements = {f"m{at}": timed(f"m{at}", 1.04, at) for at in range(4)}
    alone = {name: measure(name, partly_controlled(item, 0.0, of=4)) for name, item in measurements.items()}
    assert found_of(alone).control is None


def test_a_benchmark_that_was_lost_takes_no_part() -> None:
    measurements = fleet([1.04] * 5)
    lost = measure("lost", timed("lost", 3.0, 0).samples, problem="the new process died")
    assert "lost" not in found_of({**measurements, "lost": lost}).models


CALLS_S = (0.001, 0.002, 0.004, 0.008, 0.016, 0.032, 0.064, 0.1)
OPERATORS = dict(zip((f"m{at}" for at in range(8)), (100, 40, 100, 300, 50, 900, 100, 400), strict=True))


def test_share_of_each_call_is_told_from_a_time_per_operator() -> None:
    share = found_of(fleet([1.05] * 8, CALLS_S), OPERATORS)
    assert (share.shape, share.per_operator_s) == (Shape.SHARE, None)
    each_s = 1e-6
    truths = [1 + each_s * OPERATORS[f"m{at}"] / call_s for at, call_s in enumerate(CALLS_S)]
    per_operator = found_of(fleet(truths, CALLS_S), OPERATORS)
    assert per_operator.shape is Shape.PER_OPERATOR
    assert per_operator.per_operator_s == near(each_s, rel=0.2)


def test_nothing_is_said_of_the_shape_where_the_data_do_not_tell() -> None:
    assert found_of(fleet([1.05] * 8, CALLS_S)).shape is Shape.UNKNOWN
    assert found_of(fleet([1.0] * 8, CALLS_S), OPERATORS).shape is Shape.UNKNOWN
    assert found_of(fleet([1.05] * 4), dict.fromkeys(OPERATORS, 7)).shape is Shape.UNKNOWN


def common(**changes: object) -> CommonSlowdown:
    return CommonSlowdown(**{"ratio": ratio(1.034, 1.046), "models": ("a", "b", "c"), "call_s": 4e-4, **changes})  # type: ignore[arg-type]


def test_common_part_beyond_its_limit_is_one_finding_in_words() -> None:
    found = judge_common(common(shape=Shape.SHARE), LatencyBudget(), PolicySettings())
    assert found is not None
    assert (found.kind, found.size) == ("common_slowdown", near(1.04))
    assert found.message == (
        "what all 3 timed models share: steady latency +4.0 % [+3.4, +4.6], a share of each call, up to 400 us of a "
        "call, limit +3 %"
    )
    operator = common(shape=Shape.PER_OPERATOR, per_operator_s=4.2e-7)
    (note,) = common_notes(operator, {"a": measured(None, lenders=3)})
    assert "420 ns per operator call" in note


def test_what_half_of_the_models_have_is_an_average_and_nothing_that_all_share() -> None:
    half = found_of(fleet([1.15] * 5 + [1.0] * 5))
    assert common_words(half).startswith("what all 10 timed models have on average: steady latency +")
    assert common_words(found_of(fleet([1.04] * 9))).startswith("what all 9 timed models share: ")


def test_floor_is_held_against_the_model_that_it_costs_most() -> None:
    found = found_of(fleet([1.3] * 10, [30e-6] * 7 + [0.01] * 3))
    assert judge_common(found, LatencyBudget(), PolicySettings()) is not None
    short = found_of(fleet([1.3] * 10, [30e-6] * 10))
    assert judge_common(short, LatencyBudget(), PolicySettings()) is None


@pytest.mark.parametrize(
    ("changes", "known"),
    [
        ({}, True),
        ({"ratio": ratio(1.0, 1.01)}, True),
        ({"ratio": ratio(1.02, 1.06)}, False),
        ({"call_s": 1e-6}, False),
        ({"control": ratio(1.031, 1.05)}, False),
        (None, False),
    ],
    ids=["too much", "within the limit", "undecided", "below the floor", "old against old as much", "not estimated"],
)
def test_only_what_was_judged_may_be_taken_off(changes: dict[str, object] | None, known: bool) -> None:  # noqa: FBT001
    found = common(**changes) if changes is not None else None
    assert may_be_taken_off(found, LatencyBudget(), PolicySettings()) is known


@pytest.mark.parametrize(
    ("changes", "policy"),
    [
        ({"ratio": ratio(1.02, 1.06)}, PolicySettings()),
        ({"call_s": 1e-6}, PolicySettings()),
        ({"control": ratio(1.031, 1.05)}, PolicySettings()),
        ({}, PolicySettings(limits={"common": 1.05})),
        ({}, PolicySettings(limits={"floor_s": 1e-3})),
    ],
    ids=["undecided", "below the floor", "old against old as much", "looser limit", "higher floor"],
)
def test_common_part_that_is_open_or_small_or_noise_is_no_finding(
    changes: dict[str, object], policy: PolicySettings
) -> None:
    assert judge_common(common(**changes), LatencyBudget(), policy) is None
