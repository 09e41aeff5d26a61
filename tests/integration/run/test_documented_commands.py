"""Every command of the pages, executed in a scratch project: the quick ones here, the others in ``nox -s full``."""

import shutil
from pathlib import Path

import pytest

from harness.cli import main
from tests.docs.running import Speed, Way, ways
from tests.integration.run.documented import Scratch, make_scratch

pytestmark = pytest.mark.integration

PLANNED = {way.words: way for way in ways() if way.speed is not Speed.LEFT_OUT}.values()
QUICK = [way for way in PLANNED if way.speed is Speed.QUICK]
SLOW = [way for way in PLANNED if way.speed is Speed.SLOW]


@pytest.fixture(scope="module")
def scratch(tmp_path_factory: pytest.TempPathFactory, old_python: str, new_python: str) -> Scratch:
    return make_scratch(tmp_path_factory.mktemp("documented") / "project", old_python, new_python)


def answered(way: Way, code: int, out: str, err: str) -> None:
    """A command answers with an exit code that its page expects, and without a traceback."""
    said = f"exit code {code}\n{out[-3000:]}\n{err[-3000:]}"
    assert code in way.expected, said
    assert "Traceback" not in err, said
    assert out or code == 2, said


def discard(own: Scratch, scratch: Scratch) -> None:
    """Remove a copy."""
    if own.folder != scratch.folder:
        shutil.rmtree(own.folder)


@pytest.mark.parametrize("way", QUICK, ids=lambda way: way.command)
def test_command_answers(
    way: Way, scratch: Scratch, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """In this process: what a start of Python costs, forty commands need not pay."""
    own = scratch.copy(tmp_path / "project", way.words)
    if way.program == "harness":
        code, out, err = here(own, way, monkeypatch, capsys)
    else:
        code, out, err = beside(own, way)
    discard(own, scratch)
    answered(way, code, out, err)


@pytest.mark.slow
@pytest.mark.parametrize("way", SLOW, ids=lambda way: way.command)
def test_long_command_answers(way: Way, scratch: Scratch, tmp_path: Path) -> None:
    own = scratch.copy(tmp_path / "project", way.words)
    code, out, err = beside(own, way)
    discard(own, scratch)
    answered(way, code, out, err)


def here(
    own: Scratch, way: Way, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> tuple[int, str, str]:
    """Return how a command ends in this process, and what it says."""
    monkeypatch.chdir(own.folder)
    for name, value in own.environment().items():
        monkeypatch.setenv(name, value)
    try:
        code = main(own.words(way.words))
    except SystemExit as left:  # of argparse: help and usage
        code = int(left.code or 0)
    return code, *capsys.readouterr()


def beside(own: Scratch, way: Way) -> tuple[int, str, str]:
    """Return how a command ends in a process of its own, and what it says."""
    done = own.run(*own.words(way.words), program=way.program)
    return done.returncode, done.stdout, done.stderr
