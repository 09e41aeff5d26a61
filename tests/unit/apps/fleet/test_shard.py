"""What a shard does before anything runs: whose programs it would run, and what it says where it may not."""

import re
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import fsspec
import pytest

from harness.core.fleet import PlannedOptions, Serving
from harness.core.models import ArtifactKind, GivenArtifact
from harness.core.plan import Plan, Settings
from harness.core.report import RunReport
from harness.core.errors import RunDirError, SelectionError
from harness.apps.fleet import shard
from harness.apps.upgrade import plan as planning
from harness.artifacts.given import GivenModels
from harness.apps.fleet.plan import STORE, PlannedFleet, Sides
from harness.apps.fleet.results import FleetResults
from harness.apps.fleet.shard import explain, run_shard
from harness.apps.fleet.stores.reading import sha256_of
from harness.apps.fleet.stores.sources import Listed
from harness.project import Project
from harness.machine.progress import Progress
from harness.report.json.report import dump_report
from harness.store.run_folder import RunDir
from tests.unit.builders.reports import latency, ratio, upgrade_ok
from tests.unit.builders.requests import declaration
from tests.unit.apps.fleet.answers import COMMON, artifact, plan_of, result_of


NOW = datetime(2026, 11, 21, 2, 15, tzinfo=UTC)


