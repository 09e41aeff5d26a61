"""Where the earlier run comes from: a name, ``last``, a folder of CI's artifacts, a file; and that it decides nothing."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from harness.cli import main
from harness.apps.upgrade import execute as running, plan as planning
from harness.apps.report.baseline import KEPT, Like, beside, beside_kept, keep_baseline, read_baseline
from harness.project import Project
from harness.core.errors import ConfigError, RunDirError, SelectionError
from harness.report.json.report import dump_report, load_report
from harness.core.report import RunReport
from harness.core.verdict import Fix
from harness.apps.report.files import with_explanations
from harness.report.words.to_upgrade import steps
from harness.verdict.causes import with_causes
from harness.store.run_folder import RunDir
from harness.machine.clock import utc_now
from tests.unit.builders.reports import beside_another, blocked, earlier, upgrade_ok

LIKE = Like("torch 2.1.2", "torch 2.6.0", is_golden=False)
PROJECT = Path(__file__).resolve().parents[4]


@pytest.fixture
def reports(tmp_path: Path) -> Path:
    """Two finished runs and an interrupted one."""
    for name, report in (("2025-01-13", earlier()), ("2025-01-14", blocked()), ("2025-01-15", None)):
        folder = tmp_path / "reports" / name
        folder.mkdir(parents=True)
        (folder / "plan.json").write_text("{}")
        if report is not None:
            (folder / "report.json").write_bytes(dump_report(report))
    return tmp_path / "reports"


@pytest.fixture
def options(reports: Path) -> Project:
    return Project(folder=PROJECT, out=str(reports))


def test_it_is_found_by_name_by_folder_and_by_file(options: Project, reports: Path, tmp_path: Path) -> None:
    folder = reports / "2025-01-13"
    for name in ("2025-01-13", str(folder), str(folder / "report.json")):
        assert dump_report(read_baseline(options, name, LIKE)) == dump_report(as_lying_in(folder))
    downloaded = tmp_path / "artifact"
    downloaded.mkdir()
    (downloaded / "report.json").write_bytes(dump_report(upgrade_ok()))
    assert read_baseline(options, str(downloaded), LIKE) == replace(upgrade_ok(), folder=str(downloaded))


def as_lying_in(folder: Path) -> RunReport:
    return replace(load_report((folder / "report.json").read_bytes(), file="report.json"), folder=str(folder))


def test_last_is_the_newest_run_that_has_a_report(options: Project, reports: Path) -> None:
    assert dump_report(read_baseline(options, "last", LIKE)) == dump_report(as_lying_in(reports / "2025-01-14"))


def test_last_is_the_newest_finished_run_of_the_same_pair_and_kind(options: Project, reports: Path) -> None:
    golden = replace(upgrade_ok().old, name="golden records", golden=True)
    cell = replace(upgrade_ok().judgement, of_cell=True)
    stopped = replace(upgrade_ok().judgement, interrupted="timing")
    other = replace(upgrade_ok().new, name="torch 2.7.0")
    others: list[dict[str, Any]] = [{"old": golden}, {"judgement": cell}, {"judgement": stopped}, {"new": other}]
    for at, changed in enumerate(others):
        folder = reports / f"2025-02-0{at + 1}"
        folder.mkdir()
        (folder / "plan.json").write_text("{}")
        (folder / "report.json").write_bytes(dump_report(replace(upgrade_ok(), run=folder.name, **changed)))
    newest = as_lying_in(reports / "2025-01-14")
    assert read_baseline(options, "last", LIKE).folder == newest.folder
    by_records = Like("", "torch 2.6.0", is_golden=True)
    assert read_baseline(options, "last", by_records).run == "2025-02-01"
    before = LIKE._replace(run=newest.run)
    assert read_baseline(options, "last", before).folder == str(reports / "2025-01-13")
    of_others = LIKE._replace(models=frozenset({"detector", "a", "b"}))
    assert read_baseline(options, "last", of_others).run == "2025-02-04"
    nothing_alike = Like("torch 1.13.1", "torch 2.6.0", is_golden=False)
    assert read_baseline(options, "last", nothing_alike).run == "2025-02-04"


def test_one_that_is_not_there_or_has_no_report_says_so(options: Project, reports: Path) -> None:
    with pytest.raises(SelectionError, match="--baseline: there is no run 'yesterday'"):
        read_baseline(options, "yesterday", LIKE)
    with pytest.raises(SelectionError, match="--baseline: main/report.json: no such file"):
        read_baseline(options, "main/report.json", LIKE)
    with pytest.raises(RunDirError, match="has no report.json: the run was interrupted"):
        read_baseline(options, "2025-01-15", LIKE)
    (reports / "2025-01-13" / "report.json").write_text("{}")
    with pytest.raises(RunDirError, match="is not a report"):
        read_baseline(options, "2025-01-13", LIKE)


def test_a_file_that_may_not_be_read_says_so(options: Project, reports: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(_: Path) -> bytes:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(Path, "read_bytes", refuse)
    with pytest.raises(ConfigError, match="Permission denied"):
        read_baseline(options, "2025-01-13", LIKE)


def test_a_report_is_shown_beside_it_with_its_own_exit_code(reports: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = ["report", "2025-01-14", "--out", str(reports)]
    assert main([*words, "--baseline", "2025-01-13"]) == 1
    told = capsys.readouterr().out
    assert "new       text_tagger, latency: PASS -> FAIL" in told
    assert main(words) == 1
    assert "baseline" not in capsys.readouterr().out


def test_a_wrong_one_is_one_line_and_exit_code_2(reports: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["report", "2025-01-14", "--out", str(reports), "--baseline", "no-such"]) == 2
    told = capsys.readouterr().err
    assert "--baseline: there is no run 'no-such'" in told
    assert "Traceback" not in told


def test_compat_looks_for_it_before_anything_is_begun(reports: Path) -> None:
    runs = sorted(reports.glob("2*"))
    with pytest.raises(SelectionError, match="--baseline"):
        running.compat(Project(folder=PROJECT, out=str(reports)), baseline="no-such")
    assert sorted(reports.glob("2*")) == runs


@pytest.mark.parametrize("words", [["--baseline", "last"], ["--baseline=last"], []])
def test_a_run_may_be_gone_on_with_beside_another_baseline(words: list[str]) -> None:
    assert running._what_was_asked(["compat", "-k", "din", *words]) == ["compat", "-k", "din"]


@pytest.mark.parametrize("resumed", [False, True])
def test_a_run_has_it_before_its_first_probe(
    reports: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *, resumed: bool
) -> None:
    kept: list[bool] = []
    monkeypatch.setattr(running, "execute", lambda _, run_dir, *__: kept.append((run_dir.path / KEPT).is_file()))
    options = Project(folder=PROJECT, overrides={"old": "2.1.2", "new": "2.6.0"}, expression="din", out=str(tmp_path))
    if resumed:
        with RunDir.create(tmp_path, "a-run", utc_now()) as run_dir:
            run_dir.save_plan(planning.make_plan(options))
        options = Project(folder=PROJECT, out=str(tmp_path), resume=run_dir.name)
    running.compat(options, baseline=str(reports / "2025-01-13"))
    assert kept == [True]


def test_it_is_kept_in_the_folder_of_the_run(tmp_path: Path) -> None:
    """The other run may be deleted before this one is gone on with."""
    now = beside_another()
    with RunDir.create(tmp_path, "a-run", utc_now()) as run_dir:
        assert beside_kept(replace(now, baseline=None), run_dir.path).baseline is None
        keep_baseline(run_dir, earlier())
        assert beside_kept(replace(now, baseline=None), run_dir.path) == now
        keep_baseline(run_dir, now)
        assert b'"baseline":null' in (run_dir.path / KEPT).read_bytes()  # no chain of all runs that ever were


def test_a_fix_that_it_has_verified_is_told_of_the_same_artifact(tmp_path: Path) -> None:
    before = replace(blocked(), run="yesterday", folder=str(tmp_path / "yesterday"))
    now = replace(blocked(), folder=str(tmp_path / "today"), explained=())
    (told,) = (item for item in before.explained if item.fixes)

    def kept_fix(report: RunReport) -> Fix | None:
        return next(cause.remedy for cause in with_causes(report).causes if told.cell in cause.cells)

    assert kept_fix(beside(now, before)) is None  # its archive is gone
    archive = tmp_path / "yesterday" / told.patched
    archive.parent.mkdir(parents=True)
    archive.write_bytes(b"patched")
    report = beside(now, before)
    assert kept_fix(report) == replace(told.fixes[0], run="yesterday")
    assert [item.by for item in report.explained] == ["baseline"]
    (cause,) = (cause for cause in report.causes if told.cell in cause.cells)
    assert cause.deploy == ((told.model, f"../yesterday/{told.patched}"),)
    assert "verified in yesterday" in cause.fix
    models = tuple(replace(model, artifact_digest=f"{model.artifact_digest}0") for model in now.models)
    assert kept_fix(beside(replace(now, models=models), before)) is None
    fingerprint = before.new.fingerprint
    assert fingerprint is not None
    elsewhere = replace(before, new=replace(before.new, fingerprint=replace(fingerprint, torch="2.5.0")))
    assert kept_fix(beside(now, elsewhere)) is None


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('{"run": 3', "--baseline: .*is not JSON"),
        ("{}", "--baseline: .*is not a report"),
        ("", "--baseline: .*was interrupted"),
    ],
)
def test_a_baseline_that_cannot_be_read_is_refused_in_one_line(tmp_path: Path, text: str, message: str) -> None:
    whole = upgrade_ok()
    interrupted = replace(whole, judgement=replace(whole.judgement, interrupted="timing"))
    (tmp_path / "baseline.json").write_bytes(text.encode() or dump_report(interrupted))
    with pytest.raises(RunDirError, match=message) as refusal:
        read_baseline(Project(folder=tmp_path), str(tmp_path / "baseline.json"), LIKE)
    assert "finished run" in refusal.value.hint and "\n" not in str(refusal.value)


def test_a_patched_archive_that_a_copy_lacks_is_nothing_to_deploy(tmp_path: Path) -> None:
    (told,) = (item for item in blocked().explained if item.fixes)

    def shown(report: RunReport) -> tuple[str, list[str]]:
        at, cause = next((at, cause) for at, cause in enumerate(report.causes) if told.cell in cause.cells)
        return steps(report, ".")[at].whole, [label for label, _ in cause.commands if label == "bisect"]

    text, commands = shown(with_explanations(blocked(), tmp_path))
    assert text.startswith("deploy its rewrite softmax_by_parts (not in this copy; the bisect command of its cause")
    assert commands == ["bisect"]
    (tmp_path / told.patched).parent.mkdir(parents=True)
    (tmp_path / told.patched).write_bytes(b"patched")
    text, commands = shown(with_explanations(blocked(), tmp_path))
    assert text.startswith(f"deploy {told.patched}, ") and not commands
