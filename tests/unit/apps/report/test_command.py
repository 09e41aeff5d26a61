"""``report`` renders the page and the trace of a finished run again."""

import contextlib
import json
from pathlib import Path

import pytest

from harness.cli import main
from harness.core.report import RunReport
from harness.report.ci.annotations import render_annotations
from harness.report.ci.ctrf import render_ctrf
from harness.report.ci.junit import render_junit
from harness.report.ci.openmetrics import render_openmetrics
from harness.report.json.report import dump_report
from tests.unit.builders.rendered import render_markdown
from tests.unit.builders.rendered import render_html
from harness.apps.report.files import stored_report
from harness.project import own_command
from harness.store.run_folder import RunDir
from tests.unit.builders.reports import blocked


@pytest.fixture
def run(tmp_path: Path) -> Path:
    folder = tmp_path / "a-run"
    folder.mkdir()
    (folder / "plan.json").write_text("{}")
    (folder / "report.json").write_bytes(dump_report(blocked()))
    return folder


def told(run: Path) -> RunReport:
    """Return the report with its commands as they run from here."""
    return stored_report(run, program=own_command(Path.cwd()))


def test_the_page_is_printed_with_the_exit_code_of_the_run(run: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["report", str(run), "--format", "html"]) == 1
    assert capsys.readouterr().out == render_html(told(run), directory=str(run))


def test_the_trace_is_printed(run: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["report", str(run), "--format", "trace"]) == 1
    assert json.loads(capsys.readouterr().out)["otherData"]["run"] == "a-run"


@pytest.mark.parametrize("name", ["ctrf", "github", "junit", "markdown", "openmetrics"])
def test_the_formats_for_ci_are_printed(run: Path, capsys: pytest.CaptureFixture[str], name: str) -> None:
    report, folder = told(run), str(run)
    texts = {
        "ctrf": render_ctrf(report, directory=folder, places={}),
        "github": render_annotations(report, directory=folder, places={}),
        "junit": render_junit(report, directory=folder),
        "markdown": render_markdown(report, directory=folder),
        "openmetrics": render_openmetrics(report),
    }
    assert main(["report", folder, "--format", name]) == 1
    assert capsys.readouterr().out == texts[name]


def test_an_older_run_does_not_stand_for_one_without_a_report(run: Path, capsys: pytest.CaptureFixture[str]) -> None:
    ask = ["report", "last", "--out", str(run.parent), "--format", "ctrf"]
    assert main(ask) == 1
    assert capsys.readouterr().err == ""
    later = run.parent / f"{run.name}-later"
    later.mkdir()
    (later / "plan.json").write_text("{}")
    assert main(ask) == 2
    told = capsys.readouterr()
    assert f"the last run, {later}, has no report.json: it ended before that; finish it: " in told.err
    assert f" compat --resume {later}; or name the run to show: " in told.err and f" report {run}\n" in told.err
    assert told.out == ""
    with RunDir.open(run.parent, later.name):
        assert main(ask) == 1
    assert f"{later.name}, is still running; this" in capsys.readouterr().err


@pytest.mark.parametrize("wrong", [["--policy", "no-such.toml"], ["--no-such-option"]])
def test_the_last_run_does_not_stand_for_a_command_that_came_to_none(
    run: Path, capsys: pytest.CaptureFixture[str], wrong: list[str]
) -> None:
    ask = ["report", "last", "--out", str(run.parent), "--format", "ctrf"]
    with contextlib.suppress(SystemExit):
        assert main(["compat", "--out", str(run.parent), *wrong]) == 2
    capsys.readouterr()
    for words in (ask, ["gate", *ask[1:]]):
        assert main(words) == 2
        told = capsys.readouterr()
        assert f"since the last run, {run.name}, `compat --out {run.parent} {' '.join(wrong)}` ended" in told.err
        assert "with exit code 2 at " in told.err and told.out == ""
    assert main(["report", str(run), *ask[2:]]) == 1  # it was named
    (run / "report.json").write_bytes((run / "report.json").read_bytes())
    assert main(ask) == 1  # a run that is resumed writes it again


def test_a_comment_leads_to_the_page_whose_address_is_given(run: Path, capsys: pytest.CaptureFixture[str]) -> None:
    address = "https://ci.example/7/report.html"
    assert main(["report", str(run), "--format", "comment", "--page-url", address]) == 1
    assert f"]({address}#cause-1)" in capsys.readouterr().out
    for words, wrong in (
        (["comment", "--page-url", "file:///report.html"], "file:///report.html: expected an http or https address"),
        (["comment", "--page-url", f"{address}#cause-1"], f"{address}#cause-1: expected an http or https address"),
        (["html", "--page-url", address], "only a comment links to the page, and this is --format html"),
    ):
        assert main(["report", str(run), "--format", *words]) == 2
        error = capsys.readouterr().err
        assert "error: --page-url" in error and wrong in error
