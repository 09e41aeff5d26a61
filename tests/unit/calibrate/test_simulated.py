"""The rules of the benchmark on drawn rounds."""

import random

import pytest

from harness.core.outcome import Status
from benchmarks.calibrate.benchmarks import budget_named
from benchmarks.calibrate.simulated import World, drawn, failed, simulated_status

QUICK = budget_named("quick")


@pytest.mark.parametrize(("truth", "share"), [(1.0, 0.0), (1.1, 1.0)])
def test_equal_code_never_fails_and_ten_percent_always_do_on_a_quiet_machine(truth: float, share: float) -> None:
    world = World(truth=truth, deviation=0.005, odd=False, round_s=0.6)
    assert failed(world, QUICK, 60, random.Random(1)) == share


def test_model_whose_rounds_are_dear_is_judged_by_fewer_of_them() -> None:
    noisy = World(truth=1.05, deviation=0.02, odd=False, round_s=0.6)
    cheap, dear = (
        failed(World(noisy.truth, noisy.deviation, noisy.odd, round_s), budget_named("thorough"), 80, random.Random(2))
        for round_s in (0.6, 10.0)
    )
    assert cheap > 0.85 > 0.6 > dear


def test_odd_processes_widen_what_is_drawn() -> None:
    chance = random.Random(3)
    plain, odd = (World(truth=1.0, deviation=0.0, odd=flag, round_s=0.6) for flag in (False, True))
    assert {drawn(plain, chance) for _ in range(50)} == {0.0}
    assert len({round(drawn(odd, chance), 6) for _ in range(200)}) > 2


def test_world_without_noise_is_judged_as_it_is() -> None:
    world = World(truth=1.02, deviation=0.0, odd=False, round_s=0.6)
    assert simulated_status(world, QUICK, random.Random(4)) is Status.PASS
