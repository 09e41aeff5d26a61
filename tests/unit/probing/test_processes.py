"""Starting and ending processes: what they inherit, how they end, what is said about it."""

import json
import os
import signal
import subprocess
import sys
import threading
import traceback
from pathlib import Path

import pytest

from harness.core.environment import Environment
from harness.probing import processes
from harness.machine import pool
from harness.machine.processes import reap
from harness.worker import wire
from tests.programs import stub


def test_worker_inherits_nothing_that_steers_python(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("PYTHONPATH", "PYTHONHOME", "PYTHONSTARTUP", "PYTHONWARNINGS", "OMP_NUM_THREADS", "LD_PRELOAD"):
        monkeypatch.setenv(name, "planted")
    monkeypatch.setenv("PYTHONHASHSEED", "7")
    environment = processes.worker_environment({"OMP_NUM_THREADS": "2"})
    assert "planted" not in environment.values()
    assert (environment["PYTHONHASHSEED"], environment["OMP_NUM_THREADS"]) == ("0", "2")


@pytest.mark.parametrize(
    ("status", "words"),
    [
        (0, "exit code 0"),
        (3 << 8, "exit code 3"),
        (signal.SIGSEGV, "signal SIGSEGV"),
        (0x80 | 6, "signal SIGABRT"),
        (50, "signal 50"),
    ],
)
def test_wait_status_in_words(status: int, words: str) -> None:
    assert processes.describe_wait_status(status) == words


def sleeper(code: str = "import time; time.sleep(10000)") -> processes.Worker:
    worker = processes.Worker(
        [sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE, start_new_session=True
    )
    worker.number = worker.pid
    return worker


def test_a_start_that_is_interrupted_leaves_no_process() -> None:
    made: list[processes.Worker] = []
    interrupted = threading.Event()

    def somebody_waits() -> bool:
        frame = sys._current_frames()[threading.main_thread().ident or 0]
        return any(frame.f_code is pool.answer.__code__ for frame, _ in traceback.walk_stack(frame))

    def slowly() -> processes.Worker:
        assert stub.eventually(somebody_waits)
        os.kill(os.getpid(), signal.SIGINT)
        assert interrupted.wait(30)
        made.append(sleeper())
        return made[0]

    with pytest.raises(KeyboardInterrupt):
        processes._spawned(slowly)
    assert made == []
    interrupted.set()
    assert stub.eventually(lambda: bool(made) and made[0].returncode == -signal.SIGKILL)


def test_number_that_another_process_has_been_given_is_told_by_its_birth() -> None:
    started = sleeper()
    birth = processes.birth_of(started.pid)
    assert birth is not None
    assert not processes.is_another(started.pid, birth)
    assert processes.is_another(started.pid, birth - 1)
    reap(started)
    assert processes.birth_of(started.pid) is None
    assert not processes.is_another(started.pid, birth)


def test_stack_dump_of_a_process_that_is_gone_is_silent(tmp_path: Path) -> None:
    started = sleeper()
    reap(started)
    processes.request_stack_dump(started.pid, tmp_path / "stacks.txt")


def test_worker_leaves_when_its_parent_is_not_the_controller(tmp_path: Path, stub_environment: Environment) -> None:
    """It could not be told of the controller's death, so it must not begin."""
    command = [stub_environment.interpreter, "-s", "-u", str(processes.BOOTSTRAP), str(tmp_path), "1"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60)
    assert done.returncode == wire.EXIT_ORPHANED
    assert "not the process that gave the order" in done.stderr
    assert not (tmp_path / wire.EVENTS).exists()


DEAF = f"""
import json, pathlib, signal, sys
sys.path.insert(0, {str(Path(processes.BOOTSTRAP).parents[2])!r})
for number in signal.valid_signals() - {{signal.SIGKILL, signal.SIGSTOP}}:
    signal.signal(number, signal.SIG_IGN)
signal.pthread_sigmask(signal.SIG_SETMASK, signal.valid_signals())
from harness.probing import processes
from harness.machine.processes import reap
worker = processes.start_worker(sys.argv[1], pathlib.Path(sys.argv[2]), {{}})
worker.stdout.readline()
print(pathlib.Path(f"/proc/{{worker.pid}}/status").read_text())
reap(worker)
"""


def test_worker_ignores_and_blocks_nothing_that_its_controller_does(
    tmp_path: Path, stub_environment: Environment
) -> None:
    """As behind ``nohup`` or ``&``: what a model does must not depend on that, nor may a dump of its stacks."""
    (tmp_path / wire.REQUEST).write_text(json.dumps({"protocol": wire.PROTOCOL, "verb": "serve"}))
    command = [sys.executable, "-c", DEAF, stub_environment.interpreter, str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=True)
    status = dict(line.split(":\t", 1) for line in done.stdout.splitlines() if ":\t" in line)
    assert int(status["SigBlk"], 16) == 0
    pythons_own = [signal.SIGPIPE, signal.SIGXFSZ]
    assert int(status["SigIgn"], 16) == sum(1 << (number - 1) for number in pythons_own)


def test_worker_survives_the_thread_that_asked_for_it(tmp_path: Path, stub_environment: Environment) -> None:
    """The kernel's parent-death signal follows the thread that forked, so that must be one that stays."""
    (tmp_path / wire.REQUEST).write_text(json.dumps({"protocol": wire.PROTOCOL, "verb": "serve"}))
    started = []

    def ask() -> None:
        started.append(processes.start_worker(stub_environment.interpreter, tmp_path, {}))

    thread = threading.Thread(target=ask)
    thread.start()
    thread.join()
    (worker,) = started
    assert worker.stdout is not None
    try:
        assert b"ready" in worker.stdout.readline()
        assert worker.poll() is None
        assert os.getsid(worker.pid) == worker.pid
    finally:
        assert reap(worker)


def test_workers_die_with_a_killed_controller(tmp_path: Path, stub_environment: Environment) -> None:
    """Zygote and process get the signal from the kernel; the zygote's children get it from the zygote."""
    program = Path(stub.__file__).with_name("controller.py")
    root = Path(processes.BOOTSTRAP).parents[2]
    with subprocess.Popen(
        [sys.executable, str(program), str(tmp_path), stub_environment.interpreter], stdout=subprocess.PIPE, cwd=root
    ) as controller:
        assert controller.stdout is not None
        assert controller.stdout.readline() == b"all at work\n"
        workers = set(stub.processes_naming(tmp_path)) - {controller.pid}
        assert len(workers) >= 3
        controller.kill()
    assert stub.eventually(lambda: not any(map(stub.is_alive, workers))), stub.processes_naming(tmp_path)


DAEMON = """
import os, pathlib, signal, sys, time
if os.fork() == 0:
    os.setsid()
    if os.fork() == 0:
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        pathlib.Path("daemon.part").write_text(str(os.getpid()))
        os.rename("daemon.part", "daemon")
        time.sleep(300)
    os._exit(0)
while not os.path.exists("daemon"):
    time.sleep(0.01)
"""
NOWHERE = (subprocess.DEVNULL,) * 3


@pytest.mark.parametrize(
    ("then", "code"),
    [
        ("os._exit(0)", 0),
        ("os._exit(3)", 3),
        ("os.kill(os.getpid(), signal.SIGSEGV)", -signal.SIGSEGV),
        ("os.kill(os.getpid(), signal.SIGKILL)", -signal.SIGKILL),
        ("os.closerange(0, 64); os._exit(4)", 4),
        ("os._exit(0 if os.getppid() == int(sys.argv[1]) else 5)", 0),
    ],
)
def test_who_is_kept_leaves_nothing_and_its_keeper_ends_as_it_does(tmp_path: Path, then: str, code: int) -> None:
    command = (sys.executable, "-c", DAEMON + then)
    worker = processes._started(command, tmp_path, {}, NOWHERE, kept=True)
    assert worker.number != worker.pid
    assert worker.wait(60) == code
    assert not stub.is_alive(int((tmp_path / "daemon").read_text()))
    assert processes.end(worker)


def test_who_is_kept_can_be_ended_with_what_it_has_started(tmp_path: Path) -> None:
    worker = processes._started((sys.executable, "-c", DAEMON + "time.sleep(300)"), tmp_path, {}, NOWHERE, kept=True)
    assert stub.eventually((tmp_path / "daemon").exists)
    daemon = int((tmp_path / "daemon").read_text())
    assert [stub.is_alive(pid) for pid in (worker.pid, worker.number, daemon)] == [True] * 3
    assert processes.end(worker)
    assert [stub.is_alive(pid) for pid in (worker.pid, worker.number, daemon)] == [False] * 3


def test_who_is_kept_has_its_own_variables_and_a_missing_program_is_an_error(tmp_path: Path) -> None:
    code = "import os; os._exit(0 if os.environ['PLANTED'] == 'ü' and 'PYTHONHASHSEED' in os.environ else 6)"
    worker = processes._started((sys.executable, "-c", code), tmp_path, {"PLANTED": "ü"}, NOWHERE, kept=True)
    assert worker.wait(60) == 0
    with pytest.raises(FileNotFoundError, match="absent"):
        processes._started((str(tmp_path / "absent"),), tmp_path, {}, NOWHERE, kept=True)
    assert stub.zombies() == []


KILLED = f"""
import os, pathlib, signal, subprocess, sys, time
sys.path.insert(0, {str(Path(processes.BOOTSTRAP).parents[2])!r})
from harness.probing import processes
folder = pathlib.Path(sys.argv[1])
program = (sys.executable, "-c", {DAEMON!r} + "time.sleep(300)")
processes._spawned(lambda: processes._started(program, folder, {{}}, (subprocess.DEVNULL,) * 3, kept=True))
while not (folder / "daemon").exists():
    time.sleep(0.01)
os.kill(os.getpid(), signal.SIGKILL)
"""


def test_who_is_kept_ends_with_a_killed_controller_and_so_does_what_it_has_started(tmp_path: Path) -> None:
    subprocess.run([sys.executable, "-c", KILLED, str(tmp_path)], timeout=120, check=False)
    daemon = int((tmp_path / "daemon").read_text())
    assert stub.eventually(lambda: not stub.is_alive(daemon))
