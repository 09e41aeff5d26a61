"""What tests of real torch share with ``--keep-zygotes``: it has to make no difference to a run."""

import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from harness.core.environment import Environment
from harness.core.outcome import Outcome
from harness.core.errors import InternalError
from harness.checks.hang import watchdog
from harness.probing.runner import ZygoteRunner
from tests.programs import stub
from tests.programs.kept_zygotes import kept


@pytest.fixture
def zygotes(tmp_path: Path, stub_environment: Environment) -> Iterator[Path]:
    """Where the kept zygotes of stubs lie; none is left behind."""
    folder = tmp_path / "zygotes"
    with kept(folder, Path(stub_environment.interpreter).parents[2]):
        yield folder
    assert stub.eventually(lambda: not stub.processes_naming(folder)), stub.processes_naming(folder)


def probed(environment: Environment, folder: Path, artifacts: Path, name: str, **program: object) -> set[Outcome]:
    """Return what one run of its own sees of a model."""
    runner = ZygoteRunner({"old": environment}, folder, watchdog)
    result = runner(stub.run_request([stub.write_artifact(artifacts, name, **program)], stub.PATIENT))
    runner.close()
    assert runner.unreaped == []
    return {model.outcome for model in result.models}


def test_the_next_run_takes_the_zygote_that_the_last_has_given_back(
    zygotes: Path, tmp_path: Path, artifacts: Path, stub_environment: Environment
) -> None:
    assert probed(stub_environment, tmp_path / "first", artifacts, "well") == {Outcome.COMPLETED}
    (pid,) = stub.processes_naming(zygotes)
    assert probed(stub_environment, tmp_path / "second", artifacts, "ends", calls={"1": "segfault"}) == {Outcome.CRASH}
    assert probed(stub_environment, tmp_path / "third", artifacts, "well_again") == {Outcome.COMPLETED}
    assert list(stub.processes_naming(zygotes)) == [pid]


def test_one_that_has_a_child_when_its_run_is_closed_ends_as_every_other(
    zygotes: Path, tmp_path: Path, artifacts: Path, stub_environment: Environment
) -> None:
    runner = ZygoteRunner({"old": stub_environment}, tmp_path / "cut", watchdog)
    hangs = stub.write_artifact(artifacts, "hangs", calls={"1": "hang_asleep"})

    def ask() -> None:
        with pytest.raises(InternalError, match="closed"):
            runner(stub.run_request([hangs], stub.PATIENT))

    asking = threading.Thread(target=ask)
    asking.start()
    assert stub.eventually(lambda: len(stub.processes_naming(zygotes)) == 2)
    runner.close()
    asking.join()
    assert stub.eventually(lambda: not stub.processes_naming(zygotes))
    assert probed(stub_environment, tmp_path / "next", artifacts, "well") == {Outcome.COMPLETED}


def test_a_run_that_does_not_close_its_zygotes_is_found(
    tmp_path: Path, artifacts: Path, stub_environment: Environment
) -> None:
    with (
        pytest.raises(AssertionError, match="not closed"),
        kept(tmp_path / "zygotes", Path(stub_environment.interpreter).parents[2]),
    ):
        runner = ZygoteRunner({"old": stub_environment}, tmp_path / "forgotten", watchdog)
        runner(stub.run_request([stub.write_artifact(artifacts, "well")], stub.PATIENT))
    assert stub.eventually(lambda: not stub.processes_naming(tmp_path / "zygotes"))


def test_other_variables_need_another_zygote(
    zygotes: Path, tmp_path: Path, artifacts: Path, stub_environment: Environment, monkeypatch: pytest.MonkeyPatch
) -> None:
    probed(stub_environment, tmp_path / "first", artifacts, "well")
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    probed(stub_environment, tmp_path / "second", artifacts, "well_again")
    assert len(stub.processes_naming(zygotes)) == 2
