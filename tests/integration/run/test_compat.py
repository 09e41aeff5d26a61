"""The main job on two real releases, from the command line to the reports."""

import json
import shutil
import xml.etree.ElementTree as ET
from pathlib import Path

import msgspec
import pytest

from harness.cli import main
from harness.core.hang import HangKind
from harness.core.migration import Migrated
from harness.core.outcome import Decision, Outcome, Status
from harness.core.probe import ProbeResult
from harness.core.report import CellTrend
from harness.store.run_folder import RunDir
from tests.integration.gate import PROJECT, Run, compat, finished, harness
from tests.programs import cli
from tests.unit.builders.readers import openmetrics, runner_reads, valid

pytestmark = [pytest.mark.integration, pytest.mark.usefixtures("old_python", "new_python")]

HEALTHY = "(dlrm or din or two_tower or frequency_cap or decoder_kv_cache) and not (traced or served)"
HANGS = "tests/integration/checks/startup/hangs"
UNTIMED = ("--until", "correctness")


@pytest.fixture(scope="module")
def healthy(tmp_path_factory: pytest.TempPathFactory) -> Run:
    return compat(tmp_path_factory.mktemp("healthy"), "-k", HEALTHY, *UNTIMED)


def test_healthy_models_give_a_green_decision(healthy: Run) -> None:
    assert healthy.code == 0, healthy.out
    assert healthy.report.judgement.decision is Decision.UPGRADE_OK
    assert {row.status for row in healthy.report.judgement.rows} == {Status.PASS}
    assert len(healthy.report.judgement.rows) >= 5
    assert healthy.out.rstrip().splitlines()[-1].startswith("UPGRADE OK")


def test_every_healthy_model_was_exported_loaded_called_and_initialized(healthy: Run) -> None:
    for model in healthy.report.models:
        assert (model.export, model.load, model.concurrent) == (Outcome.COMPLETED,) * 3, model.model
        scenarios = {comparison.scenario: comparison for comparison in model.comparisons}
        assert set(scenarios) == {"alone", "concurrent", "while_serving"}
        calls = {(call.input_set, call.call) for call in scenarios["alone"].calls}
        assert {("example", index) for index in range(4)} <= calls
        assert len({input_set for input_set, _ in calls}) >= 2


def test_every_planted_is_caught_and_every_twin_left_alone(healthy: Run) -> None:
    planted_defects = {
        planted_defect.name: planted_defect for planted_defect in healthy.report.judgement.planted_defects
    }
    assert all(planted_defect.caught for planted_defect in planted_defects.values())
    expected = {planted_defect.expected for planted_defect in planted_defects.values()} - {""}
    assert expected == {
        "values", "late_divergence", "nan_placement", "dtype", "structure", "input_changed",
        "load_error", "call_error", "hang", "crash", "race",
    }  # fmt: skip
    assert {"planted_pool_deadlock", "planted_healthy beside planted_pool_deadlock"} <= set(planted_defects)
    assert sum(not planted_defect.expected for planted_defect in planted_defects.values()) >= 4


def test_the_fingerprints_name_both_releases(healthy: Run) -> None:
    old, new = healthy.report.old.fingerprint, healthy.report.new.fingerprint
    assert old is not None and old.torch.startswith("2.1.2")
    assert new is not None and new.torch.startswith("2.6.0")
    assert old.git_revision and new.git_revision and old.git_revision != new.git_revision
    assert (old.intra_op_threads, new.intra_op_threads) == (1, 1)
    assert old.operator_version and old.isa and old.cpu and old.glibc


def test_folders_that_the_gate_makes_are_no_difference_of_the_releases(healthy: Run) -> None:
    assert "torch" in healthy.report.environment_differences
    assert "env_vars" not in healthy.report.environment_differences


def test_reports_are_written_and_render_again_from_json(healthy: Run) -> None:
    assert {"report.json", "report.md", "junit.xml", "plan.json"} <= {path.name for path in healthy.folder.iterdir()}
    root = ET.parse(healthy.folder / "junit.xml").getroot()
    assert len(root.findall(".//testcase")) >= 10
    assert not root.findall(".//failure")
    again = harness("report", str(healthy.folder))
    assert again.returncode == 0
    assert "UPGRADE OK" in again.stdout
    as_json = harness("report", str(healthy.folder), "--format", "json")
    assert json.loads(as_json.stdout) == json.loads((healthy.folder / "report.json").read_text())


