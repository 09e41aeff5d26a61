"""Healthy models that are slow or odd raise no alarm, beside four programs that compute without end."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from harness.core.outcome import Status
from harness.artifacts.fixture_folders import read_fixtures
from tests.integration.gate import PROJECT, compat
from tests.programs.watching import hogs

pytestmark = [pytest.mark.integration, pytest.mark.slow]

ODD = "tests/integration/checks/startup/odd"
MODELS, HOGS = 30, 4
# Alone on two cores that is a few minutes of work; the machine is overloaded on purpose.
LIMIT_S = 5400.0


@pytest.fixture
def busy_programs() -> Iterator[None]:
    with hogs(HOGS) as running:
        yield
        assert [hog.poll() for hog in running] == [None] * HOGS


@pytest.mark.usefixtures("busy_programs")
@pytest.mark.parametrize("release", ["2.6.0", "2.15.0"])
def test_slow_and_odd_models_raise_no_alarm_beside_busy_programs(tmp_path: Path, release: str) -> None:
    assert len(read_fixtures(PROJECT / ODD)) == MODELS
    sides = ("--old", "2.1.2", "--new", release)
    run = compat(tmp_path, "--fixtures", ODD, *sides, "--latency", "off", timeout_s=LIMIT_S)
    cells = {cell.cell: cell for row in run.report.judgement.rows for cell in row.cells}
    assert {cell.model for cell in cells.values()} == {model.name for model in read_fixtures(PROJECT / ODD)}
    assert {cell.scenario for cell in cells.values()} >= {"alone", "concurrent", "while_serving"}
    assert {name: cell.kinds for name, cell in cells.items() if cell.status is not Status.PASS} == {}, run.out
    assert run.code == 0, run.out
