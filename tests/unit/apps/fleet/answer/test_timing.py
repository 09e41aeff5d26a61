"""Timing over a fleet, on rounds drawn as they were recorded; each slowdown has thousands of healthy twins."""

import math
import random
from collections.abc import Mapping
from dataclasses import replace

import pytest

from harness.core.measurement import LatencyMeasurement
from harness.core.outcome import Status
from harness.core.plan import LatencyBudget
from harness.apps.fleet.answer.timing import FALSE_SHARE, FleetTiming, by_chance, controlled, over_fleet
from harness.checks.latency.moderation import Prior
from harness.checks.latency.statistics import measure
from tests.unit.builders.reports import healthy, upgrade_ok
from tests.unit.builders.rounds import Machine, simulated, status_of

QUICK = LatencyBudget()
THOROUGH = LatencyBudget(limit=0.03, looks=(4, 6, 9, 14, 20))
IN_A_RUN = 20


def fleet(truths: Mapping[str, float], budget: LatencyBudget, seed: int = 20) -> dict[str, LatencyMeasurement]:
    """Measure a fleet in runs of twenty models, each run on a machine of its own."""
    chance, names, found = random.Random(seed), list(truths), dict[str, LatencyMeasurement]()
    for begin in range(0, len(names), IN_A_RUN):
        part = {name: truths[name] for name in names[begin : begin + IN_A_RUN]}
        found |= simulated(Machine(chance), part, budget)
    return found


def reds(measured: Mapping[str, LatencyMeasurement], budget: LatencyBudget) -> tuple[set[str], FleetTiming]:
    widened, found = controlled(measured)
    sure = {name: replace(one, confirmation=widened.get(name, one.confirmation)) for name, one in measured.items()}
    return {name for name, one in sure.items() if status_of(one, budget) is Status.FAIL}, found


def suspect(logs: list[float], name: str = "s") -> LatencyMeasurement:
    """A model that three rounds found 20 % slower, with these fresh rounds."""
    machine = Machine(random.Random(1))
    search = [machine.round(number, {name: 1.2})[name] for number in range(3)]
    fresh = []
    for number, log in enumerate(logs):
        sample = machine.round(3 + number, {name: 1.0})[name]
        blocks = [replace(block, p50_s=0.01 * math.exp(log * (block.arm == "new"))) for block in sample.blocks]
        fresh.append(replace(sample, blocks=tuple(blocks)))
    return measure(name, search, fresh)


@pytest.mark.parametrize("budget", [QUICK, THOROUGH], ids=["quick", "thorough"])
def test_slowdowns_of_a_fleet_stay_red_and_nothing_else_is(budget: LatencyBudget) -> None:
    slow = {f"slow{index}": 1.05 if budget is THOROUGH else 1.1 for index in range(5)}
    found, timing = reds(fleet({**{f"m{index}": 1.0 for index in range(195)}, **slow}, budget), budget)
    assert found <= slow.keys()
    assert len(found) >= 4
    assert timing.programs == 200 and timing.chosen >= len(found)


def test_one_run_alone_is_judged_as_before() -> None:
    one = {"s": suspect([0.19, 0.21, 0.20])}
    assert controlled(one) == ({}, FleetTiming(programs=1, suspected=1, chosen=1))


def quiet(count: int) -> dict[str, LatencyMeasurement]:
    """Healthy programs whose rounds do not differ at all: nobody borrows a variance from them."""
    machine = Machine(random.Random(2), spread=0.0, shared=0.0)
    names = [f"m{index}" for index in range(count)]
    rounds = [machine.round(number, dict.fromkeys(names, 1.0)) for number in range(3)]
    return {name: measure(name, [samples[name] for samples in rounds]) for name in names}


def unsure(count: int) -> dict[str, LatencyMeasurement]:
    """Suspicions of which fresh rounds show nothing."""
    return {f"u{index}": suspect([-0.03, 0.03, 0.01], f"u{index}") for index in range(count)}


