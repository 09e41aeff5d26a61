"""A run that is interrupted, killed, or cannot begin: what it says, what it leaves, and when."""

import os
import signal
import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from xml.etree import ElementTree

import pytest

from harness.core.environment import Environment
from tests.programs import cli, stub
from tests.programs.cli import Line

IMPATIENT = Path(cli.__file__).with_name("impatient.py")


@pytest.fixture
def line(tmp_path: Path, stub_environment: Environment, other_stub_environment: Environment) -> Line:
    return Line(tmp_path / "project", stub_environment.interpreter, other_stub_environment.interpreter)


STORM = (signal.SIGTERM, signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGTERM)


@pytest.mark.parametrize(
    ("numbers", "after_results"),
    [
        ((signal.SIGINT,), 0),
        pytest.param((signal.SIGTERM,), 12, marks=pytest.mark.slow),
        pytest.param(STORM, 0, marks=pytest.mark.slow),
        (STORM, 12),
    ],
)
def test_interrupted_run_ends_soon_with_130_and_leaves_no_process(
    line: Line, numbers: Sequence[signal.Signals], after_results: int
) -> None:
    process = line.start()
    line.wait_for_results(after_results, process)
    assert stub.eventually(lambda: bool(stub.processes_naming(line.reports)))
    for number in numbers:
        os.kill(process.pid, number)
        time.sleep(0.05)
    begin = time.monotonic()
    done = cli.finish(process, within_s=60.0)
    assert time.monotonic() - begin < 10
    assert done.returncode == 130
    assert done.stderr.splitlines()[-1] == "interrupted"
    assert "--resume" in done.stderr
    assert "Traceback" not in done.stderr
    assert stub.eventually(lambda: not stub.processes_naming(line.reports)), stub.processes_naming(line.reports)
    assert len(line.results()) >= after_results


def test_a_run_interrupted_after_its_calls_leaves_what_it_knows_and_is_never_green(line: Line) -> None:
    line = Line(line.project, line.old, line.new, (*line.models, "-k", "well"))
    process = line.start("--scenario", "concurrent")

    def initializes() -> bool:
        requests = [path.read_text() for path in line.reports.glob("*/probes/*/request.json")]
        return any('"threads"' in text for text in requests)

    assert stub.eventually(initializes, within_s=120.0)
    os.kill(process.pid, signal.SIGTERM)
    done = cli.finish(process, within_s=60.0)
    lines = [text for text in done.stderr.splitlines() if text.startswith("interrupted")]
    assert (done.returncode, lines) == (130, ["interrupted"])
    report = line.report()
    judgement = report["judgement"]
    assert (judgement["decision"], judgement["exit_code"]) == ("INCONCLUSIVE", 130)
    assert judgement["interrupted"] == "the initialization of server groups"
    rows = {row["model"]: (row["status"], [cell["scenario"] for cell in row["cells"]]) for row in judgement["rows"]}
    assert rows["well_a"] == ("PASS", ["alone"])
    (run,) = (path for path in line.reports.iterdir() if (path / "plan.json").is_file())
    gate = ElementTree.parse(run / "junit.xml").find("testsuite[@name='gate']/testcase")
    assert gate is not None and any(child.tag in ("failure", "error") for child in gate)
    assert judgement["vacuous"].startswith("interrupted during")
    line.run("--scenario", "concurrent", "--resume", "last")
    assert line.report()["judgement"]["interrupted"] == ""


def test_run_in_the_background_ignores_ctrl_c_and_ends_on_sigterm(line: Line) -> None:
    line.project.mkdir()
    process = cli.started(["bash", "-c", "trap '' INT TERM CHLD; exec \"$@\"", "bash", *line.command()])
    line.wait_for_results(2, process)
    os.kill(process.pid, signal.SIGINT)
    line.wait_for_results(len(line.results()) + 3, process)
    os.kill(process.pid, signal.SIGTERM)
    done = cli.finish(process, within_s=60.0)
    assert done.returncode == 130
    assert done.stderr.splitlines()[-1] == "interrupted"
    assert stub.eventually(lambda: not stub.processes_naming(line.reports)), stub.processes_naming(line.reports)


