"""Programs and packages run code as they are loaded: nothing that one starts outlives it, nothing lies elsewhere."""

import json
import subprocess
import tempfile
import zipfile
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import pytest

from harness.core.environment import EnvSpec, Environment
from harness.core.models import Artifact, ArtifactKind, GivenArtifact
from harness.core.outcome import Outcome
from harness.core.probe import ModelRun, ProbeRequest, ServingProfile
from harness.environments.builder import default_environment_root
from harness.environments.native import LibTorch, build_library, build_worker
from harness.checks.hang import watchdog
from harness.checks.latency.processes import BenchmarkProcess
from harness.artifacts.fixture_folders import read_fixtures
from harness.probing.runner import ZygoteRunner
from harness.store.run_folder import LOCK
from harness.worker import wire
from tests.integration.artifacts.test_hostile_files import LIMITS, PATIENT
from tests.programs import stub
from tests.worker.transcripts import replay

pytestmark = pytest.mark.integration

HERE = Path(__file__).resolve().parent / "hostile"


@dataclass(frozen=True)
class Stand:
    """Workers of torch 2.6.0, their run's folder, and where what is planted tries to write."""

    runner: ZygoteRunner
    environment: Environment
    folder: Path
    healthy: Artifact

    @property
    def targets(self) -> list[Path]:
        return [self.folder / "home" / "planted", self.folder / "gate" / "planted.py", self.folder / "run" / "planted"]

    def request(self, name: str, kind: ArtifactKind, *, verb: str = "run", worker: str = "python") -> ProbeRequest:
        artifact = replace(self.healthy, model=name, path=str(self.folder / f"{name}.pt2"), kind=kind, digest=name)
        run = ModelRun(artifact=artifact, schedule=(("example", 2),))
        return replace(replay.asked(verb, worker, runs=(run,)), limits=LIMITS, deadline=PATIENT)

    def assert_nothing_is_left(self, probe: Path, *, not_confined: bool) -> None:
        work = probe / wire.WORK
        assert (work / "temporary").read_text() == "planted"  # it had a HOME and a TMPDIR, and could write there
        assert not stub.is_alive(int((work / "daemon").read_text()))
        if not_confined:
            pytest.skip("no Landlock here")
        assert [path for path in self.targets if path.exists()] == []


@pytest.fixture(scope="module")
def stand(new_python: str) -> Iterator[Stand]:
    """Not below /tmp, where 2.6.0 unpacks packages."""
    with tempfile.TemporaryDirectory(dir="/var/tmp", prefix="code-") as place, pytest.MonkeyPatch.context() as patch:
        folder = Path(place)
        for name in ("home", "gate", "run"):
            (folder / name).mkdir()
        patch.setenv("HOME", str(folder / "home"))
        (folder / "run" / LOCK).touch()
        environment = Environment(name="here", interpreter=new_python, spec=EnvSpec(name="here"))
        runner = ZygoteRunner({"old": environment}, folder / "run" / "probes", watchdog)
        try:
            (declaration,) = [one for one in read_fixtures(HERE) if one.name == "healthy"]
            healthy = replay.export(runner, (declaration,))["healthy"]
            found = Stand(runner, environment, folder, healthy)
            paths = json.dumps([str(path) for path in found.targets])
            subprocess.run([new_python, "-s", str(HERE / "programs.py"), place, paths], timeout=240, check=True)
            yield found
        finally:
            runner.close()
        assert (runner.unreaped, stub.processes_naming(folder)) == ([], {})


@pytest.fixture(params=replay.WORKERS)
def worker(request: pytest.FixtureRequest, stand: Stand) -> str:
    """Each worker; the C++ one is built where it is asked for."""
    if request.param == "libtorch":
        stand.runner.fingerprint("old", ServingProfile())
        libtorch = LibTorch.from_mark(stand.runner.libtorch["old"])
        built = build_worker(libtorch, default_environment_root() / "native", cuda=False)
        assert built.binary is not None, built.why_not
        stand.runner.use_native("old", built.binary)
    return str(request.param)


@pytest.mark.parametrize("verb", ["run", "resave", "adopt"])
def test_a_program_leaves_no_process_and_writes_nowhere_but_in_its_own_folder(stand: Stand, verb: str) -> None:
    request = stand.request("planted", ArtifactKind.PROGRAM, verb=verb)
    if verb != "run":
        (declaration,) = [one for one in read_fixtures(HERE) if one.name == "healthy"]
        path = request.runs[0].artifact.path
        given = GivenArtifact(path=path, kind=ArtifactKind.PROGRAM)
        request = replace(request, runs=(), declaration=replace(declaration, given=given))
    result = stand.runner(request)
    assert [result.outcome, *(model.outcome for model in result.models)] == [Outcome.COMPLETED] * 2, result
    stand.assert_nothing_is_left(Path(result.directory), not_confined="not_confined" in result.data)


def test_its_healthy_twin_is_none_the_worse(stand: Stand) -> None:
    (model,) = stand.runner(stand.request("healthy", ArtifactKind.PROGRAM)).models
    assert model.outcome is Outcome.COMPLETED, model


@pytest.fixture(scope="module")
def package(stand: Stand) -> str:
    """The name of a package whose library does the same as it is opened; it has nothing else in it."""
    source = stand.folder / "package.cpp"
    targets = ", ".join(json.dumps(str(path)) for path in stand.targets)
    source.write_text((HERE / source.name).read_text().replace("{PATHS}", f"{{{targets}}}"))
    built = build_library(source, stand.folder / "built")
    if built.binary is None:
        pytest.skip(f"no compiler: {built.why_not}")
    with zipfile.ZipFile(stand.folder / "package.pt2", "w") as archive:
        archive.write(built.binary, "data/aotinductor/model/package.so")
        archive.writestr("data/aotinductor/model/package.cpp", "")
        archive.writestr("data/aotinductor/model/package_metadata.json", '{"AOTI_DEVICE_KEY": "cpu"}')
    return "package"


def test_a_package_leaves_no_process_and_writes_nowhere_but_in_its_own_folder(
    stand: Stand, package: str, worker: str
) -> None:
    result = stand.runner(stand.request(package, ArtifactKind.PACKAGE, worker=worker))
    assert [model.outcome for model in result.models] == [Outcome.LOAD_ERROR], result
    stand.assert_nothing_is_left(Path(result.directory), not_confined="not_confined" in result.data)


def test_a_process_of_the_benchmark_leaves_none_either(stand: Stand, package: str, worker: str) -> None:
    name, kind = ("planted", ArtifactKind.PROGRAM) if worker == "python" else (package, ArtifactKind.PACKAGE)
    request = stand.request(name, kind, verb="benchmark", worker=worker)
    folder = stand.folder / "run" / f"benchmark-{worker}"
    native = stand.runner.native["old"] if worker == "libtorch" else None
    process = BenchmarkProcess("new", stand.environment, request, folder, native=native)
    try:
        assert process.answer(120.0)["ready"]
        loaded = process.order(120.0, order="load", model=name)
        assert ("error" in loaded) is (name == "package"), loaded
        daemon = int((folder / wire.WORK / "daemon").read_text())
        assert stub.is_alive(daemon)
    finally:
        assert process.close()
    stand.assert_nothing_is_left(folder, not_confined="not_confined" in (folder / wire.EVENTS).read_text())