def test_what_ci_reads_of_a_real_run_is_valid_and_green(healthy: Run) -> None:
    results = valid((healthy.folder / "ctrf.json").read_text(), "ctrf-0.0.json")["results"]
    assert {test["status"] for test in results["tests"]} == {"passed"}
    families = {family.name: family for family in openmetrics((healthy.folder / "metrics.prom").read_text())}
    assert [sample.value for sample in families["torchscript_gate_exit_code"].samples] == [0]
    assert len(families["torchscript_gate_model_status"].samples) == len(healthy.report.models)
    done = harness("report", str(healthy.folder), "--format", "github")
    assert done.returncode == 0
    assert "error" not in {command.name for command in runner_reads(done.stdout)}


def test_the_time_shares_add_up_to_the_wall_time(healthy: Run) -> None:
    shares = healthy.report.time_shares_s
    assert sum(shares.values()) == pytest.approx(healthy.report.wall_s, rel=1e-6)
    assert {"import", "export", "golden", "load", "first calls", "calls", "harness itself"} <= set(shares)


@pytest.mark.slow
def test_a_cell_reruns_by_its_id(healthy: Run) -> None:
    done = harness("rerun", str(healthy.folder), "din/alone")
    run = finished(done, healthy.folder / "reruns")
    assert done.returncode == 0, done.stdout + done.stderr
    assert run.report.judgement.decision is Decision.CELL_OK
    assert [row.model for row in run.report.judgement.rows] == ["din"]


def test_a_rerun_of_an_unknown_model_names_the_nearest(healthy: Run) -> None:
    done = harness("rerun", str(healthy.folder), "dinn/alone")
    assert done.returncode == 2
    assert "din" in done.stderr and "Traceback" not in done.stderr


def test_a_planted_failure_is_what_is_new_since_the_run_before(healthy: Run, tmp_path: Path) -> None:
    """One model becomes a genuine break, one stays as it is, and the others are not selected."""
    project = _project_with_a_break(tmp_path, "frequency_cap")
    words = ("--project", str(project), "compat", "-k", "(dlrm and not (traced or served)) or frequency_cap", *UNTIMED)
    before = ("--baseline", str(healthy.folder))
    done = harness(*words, "--scenario", "alone", *before, "--out", str(tmp_path / "runs"), all_planted=False)
    run = finished(done, tmp_path / "runs")
    assert run.code == 1, run.out
    found = run.report.baseline
    assert found is not None and found.run == healthy.report.run
    new = [(one.cell, one.was, one.now) for one in found.changes if one.change is CellTrend.NEW]
    assert new == [("frequency_cap/alone", Status.PASS, Status.FAIL)]
    assert found.other_artifacts == ("frequency_cap",)
    assert found.counts["unchanged"] == 1 and set(found.counts) == {"new", "gone", "unchanged"}
    assert "new       frequency_cap, load and calls: PASS -> FAIL" in run.out
    assert found.differences == ()


def test_the_machine_is_checked_before_and_after(healthy: Run) -> None:
    during_run = healthy.report.during_run
    assert during_run is not None and 0 < during_run.seconds <= healthy.report.wall_s * 1.5
    assert during_run.others is not None and 0 <= during_run.others < 1
    assert not any(event.name == "out of memory" for event in during_run.events)


def test_two_runs_of_one_artifact_asked_the_same_and_rounds_are_counted(healthy: Run) -> None:
    assert all(model.asked for model in healthy.report.models)
    cells = [cell for row in healthy.report.judgement.rows for cell in row.cells]
    assert {(cell.rounds > 0) for cell in cells if cell.scenario == "alone"} == {False}
    assert {(cell.rounds > 0, cell.failed_rounds) for cell in cells if cell.scenario == "concurrent"} == {(True, 0)}
    again = harness("report", str(healthy.folder), "--baseline", str(healthy.folder / "report.json"))
    assert again.returncode == 0
    assert f"0 new, 0 fixed, {len(cells)} unchanged" in again.stdout


