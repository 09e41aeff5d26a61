"""A round of the benchmark on real torch: every number is there and plausible, and stands for what it says."""

import json
import os
import statistics
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import pytest

from harness.core.environment import EnvSpec, Environment
from harness.core.machine import MachineState
from harness.core.measurement import ArmSample, PairSample, Problem
from harness.core.models import Artifact
from harness.core.plan import LatencyBudget
from harness.core.probe import ModelRun, ServingProfile
from harness.checks.latency.rounds import Round
from harness.artifacts.fixture_folders import read_fixtures
from harness.machine.cores import Placement, choose
from tests.programs import stub
from tests.unit.builders.rounds import InOrder
from tests.worker.transcripts import replay

pytestmark = [pytest.mark.integration, pytest.mark.timed]

PROJECT = Path(__file__).resolve().parents[4]
OURS = ("light", "heavy", "leaks", "keeps_one", "stateful")
ZOO = ("resnet", "dlrm")
MIB = 1 << 20


@dataclass(frozen=True)
class Measured:
    """One round, with what was seen of its processes from outside."""

    samples: dict[str, PairSample]
    problems: dict[str, Problem]
    machine_state: MachineState
    placement: Placement
    cores: list[set[int]]
    last_core: list[int]
    folder: Path

    def told(self, model: str) -> ArmSample:
        return self.samples[model].arms["new"]


@dataclass(frozen=True)
class Exported:
    """The models that are timed, and the C++ worker by the side that it is of."""

    artifacts: Mapping[str, Artifact]
    native: Mapping[str, Path]


@pytest.fixture(scope="module")
def exported(new_python: str, tmp_path_factory: pytest.TempPathFactory) -> Exported:
    declared = [
        *read_fixtures(PROJECT / "tests" / "integration" / "checks" / "latency" / "benchmarking"),
        *read_fixtures(PROJECT / "fixtures" / "zoo"),
    ]
    with replay.both_workers(new_python, tmp_path_factory.mktemp("exported")) as runner:
        artifacts = replay.export(runner, tuple(item for item in declared if item.name in (*OURS, *ZOO)))
    return Exported(artifacts, runner.native)


@pytest.fixture(scope="module", params=["python", "libtorch"])
def measured(
    request: pytest.FixtureRequest, exported: Exported, new_python: str, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Measured]:
    folder = tmp_path_factory.mktemp("benchmarking")
    spec = EnvSpec(name="torch 2.6.0", release="2.6.0")
    environment = Environment(name=spec.name, interpreter=new_python, spec=spec)
    artifacts = exported.artifacts
    runs = tuple(
        ModelRun(artifact=artifacts[name], schedule=tuple((one.name, 4) for one in artifacts[name].input_sets))
        for name in (*OURS, *ZOO)
    )
    asked = replay.asked("benchmark", request.param, profile=ServingProfile(), runs=runs)
    arms, placement, cores, last_core = ("old", "new"), choose(1), [], []
    round_ = Round(
        dict.fromkeys(arms, environment),
        dict.fromkeys(arms, asked),
        folder / "benchmark",
        number=0,
        budget=LatencyBudget(),
        deadline_s=60.0,
        placement=placement,
        native=exported.native if request.param == "libtorch" else {},
    )

    round_._random = InOrder()  # so that "light" comes first, and "leaks" after "heavy"

    def look(model: str) -> None:
        for pid in stub.processes_naming(folder / "benchmark"):
            cores.append(os.sched_getaffinity(pid))
            last_core.append(int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[36]))

    samples = {sample.model: sample for sample in round_.measure([*OURS, *ZOO], look)}
    assert round_.machine_state is not None
    yield Measured(samples, round_.problems, round_.machine_state, placement, cores, last_core, folder / "benchmark")


def test_every_number_is_there_and_plausible(measured: Measured) -> None:
    assert measured.problems == {}
    for model in ZOO:
        sample = measured.samples[model]
        assert len(sample.blocks) == 2 * LatencyBudget().blocks
        assert len({block.calls for block in sample.blocks}) == 1
        for arm, told in sample.arms.items():
            usual_s = statistics.median(block.p50_s for block in sample.blocks if block.arm == arm)
            assert 0.0001 < told.load_s < 10
            assert told.calls_s[0] > 3 * usual_s  # compilation
            assert 4 <= len(told.calls_s) <= 16
            assert told.p90_s is not None and told.p90_s >= 0.9 * usual_s
            assert told.p99_s is None or told.p99_s >= told.p90_s
            assert told.request_s is not None and told.request_s > 0.3 * usual_s
            assert told.peak_rss_bytes is not None and 0 <= told.peak_rss_bytes < 300 * MIB
            assert told.growth_bytes is not None and abs(told.growth_bytes) < 30 * MIB
            assert set(told.shapes_s) == {"other_values", "batch_7"}
            assert all(len(calls) == 6 and min(calls) > 0 for calls in told.shapes_s.values())
            assert (told.device_bytes, told.replay_s) == (None, None)
        assert 0.2 < sample.spent_s < 30


def test_processes_run_on_the_chosen_core(measured: Measured) -> None:
    assert measured.placement.cores
    assert measured.cores == [set(measured.placement.cores)] * 2 * len((*OURS, *ZOO))
    # At the first turn both are asleep since they were pinned, and the kernel names the core on which they started.
    assert set(measured.last_core[2:]) == set(measured.placement.cores)
    assert measured.machine_state.cores == measured.placement.cores
    assert 0 <= measured.machine_state.others <= 1
    assert 0 <= measured.machine_state.stolen <= 1


def test_larger_weights_show_in_the_peak_of_memory(measured: Measured) -> None:
    light, heavy = measured.told("light").peak_rss_bytes, measured.told("heavy").peak_rss_bytes
    assert light is not None and heavy is not None
    assert 60 * MIB < heavy < 160 * MIB
    assert light < heavy - 30 * MIB


def test_memory_of_one_model_is_not_charged_to_the_next(measured: Measured) -> None:
    after_heavy = measured.told("leaks").peak_rss_bytes
    assert after_heavy is not None and after_heavy < 20 * MIB


def test_first_model_is_not_charged_with_what_a_process_does_once(measured: Measured) -> None:
    first, later = measured.told("light"), measured.told("keeps_one")
    assert first.peak_rss_bytes is not None and first.peak_rss_bytes < 10 * MIB
    for path in measured.folder.glob("*/events.jsonl"):
        marks = [json.loads(line) for line in path.read_text().splitlines() if '"first_operators"' in line]
        assert [set(mark["data"].values()) for mark in marks] == [{""}]  # all of them could run
    assert first.calls_s[0] < max(0.02, 4 * later.calls_s[0])


def test_leak_shows_as_growth_and_its_twin_does_not(measured: Measured) -> None:
    leaks, keeps_one = measured.samples["leaks"], measured.told("keeps_one").growth_bytes
    calls = (LatencyBudget().blocks - 1) * leaks.blocks[0].calls  # after the first block, 1 KiB each
    grown = leaks.arms["new"].growth_bytes
    assert grown is not None and 0.8 * calls * 1024 < grown < 2 * calls * 1024
    assert keeps_one is not None and keeps_one < 0.1 * grown


def test_model_with_a_state_is_left_to_one_caller(measured: Measured) -> None:
    assert measured.told("stateful").request_s is None
    assert measured.told("stateful").missing == {"request": "it has a state, which callers would share"}
    assert measured.told("light").request_s is not None
