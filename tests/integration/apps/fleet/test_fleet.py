"""A store of real artifacts: planned without torch, run in shards, merged as one run of all would be, and known after."""

import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import zipfile
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import msgspec
import pytest

from harness.core.fleet import FleetPlan, FleetReport, ShardDone, WaveKind
from harness.core.outcome import Status
from harness.core.plan import Plan
from harness.core.prediction import Prediction
from harness.environments.builder import ROOT_VARIABLE, default_environment_root
from harness.core.errors import ConfigError
from harness.apps.fleet import shard as fleet_shard
from harness.apps.fleet.answer.merge import merge
from harness.apps.fleet.plan import PlannedFleet, in_folder, plan_fleet
from harness.apps.fleet.shard import run_shard
from harness.project import Project
from harness.apps.upgrade.plan import make_plan
from harness.store import codec
from harness.machine.progress import Progress
from tests.integration.gate import PROJECT, harness

pytestmark = pytest.mark.integration

PROGRAM = Path(__file__).parent / "fleets" / "program.py"
PLANTED = ("planted_nan",)
MANIFEST = """
tiers = ["batch", "online"]
[[artifacts]]
match = "*"
owner = "platform"
tier = "batch"
requests = [{ arguments = [{ shape = [2, 6] }] }]
[[artifacts]]
match = "ads/*"
owner = "ads"
tier = "online"
"""


def write_store(folder: Path, python: str, *names: str) -> Path:
    subprocess.run([python, str(PROGRAM), str(folder), *names], check=True, capture_output=True, timeout=120)
    (folder / "fleet.toml").write_text(MANIFEST)
    return folder


def options(old: str, new: str, *assignments: str) -> Project:
    return Project(
        folder=PROJECT,
        overrides={"latency": "off"},
        assignments=assignments,
        environments=(f"old={old}", f"new={new}"),
    )


def with_few_planted_defects(*arguments: Any) -> Plan:
    """A plan that plants one defect and its twin: that a run plants all is tested where all are."""
    plan = make_plan(*arguments)
    kept = [item for item in plan.planted_defects if item.name in PLANTED]
    twins = {item.planted_defect.twin for item in kept if item.planted_defect is not None}
    kept += [item for item in plan.planted_defects if item.name in twins]
    return replace(plan, planted_defects=tuple(kept))


def fleet_of(store: Path, into: Path, asked: Project, shards: int) -> tuple[PlannedFleet, list[ShardDone]]:
    progress = Progress(enabled=False)
    planned = plan_fleet(asked, str(store), into=into, manifest=None, within_s=None, progress=progress)
    places = [planned] if shards == 1 else [in_folder(planned, part) for part in parts_of(into, shards)]
    done = [run_shard(asked, place, shard=(at, shards), progress=progress) for at, place in enumerate(places, 1)]
    return planned, done


def parts_of(into: Path, shards: int) -> list[Path]:
    """The folders of the machines of a job."""
    return [into / "shards" / str(at) for at in range(1, shards + 1)]


def statuses(report: FleetReport) -> dict[str, Status | None]:
    return {row.name: row.status for row in report.rows}


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory, old_python: str) -> Path:
    folder = tmp_path_factory.mktemp("models")
    return write_store(folder, old_python, "ads/ranker_a", "search/ranker_b", "search/half")


