"""Starting a zygote: torch that cannot be imported, and what is said about it."""

import os
import signal
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from harness.core.environment import Environment
from harness.core.errors import EnvironmentUnavailable, ExitCode
from harness.probing import processes, zygote
from harness.machine.processes import reap
from harness.probing.zygote import GONE, Child, Zygote
from harness.store import codec
from harness.worker import wire
from tests.programs import stub


def start(folder: Path, interpreter: str, **env: str) -> Zygote:
    folder.mkdir()
    codec.write_atomically(folder / wire.REQUEST, codec.canonical({"protocol": wire.PROTOCOL, "verb": "serve"}))
    return Zygote(interpreter, folder, env)


def why_not(tmp_path: Path, on_import: str, deadline_s: float = 60.0) -> EnvironmentUnavailable:
    """Return the error for an environment whose torch does ``on_import``; nothing of it is left."""
    environment = stub.make_environment(tmp_path / "env", on_import=on_import)
    zygote = start(tmp_path / "zygote", environment.interpreter)
    try:
        with pytest.raises(EnvironmentUnavailable) as raised:
            zygote.wait_ready(deadline_s)
    finally:
        assert zygote.close()
    assert stub.eventually(lambda: not stub.processes_naming(tmp_path / "zygote"))
    assert stub.zombies() == []
    return raised.value


@pytest.mark.parametrize(
    ("on_import", "words"),
    [
        ("raise_error", "torch cannot be imported: RuntimeError: planted"),
        ("raise_without_message", "torch cannot be imported: ImportError"),
        ("raise_a_warning", "UserWarning: Failed to initialize NumPy (PYTHONWARNINGS makes this warning an error"),
        ("exit_politely", "torch cannot be imported: SystemExit: 3"),
        ("exit_at_once", "ended before torch was imported (exit code 3): no output"),
        ("segfault", "ended before torch was imported (signal SIGSEGV): no output"),
    ],
)
def test_failing_import_is_said_in_one_line(tmp_path: Path, on_import: str, words: str) -> None:
    error = why_not(tmp_path, on_import)
    assert words in str(error)
    assert "\n" not in str(error)
    assert str(tmp_path) in error.hint
    assert error.exit_code == ExitCode.ENVIRONMENT


@pytest.mark.parametrize("on_import", ["hang_asleep", "hang_busy_holding_gil", "leave_grandchild_and_hang"])
def test_hanging_import_is_ended_at_its_deadline(tmp_path: Path, on_import: str) -> None:
    error = why_not(tmp_path, on_import, deadline_s=1.0)
    assert "importing torch took more than 1 s" in str(error)
    assert "\n" not in str(error)


@pytest.mark.parametrize("on_import", ["print_garbage", "flood_stderr", "leave_grandchild"])
def test_noisy_import_is_no_obstacle(tmp_path: Path, on_import: str) -> None:
    environment = stub.make_environment(tmp_path / "env", on_import=on_import)
    zygote = start(tmp_path / "zygote", environment.interpreter)
    zygote.wait_ready(60.0)
    assert zygote.alive
    assert zygote.close()
    assert stub.eventually(lambda: not stub.processes_naming(tmp_path / "zygote"))


def test_process_left_by_the_import_in_another_session_ends_with_the_zygote(tmp_path: Path) -> None:
    """A fork without exec inherits every descriptor: while it lives, the pipe for answers never reaches its end."""
    environment = stub.make_environment(tmp_path / "env", on_import="leave_grandchild_in_own_session")
    zygote = start(tmp_path / "zygote", environment.interpreter)

    def own_sessions() -> int:
        return sum(os.getsid(pid) == pid for pid in stub.processes_naming(tmp_path / "zygote"))

    try:
        zygote.wait_ready(60.0)
        assert stub.eventually(lambda: own_sessions() == 2)
        assert zygote.close()
        assert stub.processes_naming(tmp_path / "zygote") == {}
    finally:
        for pid in stub.processes_naming(tmp_path / "zygote"):
            os.kill(pid, signal.SIGKILL)


def test_interpreter_that_cannot_be_executed_is_said_in_one_line(tmp_path: Path) -> None:
    with pytest.raises(EnvironmentUnavailable, match="cannot be started: No such file"):
        start(tmp_path / "zygote", str(tmp_path / "nothing"))


def test_interpreter_that_is_no_python_is_said_in_one_line(tmp_path: Path) -> None:
    fake = tmp_path / "python"
    fake.write_text("#!/bin/sh\necho what a pity >&2\nexit 9\n")
    fake.chmod(0o755)
    zygote = start(tmp_path / "zygote", str(fake))
    with pytest.raises(EnvironmentUnavailable, match=r"\(exit code 9\): what a pity"):
        zygote.wait_ready(60.0)


