"""Operator libraries: an artifact that needs one loads where it is loaded first, in both workers and both releases."""

import threading
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

import pytest

from harness.core.devices import Device
from harness.checks.hang import watchdog
from harness.core.environment import EnvSpec, Environment
from harness.core.models import Artifact
from harness.core.prediction import Prediction
from harness.core.probe import ModelRun, ProbeResult, ServingProfile
from harness.environments.builder import default_environment_root
from harness.environments.native import LibTorch, build_workers, library_companions
from harness.core.errors import EnvironmentUnavailable
from harness.checks.latency.processes import BenchmarkProcess
from harness.artifacts.fixture_folders import read_fixtures
from harness.probing.loaded_libraries import LoadedLibraries
from harness.probing.runner import ZygoteRunner
from harness.checks.prediction.check import inspect_file
from harness.checks.prediction.registries import registry_of
from tests.integration.artifacts.libraries.building import library_for
from tests.worker.transcripts import replay

pytestmark = pytest.mark.integration

PROJECT = Path(__file__).resolve().parents[3]
SIDES = ("old", "new")
# What a library of a device does, in so far as a fingerprint asks for it.
DEVICE = """import types, torch
torch.npu = types.ModuleType("torch.npu")
torch.npu.get_device_name = lambda number: "npu %d" % number
"""


@dataclass(frozen=True)
class Stand:
    """Both releases without and with the library; the artifacts come from the old one, with it."""

    plain: ZygoteRunner
    ready: ZygoteRunner
    environments: Mapping[str, Environment]
    artifacts: Mapping[str, Artifact]

    def run(self, runner: ZygoteRunner, side: str, worker: str = "python") -> ProbeResult:
        runs = tuple(ModelRun(artifact=artifact, schedule=(("example", 2),)) for artifact in self.artifacts.values())
        return runner(replace(replay.asked("run", worker, runs=runs), side=side, environment=side))


@pytest.fixture(scope="module")
def stand(old_python: str, new_python: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stand]:
    folder = tmp_path_factory.mktemp("libraries")
    pythons = dict(zip(SIDES, (old_python, new_python), strict=True))
    without = {
        side: Environment(name=side, interpreter=python, spec=EnvSpec(name=side, interpreter=python))
        for side, python in pythons.items()
    }
    plain, ready = ZygoteRunner(without, folder / "plain", watchdog), None
    try:
        for side in SIDES:
            plain.fingerprint(side, ServingProfile())
        (program := folder / "npu_support.py").write_text(DEVICE)
        built = {side: library_for(LibTorch.from_mark(plain.libtorch[side])) for side in SIDES}
        environments = {
            side: replace(without[side], spec=replace(without[side].spec, libraries=(built[side], str(program))))
            for side in SIDES
        }
        ready = ZygoteRunner(environments, folder / "ready", watchdog)
        declared = read_fixtures(PROJECT / "tests" / "integration" / "artifacts" / "libraries")
        yield Stand(plain, ready, environments, replay.export(ready, declared))
    finally:
        plain.close()
        if ready is not None:
            ready.close()
            assert not ready.unreaped


@pytest.mark.parametrize("side", SIDES)
def test_without_the_library_only_the_artifact_that_needs_it_fails(stand: Stand, side: str) -> None:
    outcomes = {item.model: item for item in stand.run(stand.plain, side).models}
    assert outcomes["doubles"].outcome == "load_error"
    assert outcomes["doubles"].failure is not None
    assert "gatetest::double_it" in outcomes["doubles"].failure.message
    assert outcomes["adds"].outcome == "completed"


@pytest.mark.parametrize("side", SIDES)
def test_with_the_library_it_answers_and_the_fingerprint_names_it(stand: Stand, side: str) -> None:
    plain = stand.plain.fingerprint(side, ServingProfile())
    found = stand.ready.fingerprint(side, ServingProfile())
    assert plain.libraries == ""
    assert sorted(item.split()[0] for item in found.libraries.split(", ")) == ["libmyops.so", "npu_support.py"]
    assert found.identity == plain.identity
    assert found.contents != plain.contents
    assert stand.ready.libraries[side].operators == ("gatetest::double_it",)
    assert stand.ready.libraries[side].threads == 0
    result = stand.run(stand.ready, side)
    assert [item.outcome for item in result.models] == ["completed"] * 2
    answers = replay.outputs(Path(result.directory))
    assert answers["doubles example 1"] == answers["adds example 1"]  # both are 2 x + 1