@pytest.fixture(scope="module")
def recorded(healthy: Run, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A project whose golden record was proposed from the healthy run and accepted."""
    project = tmp_path_factory.mktemp("recorded")
    (project / "pyproject.toml").write_text((PROJECT / "pyproject.toml").read_text())
    (project / "fixtures").symlink_to(PROJECT / "fixtures")
    base = ("--project", str(project), "golden")
    assert main([*base, "propose", str(healthy.folder), "-k", "two_tower"]) == 0
    assert main([*base, "accept", "all", "--reason", "the outputs that production serves today"]) == 0
    return project


def by_records(project: Path, folder: Path, python: str, *words: str) -> Run:
    """Judge a release by the records of a project."""
    sides = (
        "--project",
        str(project),
        "compat",
        "--golden",
        "-k",
        "two_tower and not served",
        "--env",
        f"new={python}",
    )
    return finished(harness(*sides, "--out", str(folder), *words, all_planted=False), folder)


def test_golden_records_stand_in_for_the_old_release(
    healthy: Run, recorded: Path, tmp_path: Path, new_python: str
) -> None:
    run = by_records(recorded, tmp_path, new_python, "--migrate")
    assert run.code == 0, run.out
    assert run.report.old.golden
    migration = run.report.migration
    assert migration is not None
    (found,) = migration.models
    assert (found.model, found.outcome) == ("two_tower", Migrated.READY), found
    assert (run.folder / found.program).is_file()
    assert (migration.left, migration.why_not, migration.command) == ((), "", "")
    assert run.report.old.fingerprint is not None and run.report.old.fingerprint.torch.startswith("2.1.2")
    (row,) = run.report.judgement.rows
    assert (row.model, row.status) == ("two_tower", Status.PASS)
    assert {"alone", "concurrent", "while_serving"} <= {cell.scenario for cell in row.cells}
    assert all(model.latency is None for model in run.report.models)
    assert "latency was not measured" in " ".join(run.out.split())
    (trust,) = run.report.trust
    assert (trust.model, trust.run) == ("two_tower", healthy.report.run)
    assert trust.reason == "the outputs that production serves today"


@pytest.mark.slow
def test_a_golden_of_the_release_under_test_is_never_green(recorded: Path, tmp_path: Path, old_python: str) -> None:
    run = by_records(recorded, tmp_path, old_python, "--scenario", "alone")
    assert run.code != 0
    assert run.row("two_tower").status is Status.PASS
    assert "same torch on both sides" in run.report.judgement.reason


@pytest.mark.slow
def test_the_same_torch_on_both_sides_is_inconclusive_where_it_was_asked_for(old_python: str, tmp_path: Path) -> None:
    """That it is refused elsewhere is tested with stubs, in ``test_interruption.py``."""
    model = ("-k", "din and not traced", "--scenario", "alone", "--latency", "off")
    sides = ("--env", f"old={old_python}", "--env", f"new={old_python}", *model)
    asked = compat(tmp_path, *sides, "--allow-same-torch", all_planted=False)
    assert asked.code == 4
    assert asked.report.judgement.decision is Decision.INCONCLUSIVE
    assert asked.row("din").status is Status.PASS
    (tmp_path / "policy.toml").write_text('[severity]\nvalues = "info"\nlatency = "info"\n')
    again = harness("gate", str(asked.folder), "--policy", str(tmp_path / "policy.toml"))
    assert again.returncode == 4 and "the same torch on both sides" in again.stdout


def test_run_that_ends_before_timing_says_so_and_keeps_its_whole_plan(healthy: Run) -> None:
    assert healthy.report.judgement.reason.endswith("; not asked for: timing (--until correctness)")
    assert any("--resume" in note for note in healthy.report.notes)
    assert RunDir(healthy.folder).load_plan().is_timed


@pytest.mark.slow
def test_run_that_ended_before_timing_ends_there_again_where_it_is_asked_to(healthy: Run) -> None:
    again = harness("compat", "--resume", str(healthy.folder), *UNTIMED, "--out", str(healthy.folder.parent))
    assert again.returncode == 0 and "not asked for: timing" in again.stdout


@pytest.mark.slow
def test_busy_hang_of_a_call_that_was_fast_is_reported_and_one_that_ends_late_is_none(tmp_path: Path) -> None:
    sides = ("--new-profile", "cpu_fusion", "--scenario", "alone", "--latency", "off")
    run = compat(tmp_path, "--fixtures", "tests/integration/run/slowed", *sides)
    assert "hangs in call 1 of example" in run.row("never_ends").reason
    proofs = [one.evidence.proof for one in probes_of("never_ends", run) if one.evidence and one.evidence.proof]
    assert HangKind.BUSY in {proof.kind for proof in proofs}
    assert run.row("ends_late").status is Status.PASS
    slowest: dict[str, list[int]] = {"old": [], "new": []}
    for probe in probes_of("ends_late", run):
        calls = [call.duration_ns for model in probe.models for call in model.calls]
        slowest[probe.side] += [max(calls)] if calls else []
    assert max(slowest["new"]) > 100 * min(slowest["old"])


def probes_of(model: str, run: Run) -> list[ProbeResult]:
    found = cli.stored_results(run.folder).values()
    results = [msgspec.json.decode(data, type=ProbeResult) for data in found]
    return [result for result in results if [item.model for item in result.models][:1] == [model] and result.spans]


@pytest.mark.timed
def test_a_hang_in_warm_up_is_proven_named_and_mitigated_by_a_switch(tmp_path: Path) -> None:
    words = ("--fixtures", HANGS, "--new-profile", "cpu_fusion", "--deadline", "4", "-k", "busy_if_fused")
    run = compat(tmp_path, *words, all_planted=False)
    row = run.row("busy_if_fused")
    assert run.report.judgement.decision is Decision.OK_WITH_MITIGATION, run.out
    assert run.code == 1
    assert row.status is Status.FAIL
    assert "hangs in call 1 of example" in row.reason
    mitigations = {mitigation.name: mitigation for mitigation in row.mitigations if mitigation.mitigates}
    assert set(mitigations) == {"profiling off", "fuser off"}
    assert all(mitigation.price is not None for mitigation in mitigations.values())
    (cell,) = (cell for cell in row.cells if cell.status is Status.FAIL)
    assert (run.folder / cell.findings[0].evidence).read_text().count("File ") >= 1
    assert run.report.rerun[cell.cell] in run.out


def test_an_accepted_mitigation_is_applied_and_exits_with_0(tmp_path: Path) -> None:
    project = tmp_path / "project"
    project.mkdir()
    text = (PROJECT / "pyproject.toml").read_text()
    text += '\n[tool.compat.policy]\naccepted_mitigations = ["profiling off"]\n'
    (project / "pyproject.toml").write_text(text)
    done = harness(
        "--project", str(project), "compat", "--fixtures", str(PROJECT / HANGS), "--new-profile", "cpu_fusion",
        "--deadline", "4", "--latency", "off", "--scenario", "alone", "--out", str(tmp_path / "runs"), all_planted=False,
    )  # fmt: skip
    run = finished(done, tmp_path / "runs")
    assert run.code == 0, run.out
    assert run.report.judgement.decision is Decision.OK_WITH_MITIGATION
    assert run.row("busy_if_fused").status is Status.PASS


def _project_with_a_break(folder: Path, name: str) -> Path:
    """A copy of the project's models in which ``name`` is one whose answers changed between the releases."""
    project = folder / "broken"
    shutil.copytree(PROJECT / "fixtures", project / "fixtures", ignore=shutil.ignore_patterns("__pycache__"))
    (project / "pyproject.toml").write_text((PROJECT / "pyproject.toml").read_text())
    zoo = project / "fixtures" / "zoo"
    for source in zoo.glob("*.py"):
        source.write_text(source.read_text().replace(f'"{name}"', '"stood_here_before"'))
    broken = (zoo.parent / "breaks" / "numbers.py").read_text()
    (zoo / "planted.py").write_text(broken.replace('@model("enlarge_thumbnail"', f'@model("{name}"'))
    return project