def test_suspicion_that_is_sure_by_itself_is_undecided_among_ten_and_a_surer_one_is_not() -> None:
    doubtful, sure = suspect([0.07, 0.10, 0.13]), suspect([0.099, 0.10, 0.101])
    assert (status_of(doubtful, QUICK), status_of(sure, QUICK)) == (Status.FAIL, Status.FAIL)
    others = {**quiet(100), **unsure(9)}
    assert reds({**quiet(100), "s": doubtful}, QUICK)[0] == {"s"}
    assert reds({**others, "s": doubtful}, QUICK) == (set(), FleetTiming(programs=110, suspected=10, chosen=0))
    assert reds({**others, "s": sure}, QUICK) == ({"s"}, FleetTiming(programs=110, suspected=10, chosen=1))


def test_more_sure_slowdowns_make_the_next_one_believable() -> None:
    """Benjamini and Hochberg: of ten, half a false one is expected, wherever the eleventh stands."""
    doubtful = suspect([0.07, 0.10, 0.13])
    sure = {f"sure{index}": suspect([0.099, 0.10, 0.101], f"sure{index}") for index in range(10)}
    others = {**quiet(40), **unsure(9)}
    alone = controlled({**others, "s": doubtful})[1]
    beside = controlled({**others, "s": doubtful, **sure})[1]
    assert (alone.chosen, beside.chosen) == (0, 11)


@pytest.mark.parametrize(
    ("logs", "p"), [((0.07, 0.10, 0.13), 0.0144), ((-0.07, -0.10, -0.13), 0.9856), ((0.1,), 1.0), ((0.0, 0.0), 1.0)]
)
def test_probability_is_that_of_students_t(logs: tuple[float, ...], p: float) -> None:
    assert by_chance(logs, None) == pytest.approx(p, abs=2e-4)


def test_fresh_rounds_borrow_the_variance_of_the_fleet() -> None:
    usual = Prior(variance=1e-4, degrees=10.0, pooled=1000.0, models=500)
    assert by_chance((0.02, 0.05, 0.08), usual) < by_chance((0.02, 0.05, 0.08), None) / 10


def test_artifacts_of_one_program_are_one_comparison_and_share_its_interval() -> None:
    doubtful = suspect([0.07, 0.10, 0.13])
    models = [replace(healthy(f"copy{index}"), latency=doubtful) for index in range(3)]
    others = {**quiet(100), **unsure(9)}
    models += [replace(healthy(name), latency=one) for name, one in others.items()]
    models.append(replace(healthy("untimed"), latency=None))
    families = {model.model: "P" if model.model.startswith("copy") else model.model for model in models}
    report, found = over_fleet(replace(upgrade_ok(), models=tuple(models)), families)
    assert found == FleetTiming(programs=110, suspected=10, chosen=0)
    (low,) = {
        model.latency.confirmation.low for model in report.models[:3] if model.latency and model.latency.confirmation
    }
    assert doubtful.confirmation is not None and low < 1 < doubtful.confirmation.low
    assert [model for model in report.models[3:] if model.model[0] != "u"] == [
        model for model in models[3:] if model.model[0] != "u"
    ]


def test_words_say_how_many_are_expected_to_be_luck() -> None:
    assert FleetTiming(programs=5000).words == ""
    assert "none is sure" in FleetTiming(programs=5000, suspected=3).words
    words = FleetTiming(programs=5000, suspected=25, chosen=20).words
    assert words.startswith("timing: 5000 programs timed, 25 suspected, 20 slower")
    assert f"at most {FALSE_SHARE * 20:.2g} expected" in words


@pytest.mark.slow
def test_five_thousand_unchanged_models_are_hardly_ever_red_and_twenty_slowdowns_are_found() -> None:
    truths = {
        f"slow{index}" if index % 250 == 0 else f"m{index}": 1.05 if index % 250 == 0 else 1.0 for index in range(5000)
    }
    found, timing = reds(fleet(truths, THOROUGH), THOROUGH)
    assert len([name for name in found if name.startswith("m")]) <= 1
    assert len([name for name in found if name.startswith("slow")]) >= 18
    assert timing.programs == 5000
