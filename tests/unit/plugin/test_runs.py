"""What ``--torchscript-compat`` names, and what is said where it names nothing."""

from pathlib import Path

import pytest

from harness.project import Project
from harness.plugin import runs
from harness.report.json.report import dump_report
from tests.unit.builders import reports as builders


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def stored(folder: Path, *, plan: bool = True, report: bool = True) -> Path:
    folder.mkdir(parents=True)
    if plan:
        (folder / "plan.json").write_text("{}")
    if report:
        (folder / "report.json").write_bytes(dump_report(builders.upgrade_ok()))
    return folder


def found(what: str, project: Path, *words: str) -> Path:
    return runs.folder_of(what, words, project=project, make=None)


def refused(what: str, project: Path, *words: str) -> str:
    with pytest.raises(pytest.UsageError) as caught:
        found(what, project, *words)
    return str(caught.value)


def test_a_run_is_named_by_name_by_folder_by_its_report_and_as_the_last(project: Path) -> None:
    folder = stored(project / "reports" / "2026-01-01-a")
    assert found("2026-01-01-a", project) == folder
    assert found(str(folder), project) == folder
    assert found("reports/2026-01-01-a/report.json", project) == folder
    assert found("last", project) == folder


def test_runs_that_are_kept_elsewhere_are_found_there(project: Path) -> None:
    folder = stored(project / "kept" / "a")
    assert found("a", project, "--out", "kept") == folder


def test_a_report_that_was_downloaded_alone_is_a_run(project: Path) -> None:
    folder = stored(project / "artifact", plan=False)
    assert found("artifact", project) == folder


def test_an_interrupted_run_says_how_to_finish_it(project: Path) -> None:
    stored(project / "reports" / "a", report=False)
    assert f"compat --resume {project / 'reports' / 'a'}" in refused("a", project)


def test_a_damaged_report_is_named(project: Path) -> None:
    folder = stored(project / "reports" / "a")
    (folder / "report.json").write_text("{")
    assert "report.json" in refused("a", project)


def test_a_name_that_is_nothing_says_what_may_be_named(project: Path) -> None:
    said = refused("nonsense", project)
    assert "nonsense" in said and "a folder of them or a models.toml" in said


def test_no_name_at_all_is_refused(project: Path) -> None:
    (project / "report.json").write_bytes(dump_report(builders.upgrade_ok()))  # that of the working directory
    assert "it is empty, as where a variable is not set; name a run" in refused("", project)


def test_no_last_run_is_said(project: Path) -> None:
    assert "there is no run 'last'" in refused("last", project)


def test_artifacts_are_not_run_where_nothing_may_run(project: Path) -> None:
    (project / "models").mkdir()
    assert "leave out --collect-only" in refused("models", project)


def test_artifacts_are_run_with_the_words_that_were_given(project: Path) -> None:
    (project / "models").mkdir()
    asked: list[Project] = []

    def make(options: Project) -> Path:
        asked.append(options)
        return stored(project / "made")

    folder = runs.folder_of("models", ["--old", "2.1.2"], project=project, make=make)
    assert folder == project / "made"
    assert [(one.artifacts, one.overrides["old"], one.folder) for one in asked] == [(["models"], "2.1.2", project)]


def test_an_option_that_compat_does_not_have_is_named(project: Path) -> None:
    said = refused("last", project, "--latncy", "off")
    assert "--latncy" in said and "torchscript-gate compat -h" in said


def test_an_open_quote_is_named() -> None:
    with pytest.raises(pytest.UsageError, match="--torchscript-compat-options: No closing quotation"):
        runs.split("--old '2.1")


def test_a_bug_of_the_gate_is_kept_for_a_report_and_shown_as_one(
    project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(runs, "options_from", lambda words, project: 1 / 0)
    monkeypatch.setenv("TMPDIR", str(project))
    monkeypatch.setattr("tempfile.tempdir", None)
    said = refused("last", project)
    (path,) = project.glob("harness-bug-*.txt")
    assert said.startswith("this is a bug of the gate") and said.endswith(str(path))
    assert "ZeroDivisionError" in path.read_text()
