"""A command as a process: closed, full and broken streams, a folder that is gone, a full disk for its bug report."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from harness.cli import main
from harness.report.json.report import dump_report
from tests.unit.builders.reports import blocked

PROJECT = Path(__file__).resolve().parents[3]
FULL = "error: standard output cannot be written: No space left on device;"


@pytest.fixture(scope="module")
def red(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A finished run whose exit code is 1."""
    folder = tmp_path_factory.mktemp("reports") / "run"
    folder.mkdir()
    (folder / "plan.json").touch()
    (folder / "report.json").write_bytes(dump_report(blocked()))
    return folder


def typed(words: str, folder: Path) -> "subprocess.CompletedProcess[str]":
    """Return how a command of bash ends, in which ``$gate`` is the gate."""
    gate = f"env PYTHONPATH={PROJECT} {sys.executable} -m harness"
    return subprocess.run(
        ["bash", "-c", words], env={**os.environ, "gate": gate}, cwd=folder, capture_output=True, text=True, timeout=60
    )


@pytest.mark.parametrize(
    ("command", "code", "said"),
    [
        ("$gate report run --out .. <&-", 1, ""),
        pytest.param("$gate report run --out .. >&-", 1, "", marks=pytest.mark.slow),
        ("$gate report run --out .. >&- 2>&-", 1, ""),
        pytest.param("$gate report run --out .. > >(true)", 1, "", marks=pytest.mark.slow),
        ("$gate report run --out .. >/dev/full", 2, FULL),
        ("$gate --help >/dev/full", 2, FULL),
        pytest.param("$gate report run --out .. >/dev/full 2>/dev/full", 2, "", marks=pytest.mark.slow),
        pytest.param("$gate compat --old 2.six 2>&-", 2, "", marks=pytest.mark.slow),
        ("$gate compat --old 2.six 2>/dev/full", 2, ""),
        pytest.param("$gate compat --old 2.six 2> >(true)", 2, "", marks=pytest.mark.slow),
        ("rm -r $PWD; $gate report run", 2, "error: the working directory was deleted;"),
    ],
)
def test_streams_and_a_folder_that_cannot_be_used_never_change_a_verdict_into_another(
    command: str, code: int, said: str, red: Path, tmp_path: Path
) -> None:
    here = tmp_path / "here"
    here.mkdir()
    done = typed(command.replace("..", str(red.parent)), here)
    assert done.returncode == code, done.stderr
    lines = [line for line in done.stderr.splitlines() if not line.startswith("shell-init")]
    assert [line[: len(said)] for line in lines] == ([said] if said else [])


def test_what_the_machine_refuses_is_no_bug_of_the_gate(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object) -> None:
        os.close(os.open("/dev/full/below", os.O_RDONLY))

    monkeypatch.setattr("harness.apps.upgrade.execute.make_plan", refuse)
    monkeypatch.setattr("harness.machine.files.keep_bug_report", lambda _text: None)
    assert main(["--project", str(PROJECT), "compat"]) == 5
    assert "please report it with NotADirectoryError" in capsys.readouterr().err
    monkeypatch.setattr("harness.apps.upgrade.execute.make_plan", lambda *_: Path("/dev/full").write_text("x"))
    assert main(["--project", str(PROJECT), "compat"]) == 2
    assert "this machine: the disk is full" in capsys.readouterr().err


STATES = """
import signal, sys
for number in (signal.SIGCHLD, signal.SIGINT, signal.SIGHUP, signal.SIGTERM):
    signal.signal(number, signal.SIG_IGN)
signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTERM, signal.SIGCHLD})
from harness.cli.entry import program
sys.argv = ["torchscript-gate", "completion", "bash"]
assert program() == 0
numbers = (signal.SIGCHLD, signal.SIGTERM, signal.SIGINT, signal.SIGHUP)
print([signal.getsignal(number) is signal.SIG_IGN for number in numbers], signal.pthread_sigmask(signal.SIG_BLOCK, ()))
"""


def test_what_the_caller_does_with_signals_does_not_hide_how_children_end() -> None:
    done = subprocess.run([sys.executable, "-c", STATES], cwd=PROJECT, capture_output=True, text=True, timeout=60)
    kept = [False, False, True, True]  # SIGINT and SIGHUP: as & and nohup have them
    assert done.stdout.splitlines()[-1] == f"{kept} set()", done.stderr


WHILE_TEXT_IS_COMPILED = """
import os, signal, sys, time
from harness.cli import entry
def import_a_dataclass():
    try:
        exec("os.kill(os.getpid(), signal.SIGTERM); time.sleep(30)", globals())
    except KeyboardInterrupt:
        return 130
entry.main = import_a_dataclass
sys.exit(entry.program())
"""


def test_signal_that_comes_while_dataclasses_are_imported_ends_with_130_too(tmp_path: Path) -> None:
    (tmp_path / "typed.py").write_text(WHILE_TEXT_IS_COMPILED)
    where = {**os.environ, "PYTHONPATH": f"{PROJECT}:{tmp_path}"}
    done = subprocess.run([sys.executable, "-m", "typed"], env=where, capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stderr) == (130, "")