def test_two_shards_say_what_one_says_and_what_is_known_starts_nothing(
    store: Path, tmp_path: Path, old_python: str, new_python: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(fleet_shard, "make_plan", with_few_planted_defects)
    asked = options(old_python, new_python, 'scenarios=["alone"]')
    whole, (done,) = fleet_of(store, tmp_path / "whole", asked, 1)
    assert (done.units, done.known, done.made, done.faults) == (3, 0, 3, ())
    split, parts = fleet_of(store, tmp_path / "split", asked, 2)
    assert [(part.units, part.made) for part in parts] in ([(2, 2), (1, 1)], [(1, 1), (2, 2)])
    assert statuses(merge(split, asked)[0].answer) == dict.fromkeys(["ranker_a", "ranker_b", "half"])
    one, two = merge(whole, asked)[0].answer, merge(split, asked, [*map(str, parts_of(split.folder, 2))])[0].answer
    said = [placeless(codec.canonical(made), fleet.folder) for made, fleet in ((one, whole), (two, split))]
    assert said[0] == said[1] and b"fleet explain FLEET half" in said[0]
    assert statuses(one) == {"ranker_a": Status.PASS, "ranker_b": Status.PASS, "half": Status.FAIL}
    assert [(wave.kind, wave.needs or wave.cause) for wave in one.waves][:2] == [
        (WaveKind.READY, "batch"),
        (WaveKind.READY, "online"),
    ]
    assert one.waves[2].cause == "operator-prim::is_ort" and one.causes[0].owners == {"platform": 1}
    assert (one.decision.value, one.exit_code) == ("BLOCKED", 1)

    def start_nothing(*_arguments: Any, **_more: Any) -> None:
        raise AssertionError("a process was started")

    monkeypatch.setattr(subprocess, "Popen", start_nothing)
    again = run_shard(asked, whole, progress=Progress(enabled=False))
    assert (again.known, again.made, again.runs) == (3, 0, ())
    elsewhere = {unit.key for unit in whole.plan.units}
    part = run_shard(
        asked,
        in_folder(whole, tmp_path / "third"),
        shard=(1, 1),
        known_elsewhere=elsewhere,
        progress=Progress(enabled=False),
    )
    assert (part.known, part.made, part.runs) == (3, 0, ())


@pytest.mark.slow
def test_what_changed_or_vanished_since_the_plan_is_labelled_and_another_configuration_refused(
    store: Path, tmp_path: Path, old_python: str, new_python: str
) -> None:
    models = shutil.copytree(store, tmp_path / "models")
    asked, progress = options(old_python, new_python), Progress(enabled=False)
    planned = plan_fleet(asked, str(models), into=tmp_path / "fleet", manifest=None, within_s=None, progress=progress)
    for name in ("ads/ranker_a.pt", "search/half.pt"):
        shutil.copy(models / "search" / "ranker_b.pt", models / name)
    (models / "search" / "ranker_b.pt").unlink()
    done = run_shard(asked, planned, progress=progress)
    assert sorted(fault.label for fault in done.faults) == ["spurious-changed", "spurious-changed", "spurious-vanished"]
    assert {fault.tries for fault in done.faults} == {2} and done.runs == ()
    answer = merge(planned, asked)[0].answer
    assert (answer.decision.value, answer.exit_code, answer.causes) == ("NOTHING TESTED", 4, ())
    with pytest.raises(ConfigError, match="the configuration is another one than when this was planned"):
        run_shard(asked, replace(planned, plan=replace(planned.plan, settings="other")), progress=progress)
    others = tuple(replace(unit, key="0" * 64) for unit in planned.plan.units)  # as other workers would name them
    with pytest.raises(ConfigError, match="the gate is another one than when this was planned"):
        run_shard(asked, replace(planned, plan=replace(planned.plan, units=others)), progress=progress)
    shutil.rmtree(models)
    gone = run_shard(asked, planned, progress=progress)
    assert {fault.label for fault in gone.faults} == {"spurious-unreachable"} and len(gone.faults) == 3


def write_server_stores(folder: Path, python: str) -> Path:
    """A store as servers have it: two models of Triton, of which one lies about its shapes, and a TorchServe archive."""
    write_store(folder, python, "triton/ranker/1/model", "triton/liar/2/model", "served/ranker_b", "served/half")
    for name, dims in (("ranker", 6), ("liar", 7)):
        text = f'backend: "pytorch"\nmax_batch_size: 4\ninput {{ name: "x" data_type: TYPE_FP32 dims: [ {dims} ] }}\n'
        (folder / "triton" / name / "config.pbtxt").write_text(text)
    (folder / "triton" / "liar" / "2" / "model.pt").write_bytes((folder / "served" / "ranker_b.pt").read_bytes())
    with zipfile.ZipFile(folder / "served" / "archived.mar", "w") as archive:
        archive.write(folder / "served" / "ranker_b.pt", "ranker_b.pt")
        archive.writestr("MAR-INF/MANIFEST.json", json.dumps({"model": {"serializedFile": "ranker_b.pt"}}))
    (folder / "fleet.toml").write_text('[[artifacts]]\nmatch = "served/*"\nowner = "ads"\n')
    return folder


def planned_by_command(store: Path, into: Path) -> None:
    words = ("--old", "2.1.2", "--new", "2.6.0", "--latency", "off", "--into", str(into))
    done = harness("fleet", "plan", str(store), *words)
    assert done.returncode == 0, done.stderr
    assert len(done.stdout.splitlines()) <= 60


def placeless(data: bytes, folder: Path) -> bytes:
    return data.replace(str(folder).encode(), b"FLEET")


def answered(into: Path) -> tuple[int, FleetReport, bytes]:
    """Return an answer, without the folder that its commands name."""
    done = harness("fleet", "report", str(into))
    data = placeless((into / "fleet.json").read_bytes(), into)
    return done.returncode, msgspec.json.decode(data, type=FleetReport), data


def killed_after(into: Path, seconds: float) -> None:
    """Begin the shard and end it with SIGKILL, and with it everything that it started."""
    env = {**os.environ, ROOT_VARIABLE: str(default_environment_root())}
    words: Sequence[str] = (sys.executable, "-m", "harness", "fleet", "run", str(into))
    process = subprocess.Popen(words, cwd=PROJECT, env=env, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    time.sleep(seconds)
    process.send_signal(signal.SIGKILL)
    process.wait(60)


@pytest.mark.slow
def test_stores_of_servers_are_judged_and_a_killed_shard_goes_on_to_the_same_answer(
    tmp_path: Path, old_python: str
) -> None:
    store = write_server_stores(tmp_path / "store", old_python)
    whole, cut = tmp_path / "whole", tmp_path / "cut"
    planned_by_command(store, whole)
    assert harness("fleet", "run", str(whole), timeout_s=1200).returncode == 0
    code, answer, data = answered(whole)
    shutil.copytree(whole, cut, ignore=shutil.ignore_patterns("store", "runs"))
    for seconds in (4.0, 15.0, 40.0):
        killed_after(cut, seconds)
    assert harness("fleet", "run", str(cut), timeout_s=1200).returncode == 0
    assert answered(cut) == (code, answer, data)
    fresh = tmp_path / "fresh"
    shutil.copytree(whole, fresh, ignore=shutil.ignore_patterns("store", "runs"))
    merged = harness("fleet", "merge", str(fresh), str(whole), "--format", "json")
    assert (merged.returncode, placeless(merged.stdout.encode(), fresh)) == (code, data)
    status = harness("fleet", "store", "status", str(fresh))
    assert status.returncode == 0 and "4 of 2 programs" in status.stdout
    found = {row.name: row for row in answer.rows}
    assert (code, len(found)) == (1, 5)
    assert found["ranker_1"].status is Status.PASS and found["half"].status is Status.FAIL
    assert found["ranker_b"].status is Status.PASS and found["archived"].status is Status.PASS
    assert found["liar_2"].status not in (Status.PASS, Status.FAIL)
    plan = msgspec.json.decode((whole / "plan.json").read_bytes(), type=FleetPlan)
    assert {unit.artifacts for unit in plan.units} >= {("archived", "ranker_b")}


def write_triton(folder: Path, python: str, packages: Path | None) -> Path:
    """A Triton repository with TorchScript, and a package where one is made, beside a folder for programs."""
    write_store(folder, python, "triton/ranker/1/model")
    config = 'max_batch_size: 4\ninput { name: "x" data_type: TYPE_FP32 dims: [ 6 ] }\n'
    (folder / "triton" / "ranker" / "config.pbtxt").write_text(f'backend: "pytorch"\n{config}')
    if packages is not None:
        place = folder / "triton" / "nested"
        (place / "1").mkdir(parents=True)
        shutil.copy(packages / "nested.pt2", place / "1" / "model.pt2")
        inputs = {"KWARGS[scale]": "1", "ARGS[1][pair][1]": "2, 4", "ARGS[1][pair][0]": "2, 4", "INPUT__0": "2, 4"}
        lines = [f'input {{ name: "{name}" data_type: TYPE_FP32 dims: [ {dims} ] }}' for name, dims in inputs.items()]
        (place / "config.pbtxt").write_text("\n".join(['backend: "pytorch"', 'platform: "torch_aoti"', *lines]))
    (folder / "fleet.toml").write_text('[[artifacts]]\nmatch = "*"\nowner = "ads"\n')
    return folder


def judged(store: Path, fleet: Path, old: str, new: str) -> tuple[FleetReport, dict[str, Prediction]]:
    """Return the answer, and what was predicted of the new release."""
    asked = options(old, new, 'scenarios=["alone"]', 'runtime="python"')
    planned, (done,) = fleet_of(store, fleet, asked, 1)
    assert (done.made, done.faults) == (len(planned.plan.artifacts), ())
    predicted = {item.name: item.predictions["new"] for item in planned.plan.artifacts}
    return merge(planned, asked)[0].answer, predicted


@pytest.mark.slow
def test_programs_in_a_folder_fail_where_the_new_release_does_not_load_them(
    programs: Path, tmp_path: Path, old_python: str, new_python: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(fleet_shard, "make_plan", with_few_planted_defects)
    store = write_triton(tmp_path / "store", old_python, None)
    shutil.copytree(programs, store / "plain", ignore=shutil.ignore_patterns("ranker.pt2"))
    answer, predicted = judged(store, tmp_path / "fleet", new_python, old_python)
    assert statuses(answer) == {"ranker_1": Status.PASS, "asked": Status.FAIL, "named": Status.FAIL}
    assert predicted == {"ranker_1": Prediction.LOADS, "asked": Prediction.FAILS, "named": Prediction.FAILS}
    (wave,) = [wave for wave in answer.waves if wave.kind is WaveKind.BLOCKED]
    assert (wave.artifacts, wave.cause, answer.exit_code) == (("asked", "named"), "no-torch-export", 1)
    assert [found.cause.id for found in answer.causes] == ["no-torch-export"]


@pytest.mark.slow
def test_a_package_of_triton_passes_where_it_loads_and_fails_where_no_loader_is_there(
    programs: Path,
    packages: Path,
    tmp_path: Path,
    old_python: str,
    new_python: str,
    latest_python: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Not below /tmp, where 2.6.0 unpacks packages."""
    monkeypatch.setattr(fleet_shard, "make_plan", with_few_planted_defects)
    store = write_triton(tmp_path / "store", old_python, packages)
    (store / "plain").mkdir()
    shutil.copy(programs / "ranker.pt2", store / "plain" / "program.pt2")
    with tempfile.TemporaryDirectory(dir="/var/tmp", prefix="fleet-") as place:
        up, _ = judged(store, Path(place) / "up", new_python, latest_python)
        back, predicted = judged(store, Path(place) / "back", new_python, old_python)
    names = ("ranker_1", "nested_1", "program")
    assert statuses(up) == dict.fromkeys(names, Status.PASS)
    (row,) = [row for row in up.rows if row.name == "nested_1"]
    assert row.guessed.startswith("guessed from config.pbtxt: forward(ARGS[0]=float32[2, 4]")
    assert statuses(back) == {"ranker_1": Status.PASS, "nested_1": Status.FAIL, "program": Status.FAIL}
    assert (predicted["nested_1"], predicted["program"]) == (Prediction.FAILS, Prediction.FAILS)
    assert {name: found.cause.id for found in back.causes for name in found.cause.models} == {
        "nested_1": "no-packages",
        "program": "no-torch-export",
    }


SLOW_TO_TIME = """
import sys, torch
class Wide(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.a, self.b = torch.nn.Linear(64, 3000), torch.nn.Linear(3000, 64)
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.b(torch.relu(self.a(x)))
torch.jit.script(Wide()).save(sys.argv[1])
"""


@pytest.mark.slow
def test_rounds_of_timing_add_up_and_those_of_a_killed_call_count_too(tmp_path: Path, old_python: str) -> None:
    store, fleet = tmp_path / "store", tmp_path / "fleet"
    store.mkdir()
    (tmp_path / "wide.py").write_text(SLOW_TO_TIME)  # scripting reads the source
    subprocess.run([old_python, str(tmp_path / "wide.py"), str(store / "wide.pt")], check=True, capture_output=True)
    (store / "fleet.toml").write_text(
        '[[artifacts]]\nmatch = "*"\nrequests = [{ arguments = [{ shape = [6000, 64] }] }]\n'
    )
    asked = ('scenarios=["alone"]', 'latency.limit="+0.5 %"', "latency.model_s=4")  # three rounds, which say too little
    words = [word for assignment in asked for word in ("--set", assignment)]
    done = harness("fleet", "plan", str(store), "--old", "2.1.2", "--new", "2.6.0", *words, "--into", str(fleet))
    assert done.returncode == 0, done.stderr
    assert harness("fleet", "run", str(fleet)).returncode == 0
    (first,) = (path.read_bytes() for path in (fleet / "store" / "results").rglob("*.json"))
    for _ in range(5):  # on a loud machine the planted slow model may take all of it
        more = harness("fleet", "run", str(fleet), "--more", "30s")
        assert "1 program undecided" in more.stdout, more.stdout + more.stderr
        if "1 with more rounds now" in more.stdout:
            break
    before, after = sorted((fleet / "store" / "results").rglob("*.json"), key=lambda path: len(path.name))
    assert before.read_bytes() == first
    rounds = [json.loads(data)["value"]["facts"]["latency"]["samples"] for data in (first, after.read_bytes())]
    assert rounds[1][: len(rounds[0])] == rounds[0] and len(rounds[1]) > len(rounds[0])
    kept = after.read_bytes()
    after.unlink()  # as after a kill before it was kept: the run has it
    harness(
        "fleet", "run", str(fleet), "--more", "1s"
    )  # too little for a round, and what is there is kept all the same
    assert after.read_bytes() == kept
