"""How often the rules of the benchmark err, on rounds drawn as they were recorded; each planted case has a twin."""

import math
import random
import statistics
from collections.abc import Mapping

import pytest

from harness.core.measurement import CommonSlowdown, LatencyMeasurement
from harness.core.outcome import Status
from harness.core.plan import LatencyBudget, PolicySettings
from harness.checks.latency.common_slowdown import common_slowdown, with_own_parts
from harness.verdict.latency import judge_common
from harness.checks.latency.moderation import fit_prior
from harness.checks.latency.statistics import estimate, spread_of
from tests.unit.builders.rounds import Machine, simulated, status_of

QUICK = LatencyBudget()
THOROUGH = LatencyBudget(limit=0.03, looks=(4, 6, 9, 14, 20))


def models(count: int, truth: float, name: str = "m") -> dict[str, float]:
    return {f"{name}{index}": truth for index in range(count)}


def statuses(truths: Mapping[str, float], budget: LatencyBudget, runs: int, of: str) -> list[Status]:
    chance = random.Random(16)
    found = (simulated(Machine(chance), truths, budget) for _ in range(runs))
    return [status_of(item, budget) for run in found for name, item in run.items() if name.startswith(of)]


def share(found: list[Status], status: Status) -> float:
    return found.count(status) / len(found)


def test_identical_code_never_fails_and_is_hardly_ever_left_undecided() -> None:
    found = statuses(models(12, 1.0), QUICK, 40, "m")
    assert share(found, Status.FAIL) == 0.0
    assert share(found, Status.INCONCLUSIVE) <= 0.01


@pytest.mark.parametrize(("truth", "wanted"), [(1.0, 0.0), (1.10, 0.98)])
def test_large_run_whose_control_times_some_of_the_models_errs_no_more_often(truth: float, wanted: float) -> None:
    found = statuses({**models(24, 1.0, "other"), **models(16, truth)}, QUICK, 10, "m")
    assert share(found, Status.FAIL) == pytest.approx(wanted, abs=0.02 if wanted else 0.0)
    assert share(found, Status.INCONCLUSIVE) <= 0.02


def test_ten_percent_are_found_beside_healthy_models_that_pass() -> None:
    found = statuses({**models(9, 1.0), **models(3, 1.10, "slow")}, QUICK, 30, "slow")
    assert share(found, Status.FAIL) >= 0.98


@pytest.mark.slow
def test_five_percent_are_found_by_the_thorough_budget_against_a_limit_of_three() -> None:
    found = statuses({**models(6, 1.0), **models(3, 1.05, "slow")}, THOROUGH, 25, "slow")
    assert share(found, Status.FAIL) >= 0.93


@pytest.mark.slow
def test_slowdown_exactly_at_the_limit_seldom_fails() -> None:
    found = statuses({**models(9, 1.0), **models(3, 1.05, "edge")}, QUICK, 30, "edge")
    assert share(found, Status.FAIL) <= 0.05


@pytest.mark.slow
def test_run_that_goes_on_decides_more_and_errs_no_more_often() -> None:
    """Up to sixty rounds in place of sixteen; at the limit as on identical code."""
    truths = {**models(8, 1.0), **models(4, 1.05, "edge"), **models(2, 1.03, "near")}
    chance = random.Random(16)
    found = [simulated(Machine(chance), truths, QUICK, more=rounds) for _ in range(15) for rounds in (0, 60)]

    def of(runs: list[dict[str, LatencyMeasurement]], name: str) -> list[Status]:
        return [status_of(item, QUICK) for run in runs for model, item in run.items() if model.startswith(name)]

    planned, more = found[::2], found[1::2]
    assert share(of(more, "m"), Status.FAIL) == 0.0
    assert share(of(more, "edge"), Status.FAIL) <= 0.07
    assert share(of(more, "near"), Status.FAIL) <= 0.04
    assert share(of(planned, "near"), Status.INCONCLUSIVE) > share(of(more, "near"), Status.INCONCLUSIVE)