def test_run_interrupted_in_a_hang_does_not_wait_for_its_deadline(line: Line, tmp_path: Path) -> None:
    models = tmp_path / "models"
    models.mkdir()
    text = (stub.MODELS / "models.py").read_text()
    (models / "models.py").write_text(text.replace('load="segfault"', 'load="hang_busy_holding_gil"'))
    line = Line(line.project, line.old, line.new, ("--fixtures", str(models), "-k", "dies_in_new"))
    process = line.start()

    def hangs() -> bool:
        last = [path.read_text().splitlines()[-1:] for path in line.reports.glob("*/probes/*/events.jsonl")]
        return any('"begin"' in text and '"load"' in text for lines in last for text in lines)

    def hangs_on() -> bool:
        before = hangs()
        time.sleep(0.3)
        return before and hangs()

    assert stub.eventually(hangs_on, within_s=120.0)
    os.kill(process.pid, signal.SIGINT)
    assert cli.finish(process, within_s=10.0).returncode == 130
    assert stub.eventually(lambda: not stub.processes_naming(line.reports))


def test_killed_run_leaves_no_process(line: Line) -> None:
    done = cli.cut(line, signal.SIGKILL, 5)
    assert done.returncode == -signal.SIGKILL
    assert stub.eventually(lambda: not stub.processes_naming(line.reports)), stub.processes_naming(line.reports)


def test_second_run_in_the_same_folder_is_refused(line: Line) -> None:
    process = line.start()
    line.wait_for_results(1, process)
    os.kill(process.pid, signal.SIGSTOP)  # so that it holds its run however long the second one takes
    second = line.run("--resume", "last")
    os.kill(process.pid, signal.SIGCONT)
    os.kill(process.pid, signal.SIGINT)
    cli.finish(process, within_s=60.0)
    assert second.returncode == 2
    (error,) = second.stderr.splitlines()
    assert "in use by another process" in error


@pytest.mark.parametrize(
    ("on_import", "words"),
    [
        ("raise_error", "torch cannot be imported: RuntimeError: planted"),
        pytest.param("exit_at_once", "ended before torch was imported (exit code 3)", marks=pytest.mark.slow),
        pytest.param("hang_busy_holding_gil", "importing torch took more than 2 s", marks=pytest.mark.slow),
    ],
)
def test_torch_that_cannot_be_imported_ends_the_run_with_3_and_one_line(
    line: Line, tmp_path: Path, on_import: str, words: str
) -> None:
    broken = stub.make_environment(tmp_path / "broken", version="2.6.0", on_import=on_import)
    line = Line(line.project, line.old, broken.interpreter, program=(str(IMPATIENT),))
    done = line.run()
    assert done.returncode == 3
    (error,) = [text for text in done.stderr.splitlines() if not text.startswith("[")]
    assert error.startswith("error: ")
    assert words in error
    assert stub.eventually(lambda: not stub.processes_naming(line.reports))


def test_the_same_torch_on_both_sides_is_refused(line: Line) -> None:
    done = replace(line, new=line.old).run()
    assert done.returncode == 2
    assert "--allow-same-torch" in done.stderr.splitlines()[-1], done.stderr


def test_torch_that_prints_when_it_is_imported_is_no_obstacle(line: Line, tmp_path: Path) -> None:
    noisy = stub.make_environment(tmp_path / "noisy", version="2.6.0", on_import="print_garbage")
    line = Line(line.project, line.old, noisy.interpreter, (*line.models, "-k", "well_a"))
    done = line.run()
    assert "well_a" in done.stdout
    assert [row["status"] for row in line.report()["judgement"]["rows"]] == ["PASS"]


@pytest.mark.integration
@pytest.mark.slow
def test_interrupted_run_with_real_torch_leaves_no_process(tmp_path: Path, old_python: str, new_python: str) -> None:
    models = ("--fixtures", str(cli.ROOT / "fixtures" / "zoo"), "-k", "dlrm and not served", "--scenario", "alone")
    line = Line(tmp_path / "project", old_python, new_python, models)
    begin_count = 3
    process = line.start()
    line.wait_for_results(begin_count, process)
    os.kill(process.pid, signal.SIGINT)
    begin = time.monotonic()
    done = cli.finish(process, within_s=60.0)
    assert time.monotonic() - begin < 10
    assert done.returncode == 130
    assert len(line.results()) >= begin_count
    assert stub.eventually(lambda: not stub.processes_naming(line.reports)), stub.processes_naming(line.reports)