def test_a_file_of_python_brings_a_device_which_is_called_no_gpu(stand: Stand) -> None:
    npu = Device(name="npu", words="npu", torch="npu")
    assert stand.ready.fingerprint("new", ServingProfile(), npu).gpu is None
    with pytest.raises(EnvironmentUnavailable, match="new sees no npu"):
        stand.plain.fingerprint("new", ServingProfile(), npu)


def test_the_cpp_worker_opens_it_though_it_names_the_python_half_of_torch(stand: Stand) -> None:
    side, runner = "new", stand.ready
    libtorch = LibTorch.from_mark(stand.plain.libtorch[side])
    native = default_environment_root() / "native"
    runner.fingerprint(side, ServingProfile())
    built = build_workers({side: libtorch}, native, cuda=False, cancelled=threading.Event())[side]
    assert built.binary is not None, built.why_not
    for ready in (runner, stand.plain):
        ready.use_native(side, built.binary)
    assert {item.outcome for item in stand.run(stand.plain, side, "libtorch").models} == {"load_error", "completed"}
    alone = stand.run(runner, side, "libtorch").data["libraries"]
    assert list(alone["not_opened"]) == list(runner.libraries[side].paths)  # it needs what the companions stand for
    assert alone["missing"] == ["gatetest::double_it"]
    runner.use_native(side, built.binary, library_companions(libtorch, native))
    result = runner(replace(replay.asked("run", "libtorch", runs=runs_of(stand)), side=side, repeat=1))
    assert [item.outcome for item in result.models] == ["completed"] * 2
    assert result.data["libraries"] == {"not_opened": {}, "missing": []}


def test_the_cpp_worker_says_that_it_lacks_what_python_alone_registers(stand: Stand) -> None:
    built = build_workers(
        {"new": LibTorch.from_mark(stand.plain.libtorch["new"])},
        default_environment_root() / "native",
        cuda=False,
        cancelled=threading.Event(),
    )["new"]
    assert built.binary is not None, built.why_not
    stand.plain.use_native("new", built.binary)
    stand.plain.libraries["new"] = LoadedLibraries(names=("ops",), paths=(), operators=("aten::relu", "ops::triple"))
    try:
        result = stand.plain(replace(replay.asked("run", "libtorch"), side="new", repeat=2))
    finally:
        del stand.plain.libraries["new"]
    assert result.data["libraries"] == {"not_opened": {}, "missing": ["ops::triple"]}


def runs_of(stand: Stand) -> tuple[ModelRun, ...]:
    return tuple(ModelRun(artifact=artifact, schedule=(("example", 2),)) for artifact in stand.artifacts.values())


def test_a_process_of_the_benchmark_loads_it(stand: Stand, tmp_path: Path) -> None:
    request = replay.asked("benchmark", runs=runs_of(stand))
    process = BenchmarkProcess("new", stand.environments["new"], request, tmp_path / "benchmark")
    try:
        process.answer(60.0)
        assert process.order(60.0, order="load", model="doubles")["load_s"] > 0
    finally:
        assert process.close()


def test_the_static_check_knows_its_operators(stand: Stand, tmp_path: Path) -> None:
    path = stand.artifacts["doubles"].path
    without = replace(stand.environments["old"], spec=replace(stand.environments["old"].spec, libraries=()))
    registries = {
        "old": registry_of(without, default_environment_root()),
        "new": registry_of(stand.environments["old"], tmp_path),
    }
    verdicts = inspect_file(path, registries).verdicts
    assert verdicts["old"].prediction is Prediction.FAILS
    assert [finding.kind for finding in verdicts["old"].findings] == ["custom_library_missing"]
    assert verdicts["new"].prediction is Prediction.LOADS


@pytest.mark.slow
def test_a_library_that_cannot_be_loaded_is_named_with_its_environment(stand: Stand, tmp_path: Path) -> None:
    broken = tmp_path / "libbroken.so"
    broken.write_bytes(b"no library")
    old = stand.environments["old"]

    def with_library(name: str) -> Environment:
        return replace(old, name="torch 2.1.2", spec=replace(old.spec, libraries=(name,)))

    runner = ZygoteRunner({"old": with_library(str(broken))}, tmp_path / "probes", watchdog)
    try:
        with pytest.raises(EnvironmentUnavailable) as refused:
            runner.fingerprint("old", ServingProfile())
    finally:
        runner.close()
    assert f"torch 2.1.2: the operator library {broken} cannot be loaded: OSError: " in refused.value.message
    assert "file too short" in refused.value.message
    with pytest.raises(EnvironmentUnavailable) as refused:
        registry_of(with_library("no_such_module_here"), tmp_path / "registries")
    assert "torch 2.1.2: the operator library no_such_module_here cannot be loaded" in refused.value.message
    assert "extras" in str(refused.value.hint)
