"""Many models that hang or crash among healthy ones: who gets a result, and what the run leaves behind."""

import os
import signal
import tempfile
import threading
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

import pytest

from harness.apps.upgrade.execute import compat as run_compat
from harness.apps.report.files import Finished
from harness.project import Project
from harness.checks.outputs.compare import compare
from harness.verdict.cells import judge_cells
from harness.core.outcome import Outcome, Status
from harness.core.plan import Plan
from harness.core.probe import ServingProfile
from harness.environments.builder import ROOT_VARIABLE, default_environment_root
from harness.probing.alone import probe_alone
from harness.probing.export import export_models
from harness.probing.old_answers import probe_old_release
from harness.checks.startup.initialize import bring_up, initialize_groups, scenario_result
from harness.checks.startup.native import build_workers
from tests.integration.checks.startup.concurrency import storm
from tests.integration.gate import PROJECT
from tests.integration.servers import answered, cell, judged, launcher, planned, provisioned
from tests.programs import cli, stub
from tests.programs.cli import Line

pytestmark = [pytest.mark.integration, pytest.mark.usefixtures("old_python", "new_python")]

SCENARIOS = ("alone", "concurrent", "shared")
# The new side only: hangs and crashes wait for inference mode, the fuser needs to be on.
SWITCHES = {"inference_mode": True, "cpu_fusion": True}
DEADLINE_S = 1.0
SHARED_MEMORY = Path("/dev/shm")
FEW = {"healthy": 6, "spins": 1, "spins_in_load": 1, "fuses": 1, "crashes": 2, "raises": 1, "wears_out": 1}
MANY = {"healthy": 50, "spins": 16, "spins_in_load": 5, "fuses": 10, "crashes": 15, "wears_out": 4}


@dataclass(frozen=True)
class Scene:
    """What this process and its machine held before a run."""

    folder: Path
    temporary: Path
    threads: frozenset[threading.Thread]
    shared_memory: frozenset[str]
    descriptors: int

    def assert_nothing_left(self) -> None:
        assert stub.eventually(lambda: not stub.processes_naming(self.folder)), stub.processes_naming(self.folder)
        assert stub.eventually(lambda: not stub.zombies()), stub.zombies()
        assert stub.eventually(lambda: not self.new_threads()), self.new_threads()
        assert list(self.temporary.rglob("*")) == []
        # Other programs of this machine come and go; what this run had left would stay.
        assert stub.eventually(lambda: not self.new_segments()), self.new_segments()
        assert len(stub.open_descriptors()) <= self.descriptors, stub.open_descriptors()

    def new_threads(self) -> set[str]:
        found = {thread.name for thread in threading.enumerate() if thread not in self.threads}
        return {name for name in found if not name.startswith("spawner")}

    def new_segments(self) -> set[str]:
        return set(os.listdir(SHARED_MEMORY)) - self.shared_memory


@pytest.fixture
def machine_state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Scene]:
    temporary = tmp_path / "tmp"
    temporary.mkdir()
    monkeypatch.setenv("TMPDIR", str(temporary))
    monkeypatch.setattr(tempfile, "tempdir", None)
    yield Scene(
        folder=tmp_path / "runs",
        temporary=temporary,
        threads=frozenset(threading.enumerate()),
        shared_memory=frozenset(os.listdir(SHARED_MEMORY)),
        descriptors=len(stub.open_descriptors()),
    )


def stormy(plan: Plan) -> Plan:
    profile = ServingProfile(name="storm", switches=SWITCHES)
    return replace(plan, settings=replace(plan.settings, new_profile=profile))