@pytest.fixture
def planned(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> PlannedFleet:
    """A plan of four artifacts of a bucket; of one a program makes requests, two are programs; no release is there."""
    settings = Settings(old="2.1.2", new="2.6.0")
    sides = Sides(settings=settings, device="cpu", environments={}, registries={}, releases=COMMON.releases)
    monkeypatch.setattr(shard, "sides_of", lambda *_: sides)
    monkeypatch.setattr(shard, "content_common", lambda *_: COMMON)
    asked = replace(artifact("a"), serving=Serving(inputs="ads/a.inputs.py"))
    program = replace(artifact("c", program="R"), loaded_as=ArtifactKind.PROGRAM)
    package = replace(artifact("d", program="S"), loaded_as=ArtifactKind.PACKAGE)
    made = plan_of(asked, artifact("b", program="Q"), program, package, store="memory://trusted")
    return replace(made, folder=tmp_path)


def bucket(*paths: str) -> None:
    system: Any = fsspec.filesystem("memory")
    system.store.clear()
    for path in paths:
        with system.open(f"/trusted/{path}", "wb") as stream:
            stream.write(b"x")


@pytest.mark.parametrize("trust", [False, True])
def test_programs_from_a_bucket_run_only_where_that_is_said(planned: PlannedFleet, trust: bool) -> None:
    bucket("other.txt")
    done = run_shard(Project(folder=planned.folder), planned, trust=trust, progress=Progress(enabled=False))
    found = {re.split("[: ]", fault.text)[0]: fault for fault in done.faults}
    runs = dict.fromkeys(("ads/a.pt", "ads/c.pt", "ads/d.pt"), "spurious-vanished" if trust else "spurious-untrusted")
    assert {path: fault.label for path, fault in found.items()} == {"ads/b.pt": "spurious-vanished", **runs}
    said = {
        "ads/a.pt": "its requests, ads/a.inputs.py, are a program",
        "ads/c.pt": "it is an exported program, which runs code when it is loaded",
        "ads/d.pt": "it is a package of AOTInductor, which runs code when it is loaded",
    }
    for path, what in said.items() if not trust else ():
        end = "from outside of this machine: if you would run it, repeat the command with --trust"
        assert found[path].text == f"{path}: {what}, {end}"


@pytest.mark.parametrize("kind", list(ArtifactKind))
def test_a_run_of_a_folder_is_told_what_the_artifact_is_and_needs_no_trust(
    planned: PlannedFleet, kind: ArtifactKind, tmp_path: Path
) -> None:
    path = tmp_path / "models" / "ads" / "a.pt"
    path.parent.mkdir(parents=True)
    path.write_bytes(b"x")
    item = replace(artifact("a"), loaded_as=kind, sha256=sha256_of(path))
    made = replace(plan_of(item, store=str(tmp_path / "models")), folder=tmp_path)
    results = FleetResults(made.folder / STORE)
    quiet = Progress(enabled=False)
    runner = shard._Shard(Project(folder=tmp_path), made, results, quiet, (), trust=False)
    declaration = runner._declaration(made.plan.units[0], {"ads/a.pt": Listed("ads/a.pt", 1)})
    assert declaration.kind is kind
    assert (declaration.given is not None and declaration.given.path) == str(path)


def test_what_was_left_without_trust_is_asked_again_with_it(planned: PlannedFleet) -> None:
    bucket("ads/a.pt", "ads/a.inputs.py")
    options, quiet = Project(folder=planned.folder), Progress(enabled=False)
    assert "spurious-untrusted" in {fault.label for fault in run_shard(options, planned, progress=quiet).faults}
    again = run_shard(options, planned, trust=True, progress=quiet)
    assert {fault.label for fault in again.faults} == {"spurious-changed", "spurious-vanished"}  # it was fetched


def test_a_folder_of_runs_that_cannot_be_written_is_not_told_of_an_option_of_other_commands(
    planned: PlannedFleet, monkeypatch: pytest.MonkeyPatch
) -> None:
    bucket("ads/a.pt", "ads/b.pt")
    (planned.folder / "runs").write_bytes(b"no folder")
    monkeypatch.setattr(shard._Shard, "_declaration", lambda *_: None)
    with pytest.raises(RunDirError) as error:
        run_shard(Project(folder=planned.folder), planned, progress=Progress(enabled=False))
    assert str(error.value).startswith(str(planned.folder / "runs")) and "--out" not in str(error.value)
    assert error.value.hint == "free space, or make the folder writable, or name another one with --into"


def test_more_rounds_of_a_run_count_in_place_of_the_first(planned: PlannedFleet) -> None:
    unit = next(unit for unit in planned.plan.units if unit.artifact == "b")
    first = result_of(planned, "b")

    def report(rounds: int) -> RunReport:
        made = latency("b", ratio(1.02))
        facts = replace(first.facts, latency=replace(made, samples=made.samples[:1] * rounds))
        done = upgrade_ok()
        judgement = replace(done.judgement, rows=(first.row,))
        return replace(done, judgement=judgement, models=(facts,), limits={"steady": 2})

    results = FleetResults(planned.folder / STORE)
    runner = shard._Shard(Project(folder=planned.folder), planned, results, Progress(enabled=False), (), trust=False)
    assert (runner._keep([unit], report(3)), runner._rounds(unit)) == ([], 3)
    assert (runner._keep([unit], report(9), replaces=True), runner._rounds(unit)) == ([], 9)


@pytest.mark.parametrize("interrupted", ["timing", ""])
def test_a_run_that_was_interrupted_is_gone_on_with_though_it_has_a_report(
    planned: PlannedFleet, monkeypatch: pytest.MonkeyPatch, interrupted: str
) -> None:
    whole = upgrade_ok()
    partial = replace(whole, judgement=replace(whole.judgement, interrupted=interrupted))
    with RunDir.create(planned.folder / "runs", "t", NOW) as run:
        run.write("plan.json", b"{}")
        run.write("report.json", dump_report(partial))
    kept: list[RunReport] = []
    monkeypatch.setattr(shard._Shard, "_run_dir", lambda *_: RunDir.open(planned.folder / "runs", str(run.path)))

    def keep(_self: object, _units: object, report: RunReport) -> list[object]:
        kept.append(report)
        return []

    monkeypatch.setattr(shard._Shard, "_keep", keep)
    monkeypatch.setattr(RunDir, "load_plan", lambda _: None)
    monkeypatch.setattr(shard, "execute", lambda *_: SimpleNamespace(report=whole))
    ready = [SimpleNamespace(unit=planned.plan.units[0])]
    results = FleetResults(planned.folder / STORE)
    runner = shard._Shard(Project(folder=planned.folder), planned, results, Progress(enabled=False), (), trust=False)
    assert runner._run(cast(Any, ready)) == []
    assert [report.judgement.interrupted for report in kept] == [""]


def test_what_is_explained_is_asked_as_the_manifest_says_and_belongs_to_its_owner(
    planned: PlannedFleet, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "models" / "ads" / "a.pt"
    path.parent.mkdir(parents=True)
    path.write_bytes(b"x")
    requests = ({"name": "codes", "arguments": [{"shape": [4, 4], "dtype": "int64", "below": 3}]},)
    told = replace(
        planned.plan.artifacts[0],
        serving=Serving(requests=requests, tolerance=0.01),
        sha256=sha256_of(path),
        owner="ads",
    )
    sides = PlannedOptions(overrides={"old": "2.1.2", "new": "2.6.0"}, assignments=(), environments=(), libraries=())
    plan = replace(
        planned.plan, options=sides, store=str(tmp_path / "models"), artifacts=(told, *planned.plan.artifacts[1:])
    )
    fleet = replace(planned, plan=plan)
    executed: list[Plan] = []
    monkeypatch.setattr(shard, "execute", lambda plan, *_: executed.append(plan))
    asked = Project(folder=tmp_path, overrides={"device": "cpu"})
    explain(asked, fleet, told.name, progress=Progress(enabled=False))
    (model,) = executed[0].models
    assert model.given is not None
    assert (model.given.requests, model.tolerance, model.owner) == (requests, 0.01, "ads")
    assert executed[0].settings.explain > 0
    for name, why in (
        ("aa", "aa is no artifact of this plan; name one of fleet report: a"),
        ("b", "b.pt is no longer"),
    ):
        with pytest.raises(SelectionError, match=why):
            explain(asked, fleet, name, progress=Progress(enabled=False))


def test_a_run_is_timed_further_only_while_every_artifact_of_it_is_what_its_rounds_were_measured_with(
    planned: PlannedFleet, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    unit = next(unit for unit in planned.plan.units if unit.artifact == "b")
    first = result_of(planned, "b")
    made = latency("b", ratio(1.02))

    def report(rounds: int) -> RunReport:
        facts = replace(first.facts, latency=replace(made, samples=made.samples[:1] * rounds))
        judgement = replace(upgrade_ok().judgement, rows=(first.row,))
        return replace(upgrade_ok(), judgement=judgement, models=(facts,), limits={"steady": 2})

    beside = tmp_path / "beside.pt"
    beside.write_bytes(b"then")
    model = declaration(name="beside", given=GivenArtifact(path=str(beside), sha256=sha256_of(beside)))
    plan = planning.make_plan(
        Project(folder=tmp_path, overrides={"old": "2.1.2", "new": "2.6.0", "device": "cpu"}),
        GivenModels(models=(model,)),
    )
    run = RunDir.create(planned.folder / "runs", "fleet-x", NOW)
    with run:
        run.save_plan(plan)
    monkeypatch.setattr(shard._Shard, "_declaration", lambda *_: None)
    rounds = [9]
    monkeypatch.setattr(shard, "execute", lambda *_: SimpleNamespace(report=report(rounds.pop())))
    results = FleetResults(planned.folder / STORE)
    runner = shard._Shard(Project(folder=planned.folder), planned, results, Progress(enabled=False), (), trust=False)
    runner._keep([unit], report(6))
    assert (runner.time_more(run.path, [unit], 60), runner._rounds(unit)) == (1, 9)
    rounds.append(4)
    assert (runner.time_more(run.path, [unit], 60), runner._rounds(unit)) == (0, 9)
    beside.write_bytes(b"now")
    assert (runner.time_more(run.path, [unit], 60), rounds) == (0, [])
    beside.unlink()
    assert runner.time_more(run.path, [unit], 60) == 0
