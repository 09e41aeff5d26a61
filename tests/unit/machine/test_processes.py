"""Programs that are started, asked and ended: what they answer, and that nothing of them outlives who asked for them."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from harness.machine import processes
from tests.programs import stub

ROOT = Path(__file__).resolve().parents[3]
NOTHING = subprocess.DEVNULL


def sleeper(code: str = "import time; time.sleep(10000)") -> "subprocess.Popen[bytes]":
    return subprocess.Popen(
        [sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE, start_new_session=True
    )


FORKING = "import os, time\npid = os.fork()\nif pid: os.write(1, b'%d\\n' % pid)\ntime.sleep(10000)"


def test_reaping_ends_the_whole_group_and_closes_both_pipes() -> None:
    started = sleeper(FORKING)
    assert started.stdout is not None
    assert started.stdin is not None
    grandchild = int(started.stdout.readline())
    assert processes.reap(started)
    assert started.returncode == -signal.SIGKILL
    assert stub.eventually(lambda: not stub.is_alive(grandchild))
    assert started.stdin.closed
    assert started.stdout.closed


def test_reaping_twice_kills_nobody_else(monkeypatch: pytest.MonkeyPatch) -> None:
    started = sleeper()
    assert processes.reap(started)
    monkeypatch.setattr(processes, "kill_group", lambda pid: pytest.fail(f"killed group {pid} again"))
    assert processes.reap(started)


def test_process_that_cannot_be_reaped_is_admitted(monkeypatch: pytest.MonkeyPatch) -> None:
    started = sleeper()
    monkeypatch.setattr(processes, "REAP_DEADLINE_S", 0.2)
    with monkeypatch.context() as patch:
        patch.setattr(processes, "kill_group", lambda pid: None)
        assert not processes.reap(started)
    assert processes.reap(started)


def test_killing_a_group_that_is_gone_is_silent() -> None:
    started = sleeper()
    processes.reap(started)
    processes.kill_group(started.pid)


def test_a_program_reads_and_answers_and_ends_as_it_would_alone(tmp_path: Path) -> None:
    done = processes.run(("sh", "-c", "cat; echo x >&2; pwd; exit 3"), text="y ", limit_s=60.0, cwd=tmp_path)
    assert (done.returncode, done.stdout, done.stderr) == (3, f"y {tmp_path}\n", "x\n")


@pytest.mark.parametrize("number", [signal.SIGSEGV, signal.SIGKILL, signal.SIGPIPE, signal.SIGTERM])
def test_a_program_that_a_signal_ends_is_said_to_have_ended_by_it(number: signal.Signals) -> None:
    assert processes.run(("sh", "-c", f"kill -{number.value} $$"), limit_s=60.0).returncode == -number


def test_what_cannot_be_executed_is_an_error_at_once(tmp_path: Path) -> None:
    no_program = tmp_path / "text"
    no_program.write_text("no program\n")
    before = stub.open_descriptors()
    for command, error in ((tmp_path / "none", FileNotFoundError), (no_program, PermissionError)):
        with pytest.raises(error, match=command.name):
            processes.run((str(command),), limit_s=60.0)
    no_program.chmod(0o755)
    with pytest.raises(OSError, match="format"):
        processes.start((str(no_program),), stdout=NOTHING, stderr=NOTHING)
    assert stub.open_descriptors() == before


def test_a_program_that_does_not_answer_in_time_is_ended_with_what_it_has_started(tmp_path: Path) -> None:
    script = f"sleep 10000 & echo $! > {tmp_path}/pid; wait"
    with pytest.raises(subprocess.TimeoutExpired):
        processes.run(("sh", "-c", script), limit_s=1.0)
    assert stub.eventually(lambda: not stub.is_alive(int((tmp_path / "pid").read_text())))


ASKERS = {
    "run": "from harness.machine import processes; processes.run(('sh', program), limit_s=1000.0)",
    "an installer": """
import threading, time
from harness.environments.installer import run_installer
from harness.machine.pool import Patience
patience = Patience(deadline=time.monotonic() + 1000, tick=lambda: None, cancelled=threading.Event())
run_installer(("sh", program), folder / "log", patience, lock=1)
""",
    "a snippet": """
from harness.search.reproduce.files import run_snippet
from harness.core.probe import WorkerLimits
run_snippet(reproduce, sys.executable, limits=limits, wait_s=1000.0)
""",
    "a reproducer": """
from harness.search.reproduce.files import run_reproducer
run_reproducer(folder, sys.executable, limits=limits, limit_s=1000.0)
""",
}
ASKING = """
import sys
from pathlib import Path
from harness.core.probe import WorkerLimits
limits = WorkerLimits(memory_bytes=None, cpu_s=None, file_bytes=None, network=True)
folder = Path(sys.argv[1])
program, reproduce = str(folder / "program.sh"), folder / "reproduce.py"
"""


@pytest.mark.parametrize("asker", ASKERS)
def test_nothing_outlives_a_killed_controller(asker: str, tmp_path: Path) -> None:
    """Neither the program nor what it has started: a compiler and an installer start programs of their own."""
    script = tmp_path / "program.sh"
    script.write_text(f"sleep 10000 & echo $! $$ > {tmp_path}/draft; mv {tmp_path}/draft {tmp_path}/pids; wait\n")
    (tmp_path / "reproduce.py").write_text(f"import subprocess\nsubprocess.run(['sh', {str(script)!r}])\n")
    command = [sys.executable, "-c", ASKING + ASKERS[asker], str(tmp_path)]
    with subprocess.Popen(command, cwd=ROOT) as controller:
        assert stub.eventually((tmp_path / "pids").exists, within_s=60.0)
        pids = [int(text) for text in (tmp_path / "pids").read_text().split()]
        assert all(map(stub.is_alive, pids))
        os.kill(controller.pid, signal.SIGKILL)
    assert stub.eventually(lambda: not any(map(stub.is_alive, pids)), within_s=10.0)
    assert stub.eventually(lambda: not stub.processes_naming(tmp_path)), stub.processes_naming(tmp_path)