def test_forking_from_a_dead_or_closed_zygote_ends_the_child_without_a_status(
    tmp_path: Path, stub_environment: Environment
) -> None:
    zygote = start(tmp_path / "zygote", stub_environment.interpreter)
    zygote.wait_ready(60.0)
    (pid,) = stub.processes_naming(tmp_path / "zygote")
    os.kill(pid, signal.SIGKILL)
    killed = zygote.fork(tmp_path)
    assert killed.ended.wait(30)
    assert not zygote.alive  # else a repeat would go to the same dead zygote
    assert zygote.close()
    closed = zygote.fork(tmp_path)
    assert closed.ended.is_set()
    assert (killed.status, closed.status) == (None, None)


def sleeper() -> "subprocess.Popen[bytes]":
    return subprocess.Popen([sys.executable, "-S", "-c", "import time; time.sleep(60)"], start_new_session=True)


def test_child_is_not_killed_once_another_process_has_its_number(tmp_path: Path) -> None:
    other = sleeper()
    try:
        birth = processes.birth_of(other.pid)
        assert birth is not None
        for wrong in (birth - 1, GONE):
            child = Child(run_dir=str(tmp_path), pid=other.pid, birth=wrong)
            child.kill()
            with child.held() as pid:
                assert pid is None
        with pytest.raises(subprocess.TimeoutExpired):
            other.wait(0.2)
        Child(run_dir=str(tmp_path), pid=other.pid, birth=birth).kill()
        assert other.wait(10) == -signal.SIGKILL
    finally:
        reap(other)


def test_child_that_was_reaped_is_not_killed(tmp_path: Path) -> None:
    other = sleeper()
    try:
        child = Child(run_dir=str(tmp_path), pid=other.pid)
        child.ended.set()
        child.kill()
        with pytest.raises(subprocess.TimeoutExpired):
            other.wait(0.2)
    finally:
        reap(other)


def test_whoever_reaps_waits_until_nobody_holds_the_child(tmp_path: Path) -> None:
    child, reaped = Child(run_dir=str(tmp_path), pid=os.getpid()), threading.Event()

    def reap() -> None:
        with child.released():
            reaped.set()

    reaping = threading.Thread(target=reap)
    with child.held(), child.held():
        reaping.start()
        assert not reaped.wait(0.1)
    assert reaped.wait(10)
    reaping.join()


def test_forked_child_has_its_birth(tmp_path: Path, stub_environment: Environment) -> None:
    zygote = start(tmp_path / "zygote", stub_environment.interpreter)
    zygote.wait_ready(60.0)
    (tmp_path / "probe").mkdir()
    child = zygote.fork(tmp_path / "probe")
    assert child.started.wait(30)
    assert child.birth is not None
    assert child.ended.wait(30)
    assert zygote.close()


def test_closing_twice_is_harmless(tmp_path: Path, stub_environment: Environment) -> None:
    zygote = start(tmp_path / "zygote", stub_environment.interpreter)
    assert zygote.close()
    assert zygote.close()
    assert not zygote.alive


def worker(folder: Path, script: str) -> Path:
    binary = folder / "worker"
    binary.write_text(f"#!/bin/sh\n{script}\n")
    binary.chmod(0o755)
    return binary


def test_worker_that_ends_is_reaped_with_its_status(tmp_path: Path) -> None:
    child = zygote.start(worker(tmp_path, "exit 3"), tmp_path, {})
    assert child.ended.wait(30)
    assert child.exited.is_set()
    assert child.status is not None
    assert os.waitstatus_to_exitcode(child.status) == 3
    assert child.max_rss_bytes


def test_number_of_a_worker_that_has_ended_is_kept_while_somebody_holds_it(tmp_path: Path) -> None:
    """Else a signal that is about to be sent would reach whoever is given that number next."""
    child = zygote.start(worker(tmp_path, "exec sleep 1000"), tmp_path, {})
    with child.held() as pid:
        assert pid is not None
        child.kill()
        assert child.exited.wait(30)
        assert not child.ended.wait(0.3)
        assert processes.birth_of(pid) == child.birth
    assert child.ended.wait(30)
    assert child.status == signal.SIGKILL
    with child.held() as pid:
        assert pid is None


def test_what_a_worker_has_started_ends_with_it(tmp_path: Path) -> None:
    script = f"sleep 1000 & echo $! > '{tmp_path}/left'; exit 0"
    child = zygote.start(worker(tmp_path, script), tmp_path, {})
    assert child.ended.wait(30)
    left = int((tmp_path / "left").read_text())
    assert stub.eventually(lambda: not stub.is_alive(left))


def test_worker_that_cannot_be_executed_is_said_in_one_line(tmp_path: Path) -> None:
    with pytest.raises(EnvironmentUnavailable, match="cannot be started: No such file"):
        zygote.start(tmp_path / "nothing", tmp_path, {})
