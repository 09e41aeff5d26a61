"""Where annotations point to: paths that are relative to the root of the repository, or none."""

import json
from dataclasses import replace
from pathlib import Path

import pytest

from harness.cli import main
from harness.report.formats import RUN
from harness.apps.report.files import Finished, declared_at, stored_report, write_reports
from harness.core.report import RunReport
from harness.report.json.report import dump_report
from harness.store import codec
from harness.store.run_folder import RunDir
from tests.unit.builders.reports import blocked
from tests.unit.builders.readers import runner_reads
from tests.unit.builders.stages import declared, planned


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    """Return a repository whose project lies in a folder of it, with one file of declarations."""
    declared = tmp_path / "serving" / "models" / "zoo.py"
    declared.parent.mkdir(parents=True)
    declared.write_text("")
    (declared.parent / "loop.pt").symlink_to("loop.pt")
    (tmp_path / ".git").mkdir()
    return tmp_path


def report(where: str) -> RunReport:
    made = blocked()
    return replace(made, models=tuple(replace(model, where=where) for model in made.models))


def test_a_place_is_relative_to_the_root_of_the_repository(repository: Path, tmp_path: Path) -> None:
    found = declared_at(report("models/zoo.py:12"), tmp_path / "no-run", repository / "serving")
    assert set(found.values()) == {"serving/models/zoo.py:12"}


def test_without_a_repository_it_is_relative_to_the_project(repository: Path, tmp_path: Path) -> None:
    (repository / ".git").rmdir()
    found = declared_at(report("models/zoo.py:12"), tmp_path / "no-run", repository / "serving")
    assert set(found.values()) == {"models/zoo.py:12"}


def test_a_file_without_a_line_is_reported_without_one(repository: Path, tmp_path: Path) -> None:
    found = declared_at(report("models/zoo.py"), tmp_path / "no-run", repository / "serving")
    assert set(found.values()) == {"serving/models/zoo.py"}


@pytest.mark.parametrize(
    "where",
    ["", "models/gone.py:3", "models/loop.pt", "/etc/passwd:1", "../../../etc/passwd:1", "a\0b.py:1", "x" * 5000],
)
def test_what_no_file_of_the_repository_declares_has_no_place(repository: Path, tmp_path: Path, where: str) -> None:
    assert not declared_at(report(where), tmp_path / "no-run", repository / "serving")


def test_the_plan_of_a_run_knows_the_folder_that_a_declaration_lies_in(
    repository: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    made = report("zoo.py:12")
    run = repository / "a-run"
    run.mkdir()
    (run / "report.json").write_bytes(dump_report(made))
    models = tuple(
        replace(declared(model.model), package_root=str(repository / "serving" / "models")) for model in made.models
    )
    (run / "plan.json").write_bytes(codec.canonical(planned(models=models)))
    assert main(["--project", str(repository), "report", str(run), "--format", "github"]) == 1
    found = [item.properties for item in runner_reads(capsys.readouterr().out) if "file" in item.properties]
    assert {(item["file"], item["line"]) for item in found} == {("serving/models/zoo.py", "12")}
    assert main(["--project", str(repository), "report", str(run), "--format", "ctrf"]) == 1
    tests = json.loads(capsys.readouterr().out)["results"]["tests"]
    assert {(item["filePath"], item["line"]) for item in tests if "filePath" in item} == {("serving/models/zoo.py", 12)}


def test_a_form_that_cannot_be_written_or_made_is_a_note_and_all_others_are_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "a-run"
    (folder / "ctrf.json").mkdir(parents=True)
    (folder / "metrics.prom").write_text("of an earlier session")
    render = RUN.render
    monkeypatch.setattr(RUN, "render", lambda form, *rest: 1 / 0 if form == "openmetrics" else render(form, *rest))
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    notes = write_reports(Finished(report=blocked(), folder=folder, project=tmp_path), RunDir(folder))
    assert stored_report(folder).judgement == blocked().judgement
    assert {path.name for path in folder.iterdir()} == {*RUN.files.values()} - {"metrics.prom"}
    assert [note.partition(" was not written: ")[0] for note in notes] == ["ctrf.json", "metrics.prom"]
    assert "cannot be written" in notes[0] and "--format ctrf" in notes[0]
    (traceback,) = tmp_path.glob("harness-bug-*.txt")
    assert "ZeroDivisionError" in traceback.read_text() and str(traceback) in notes[1]
