"""A run that was cut goes on where it was cut, and concludes what an uninterrupted run concludes."""

import random
import signal
from collections.abc import Mapping
from pathlib import Path

import pytest

from harness.cli import main
from harness.core.environment import Environment
from harness.store import probe_files
from tests.programs import cli, stub
from tests.programs.cli import Line

PROBES = 40
"""Fewer than a whole run stores, and not many fewer."""


@pytest.fixture
def line(tmp_path: Path, stub_environment: Environment, other_stub_environment: Environment) -> Line:
    return Line(tmp_path / "project", stub_environment.interpreter, other_stub_environment.interpreter)


@pytest.fixture(scope="module")
def uninterrupted(
    tmp_path_factory: pytest.TempPathFactory, stub_environment: Environment, other_stub_environment: Environment
) -> Line:
    """A whole run, to compare with."""
    project = tmp_path_factory.mktemp("uninterrupted") / "project"
    line = Line(project, stub_environment.interpreter, other_stub_environment.interpreter)
    line.run()
    return line


def test_uninterrupted_run_sees_what_the_models_do(uninterrupted: Line) -> None:
    """Else the comparisons below would compare nothing."""
    rows = {row["model"]: row["status"] for row in uninterrupted.report()["judgement"]["rows"]}
    assert rows == {
        "well_a": "PASS",
        "well_b": "PASS",
        "well_c": "PASS",
        "well_d": "PASS",
        "other_answer_in_new": "FAIL",
        "dies_in_new": "FAIL",
    }
    assert len(uninterrupted.results()) > PROBES


@pytest.mark.parametrize("number", [signal.SIGINT, pytest.param(signal.SIGTERM, marks=pytest.mark.slow)])
def test_resumed_run_repeats_nothing_and_concludes_the_same(
    line: Line, uninterrupted: Line, number: signal.Signals
) -> None:
    cli.cut(line, number, PROBES // 2)
    before = line.results()
    assert len(before) >= PROBES // 2
    done = line.run("--resume", "last")
    assert done.returncode == uninterrupted.report()["judgement"]["exit_code"]
    assert_concluded(line, before, uninterrupted)


@pytest.mark.slow
def test_run_killed_at_random_moments_repeats_nothing_and_concludes_the_same(line: Line, uninterrupted: Line) -> None:
    draw = random.Random(20261121)
    moments = sorted(draw.randrange(PROBES) for _ in range(2))  # nox -s bench -- faults draws hundreds
    before: dict[Path, bytes] = {}
    for index, moment in enumerate(moments):
        more = () if index == 0 else ("--resume", "last")
        assert cli.cut(line, signal.SIGKILL, moment, *more).returncode == -signal.SIGKILL
        before = line.results() | before  # as they were first stored
        assert all(data.endswith(b"}") for data in before.values())  # never torn
    line.run("--resume", "last")
    assert_concluded(line, before, uninterrupted)
    assert stub.eventually(lambda: not stub.processes_naming(line.reports))


def assert_concluded(line: Line, before: Mapping[Path, bytes], uninterrupted: Line) -> None:
    """Hold a run that was cut, with these results, to one that was not."""
    after = line.results()
    assert {path: after[path] for path in before} == before
    assert len(after) == len(uninterrupted.results())
    assert line.judgement() == uninterrupted.judgement()


def test_finished_run_resumes_without_a_single_probe(uninterrupted: Line) -> None:
    before, judgement = uninterrupted.results(), uninterrupted.judgement()
    uninterrupted.run("--resume", "last")
    assert uninterrupted.results() == before
    assert uninterrupted.judgement() == judgement


def test_damaged_result_is_named_in_one_line(line: Line) -> None:
    cli.cut(line, signal.SIGINT, 10)
    damaged = min(line.reports.glob(f"*/probes/*/{probe_files.PACKED}"))
    damaged.write_bytes(damaged.read_bytes()[:50])
    done = line.run("--resume", "last")
    assert done.returncode == 2
    (error,) = [text for text in done.stderr.splitlines() if not text.startswith("[")]
    assert str(damaged) in error
    assert stub.eventually(lambda: not stub.processes_naming(line.reports))


def refused(line: Line, capsys: pytest.CaptureFixture[str]) -> str:
    """Return the one line in which a run is not gone on with; in this process, for nothing is started."""
    line.project.mkdir(exist_ok=True)
    assert main([*line.words("--resume", "last")]) == 2
    (error,) = capsys.readouterr().err.splitlines()
    return error


@pytest.mark.parametrize("content", [b"", b"{", b"[]", b"null"])
def test_damaged_plan_is_named_in_one_line(line: Line, content: bytes, capsys: pytest.CaptureFixture[str]) -> None:
    folder = line.reports / "run"
    folder.mkdir(parents=True)
    (folder / "plan.json").write_bytes(content)
    assert str(folder / "plan.json") in refused(line, capsys)


def test_resuming_where_nothing_was_run_is_a_mistake_of_the_user(
    line: Line, capsys: pytest.CaptureFixture[str]
) -> None:
    assert "no run 'last'" in refused(line, capsys)


@pytest.mark.integration
@pytest.mark.slow
def test_real_run_killed_and_resumed_repeats_nothing(tmp_path: Path, old_python: str, new_python: str) -> None:
    models = ("--fixtures", str(cli.ROOT / "fixtures" / "zoo"), "-k", "dlrm and not served", "--scenario", "alone")
    line = Line(tmp_path / "project", old_python, new_python, models)
    cli.cut(line, signal.SIGKILL, 8)
    before = line.results()
    done = line.run("--resume", "last")
    after = line.results()
    assert "dlrm" in done.stdout
    assert {path: after[path] for path in before} == before
    assert len(after) > len(before)
    assert {row["status"] for row in line.report()["judgement"]["rows"]} == {"PASS"}