@pytest.mark.parametrize("degrees", [1.5, 4.0, 50.0])
def test_borrowed_interval_holds_as_often_as_it_says_and_is_narrower(degrees: float) -> None:
    """Of three rounds; also where the models differ so much that next to nothing can be borrowed."""
    chance, covered, halves = random.Random(4), 0, {True: list[float](), False: list[float]()}
    for _ in range(60):
        machine = Machine(chance, degrees=degrees, shared=0.0)
        rounds = [machine.round(number, models(12, 1.04)) for number in range(3)]
        samples = {name: [round_[name] for round_ in rounds] for name in rounds[0]}
        prior = fit_prior([spread_of(own) for own in samples.values()])
        for own in samples.values():
            moderated, alone = estimate(own, prior=prior), estimate(own)
            assert moderated is not None
            assert alone is not None
            covered += moderated.low <= 1.04 <= moderated.high
            halves[True].append(math.log(moderated.detectable))
            halves[False].append(math.log(alone.detectable))
    assert 0.93 <= covered / 720 <= 0.975
    narrower = statistics.median(halves[True]) / statistics.median(halves[False])
    assert narrower < (0.75 if degrees >= 4 else 1.0)


def commons(
    truths: Mapping[str, float], runs: int, **machine: float
) -> list[tuple[CommonSlowdown, dict[str, LatencyMeasurement]]]:
    chance, found = random.Random(9), []
    for _ in range(runs):
        measurements = simulated(Machine(chance, **machine), truths, QUICK)
        common = common_slowdown(measurements)
        assert common is not None
        found.append((common, with_own_parts(measurements, common)))
    return found


@pytest.mark.parametrize(
    "shared", [0.0, pytest.param(0.003, marks=pytest.mark.slow), pytest.param(0.008, marks=pytest.mark.slow)]
)
@pytest.mark.parametrize("truth", [1.0, 1.04])
@pytest.mark.parametrize("count", [12, pytest.param(24, marks=pytest.mark.slow)])
def test_interval_of_the_common_slowdown_covers_the_truth(count: int, truth: float, shared: float) -> None:
    """Also where all models of a round are off together, which many models in one round are no evidence against.

    Every one of twelve has a control, one in three of 24.
    """
    found = [common.ratio for common, _ in commons(models(count, truth), 40, shared=shared)]
    covered = sum(ratio.low <= truth <= ratio.high for ratio in found)
    assert covered >= 35  # of 40: at 95 % fewer come up once in 70
    if shared <= 0.003:
        assert statistics.median(math.log(ratio.detectable) for ratio in found) <= 0.007


def test_common_slowdown_is_a_finding_and_no_slowdown_is_none() -> None:
    budget = LatencyBudget(common_limit=0.02)
    planted = [judge_common(common, budget, PolicySettings()) for common, _ in commons(models(12, 1.04), 30)]
    healthy = [judge_common(common, budget, PolicySettings()) for common, _ in commons(models(12, 1.0), 30)]
    assert sum(finding is not None for finding in planted) >= 28
    assert healthy == [None] * 30


@pytest.mark.slow
def test_model_with_its_own_eight_percent_inside_a_common_four_is_named_as_its_own() -> None:
    found = commons({**models(11, 1.04), "own": 1.04 * 1.08}, 40)
    named = sum(item["own"].own is not None and item["own"].own.low > 1.02 for _, item in found)
    others = [item[name].own for _, item in found for name in item if name != "own"]
    assert named >= 38
    assert sum(own is not None and own.low > 1.02 for own in others) <= 2
    assert abs(statistics.fmean(math.log(common.ratio.ratio / 1.04) for common, _ in found)) < 0.002


def test_policy_that_asks_for_own_parts_fails_the_model_that_has_one_and_no_other() -> None:
    own, budget = PolicySettings(latency="own"), LatencyBudget()
    found = commons({**models(11, 1.09), "own": 1.09 * 1.12}, 15)
    slow = [status_of(item["own"], budget, own) for _, item in found]
    rest = [status_of(item[name], budget, own) for _, item in found for name in item if name != "own"]
    total = [status_of(item["m0"], budget) for _, item in found]
    assert share(slow, Status.FAIL) >= 0.9
    assert share(rest, Status.FAIL) == 0.0
    assert share(total, Status.FAIL) >= 0.6