@pytest.mark.slow
def test_hung_and_crashed_models_leave_healthy_ones_their_results_and_nothing_else(machine_state: Scene) -> None:
    fixtures = machine_state.folder.parent / "storm"
    expected = storm.write(fixtures, FEW)
    plan = stormy(
        planned(machine_state.folder, fixtures, scenarios=SCENARIOS, overrides={"deadlines.floor_s": DEADLINE_S})
    )
    with provisioned(machine_state.folder, plan) as (first, effects):
        facts = judged(build_workers(probe_alone(answered(first, effects), effects), effects), effects)
        # None of the sick would get into a server group: here they do.
        together = launcher("concurrent", facts, effects, switches=SWITCHES)
        run = bring_up(together, "", sorted(expected))
        found = {name: scenario_result(run, name).result.outcome for name in expected}
    assert found == expected
    assert {name: probe.models[0].outcome for name, probe in facts.alone.items()} == expected
    assert facts.worker == "libtorch", facts.worker_notes
    for name in (name for name in expected if name.startswith("healthy")):
        assert {item.status for item in facts.verdicts[name]} == {Status.PASS}, name
        assert {item.scenario for item in facts.verdicts[name]} == set(SCENARIOS)
    worn = cell(facts, "wears_out_00", "shared")
    assert (worn.status, [finding.kind for finding in worn.findings]) == (Status.FAIL, ["crash"])
    machine_state.assert_nothing_left()


@pytest.mark.slow
def test_fifty_failing_among_fifty_healthy_models_in_one_run_of_the_gate(
    machine_state: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    fixtures = machine_state.folder.parent / "storm"
    expected = storm.write(fixtures, MANY, groups=4)
    monkeypatch.setenv(ROOT_VARIABLE, str(default_environment_root()))
    finished = gate_with_storm(machine_state, fixtures)
    models = {model.model: model for model in finished.report.models}
    rows = {row.model: row for row in finished.report.judgement.rows}
    assert models.keys() == rows.keys() == expected.keys()
    assert {name for name in rows if rows[name].status is Status.PASS} == {
        name for name in rows if name.startswith("healthy")
    }
    found = {name: sorted({f.kind for item in row.cells for f in item.findings}) for name, row in rows.items()}
    kinds = {"spins": ["hang"], "spins_in_load": ["hang"], "fuses": ["hang"], "crashes": ["crash"],
             "raises": ["call_error"], "wears_out": ["crash"], "healthy": []}  # fmt: skip
    assert found == {name: kinds[name.rpartition("_")[0]] for name in rows}
    machine_state.assert_nothing_left()


def gate_with_storm(machine_state: Scene, fixtures: Path) -> Finished:
    project = machine_state.folder.parent / "project"
    project.mkdir()
    switches = ", ".join(f"{name} = true" for name in SWITCHES)
    table = f"\n[tool.compat.serving.profiles.storm]\nswitches = {{ {switches} }}\n"
    (project / "pyproject.toml").write_text((PROJECT / "pyproject.toml").read_text() + table)
    overrides: Mapping[str, object] = {
        "fixtures": str(fixtures), "latency": "off", "new_profile": "storm", "deadlines.floor_s": DEADLINE_S,
    }  # fmt: skip
    options = Project(folder=project, overrides=overrides, scenarios=SCENARIOS, out=str(machine_state.folder))
    return run_compat(options)


def test_interrupt_in_the_middle_of_cpp_initialization_leaves_no_process(
    tmp_path: Path, old_python: str, new_python: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(ROOT_VARIABLE, str(default_environment_root()))
    models = (
        "--fixtures",
        str(PROJECT / "tests/integration/checks/startup/concurrency"),
        "-k",
        "fork_join or straight",
    )
    line = Line(tmp_path / "project", old_python, new_python, (*models, "--scenario", "inter_op"))
    process = line.start()

    def hangs_in_cpp() -> bool:
        """A pool of one thread, and a model that waits inside of it: the process is there for seconds."""
        commands = stub.processes_naming(line.reports).values()
        return any("/native/" in command.split()[0] for command in commands)

    assert stub.eventually(hangs_in_cpp, within_s=120.0)
    os.kill(process.pid, signal.SIGINT)
    done = cli.finish(process, within_s=60.0)
    assert done.returncode == 130, done.stderr
    assert done.stderr.splitlines()[-1] == "interrupted"
    assert stub.eventually(lambda: not stub.processes_naming(line.reports)), stub.processes_naming(line.reports)
