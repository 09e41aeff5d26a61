"""Real processes in states that were planted, and what `attach` says of them."""

import contextlib
import os
import shutil
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import pytest

from harness.apps.attach.attach import attach
from harness.apps.attach.find import Asked, asked_for
from harness.apps.attach.probe import probe
from harness.core.attach import Attached, ProcessState, Why
from harness.project import Project
from harness.verdict.attach import hung
from tests.programs.planting import Planted, Programs, planted

pytestmark = [
    pytest.mark.integration,
    pytest.mark.skipif(shutil.which("g++") is None, reason="needs a C++ compiler"),
]

# State -> what is said of it; where several may stand, it depends on what the kernel lets be seen.
STATES = {
    "mutex": (ProcessState.BLOCKED, Why.OWNER_WAITS),
    "all_wait": (ProcessState.BLOCKED, Why.ALL_WAIT),
    "busy": (ProcessState.BUSY, Why.COMPUTES),
    "compile": (ProcessState.BUSY, Why.COMPUTES),
    "disk": (ProcessState.DISK, Why.UNINTERRUPTIBLE),
    "starved": (ProcessState.STARVED, Why.OTHERS),
    "stopped": (ProcessState.STOPPED, Why.SIGNAL),
    "zombie_leader": (ProcessState.IDLE, Why.LISTENS),
    "prefork": (ProcessState.BLOCKED, Why.OWNER_ENDED),
    "storm": (ProcessState.OVERSUBSCRIBED, Why.OWN_THREADS),
    "exit": (ProcessState.EXITING, Why.HANDLERS),
    "unanswered": (ProcessState.BLOCKED, Why.UNANSWERED),
    "served": (ProcessState.IDLE, Why.LISTENS),
}
# A client has spoken last and has no answer. The first are healthy: half a request, in a loop and for a thread, a wait
# that ends by itself, a server that pushes. The twins are not: a worker of a loop's pool, and two handlers, are stuck.
HEALTHY_THOUGH_ASKED = ("half_request", "half_threaded", "long_poll", "timed", "push")
STUCK_THOUGH_IN_A_LOOP = ("executor", "crossed")
# A request waits without a limit while others are answered every two seconds; twins: "unanswered", and "executor".
OTHERS_ANSWERED = ("polled", "batch")
STUCK = ("unanswered", "kept_gil")
ONLY = {
    "c++": {
        "cycle": (ProcessState.BLOCKED, Why.CYCLE),
        "ended": (ProcessState.BLOCKED, Why.OWNER_ENDED),
        "zombie": (ProcessState.ZOMBIE, Why.ENDED),
        "vfork": (ProcessState.OUTSIDE, Why.CHILD),
    },
    "python": {
        "gil": (ProcessState.BLOCKED, Why.ALL_WAIT),
        "kept_gil": (ProcessState.BLOCKED, Why.GIL),
        "busy_python": (ProcessState.BUSY, Why.COMPUTES),
        **dict.fromkeys(HEALTHY_THOUGH_ASKED, (ProcessState.UNKNOWN, Why.CLIENT_OR_TIMER)),
        **dict.fromkeys(STUCK_THOUGH_IN_A_LOOP, (ProcessState.BLOCKED, Why.UNANSWERED)),
    },
}
# Where an eu-stack is needed: by /proc alone these look like something else, which is said.
NEEDS_STACKS = {"exit"}
# What an idle worker of a loop's pool looks like, too.
NEEDS_PYTHON_FRAMES = {"executor", "kept_gil"}
# Told by /proc alone, none of them a matter of how busy this machine is.
QUICK = ("cycle", "ended", "stopped", "zombie", "all_wait", "served", "prefork")


@pytest.fixture(scope="module")
def programs(tmp_path_factory: pytest.TempPathFactory) -> Programs:
    return Programs(tmp_path_factory.mktemp("planted"))


def seen(process: Planted) -> Attached:
    """Return what is said of the process with stacks, the worst first."""
    asked = asked_for(pid=str(process.pid))
    return attach(Project(folder=Path.cwd()), asked, window_s=2.0).processes[0]


def test_states_are_told_by_proc_alone_in_the_time_of_one_window(programs: Programs, tmp_path: Path) -> None:
    """All at the same time: each takes a window, and none competes for CPUs."""
    with contextlib.ExitStack() as running:
        processes = {state: running.enter_context(planted(programs, "c++", state, tmp_path)) for state in QUICK}
        with ThreadPoolExecutor(len(QUICK)) as pool:
            looks = pool.map(lambda process: probe(asked_for(pid=str(process.pid)), 0.8), processes.values())
        answers = dict(zip(processes, looks, strict=True))
        assert Path(f"/proc/{processes['stopped'].pid}/stat").read_text().rpartition(")")[2].split()[0] == "T"
    for state, answer in answers.items():
        expected = {**STATES, **ONLY["c++"]}[state]
        assert (answer.processes[0].state, answer.processes[0].why) == expected, state
    (cycle,) = answers["cycle"].processes
    assert len(cycle.culprits) == 2
    assert {thread.lock.owner for thread in cycle.threads if thread.lock is not None} == set(cycle.culprits)
    forked = answers["prefork"].processes
    assert len(forked) == 4
    assert forked[0].pid in processes["prefork"].children
    assert forked[0].parent == processes["prefork"].pid
    assert [one.state for one in forked[1:]] == [ProcessState.IDLE] * 3
    assert {one.pid: one.why for one in forked}[processes["prefork"].pid] is Why.FORKED
    (lock,) = [thread.lock for thread in forked[0].threads if thread.lock is not None]
    assert lock.forked and not lock.lives


CASES = [(language, state) for language in ("c++", "python") for state in (*STATES, *ONLY[language])]


@pytest.mark.slow
@pytest.mark.parametrize(("language", "state"), CASES)
def test_a_planted_state_is_named(programs: Programs, language: str, state: str, tmp_path: Path) -> None:
    if state in NEEDS_STACKS and shutil.which("eu-stack") is None:
        pytest.skip("needs eu-stack")
    if state in NEEDS_PYTHON_FRAMES and shutil.which("py-spy") is None:
        pytest.skip("needs py-spy")
    with planted(programs, language, state, tmp_path) as process:
        answer = seen(process)
    if state != "starved":
        skip_where_starved(answer)
    if state == "gil":  # the thread that listens may have woken up meanwhile, and then asks for the GIL too
        answer = replace(answer, why=Why.ALL_WAIT) if answer.why is Why.GIL else answer
    assert (answer.state, answer.why) == {**STATES, **ONLY[language]}[state]
    assert max(answer.stops_s, default=0.0) <= 0.3
    if state == "compile" and shutil.which("eu-stack") is not None:
        assert answer.phase == "compile"
    if state == "zombie_leader":
        assert answer.leader_ended


@pytest.mark.slow
@pytest.mark.parametrize("state", [*HEALTHY_THOUGH_ASKED, *OTHERS_ANSWERED, *STUCK_THOUGH_IN_A_LOOP, *STUCK])
def test_a_probe_restarts_no_server_that_waits_for_its_client(programs: Programs, state: str, tmp_path: Path) -> None:
    if state in NEEDS_PYTHON_FRAMES and shutil.which("py-spy") is None:
        pytest.skip("needs py-spy")
    with planted(programs, "python", state, tmp_path) as process:
        answers = [probe(asked_for(pid=str(process.pid)), 2.0) for _ in range(3 if state in OTHERS_ANSWERED else 1)]
    for answer in answers:
        assert hung(answer) == (state in (*STUCK_THOUGH_IN_A_LOOP, *STUCK)), answer.processes[0]


@pytest.mark.slow
@pytest.mark.parametrize("language", ["c++", "python"])
def test_a_server_under_load_works(programs: Programs, language: str, tmp_path: Path) -> None:
    with planted(programs, language, "load", tmp_path) as process:
        answer = seen(process)
    skip_where_starved(answer)
    assert answer.state is ProcessState.WORKING
    assert answer.traffic is not None
    assert answer.traffic.moved_bytes


def skip_where_starved(answer: Attached) -> None:
    """Skip where the machine had no CPUs to give, which is then the right answer whatever was planted."""
    wanted = sum(thread.wanted for thread in answer.threads)
    if answer.state is ProcessState.STARVED and answer.total_on_cpu < 0.6 * wanted:
        pytest.skip(f"it had {answer.total_on_cpu:.1f} of the {wanted:.1f} CPUs that it wanted")


def _open_files(pid: int) -> Iterator[str]:
    for path in Path(f"/proc/{pid}/fd").iterdir():
        yield os.readlink(path)


def test_a_process_is_left_as_it_was(programs: Programs, tmp_path: Path) -> None:
    with planted(programs, "c++", "served", tmp_path) as process:
        files = sorted(_open_files(process.pid))
        attach(Project(folder=Path.cwd()), Asked("it", (process.pid,)), window_s=0.5)
        status = Path(f"/proc/{process.pid}/status").read_text()
        assert sorted(_open_files(process.pid)) == files
    assert "\nTracerPid:\t0\n" in status
    assert "\nShdPnd:\t0000000000000000\n" in status
    assert "(sleeping)" in status
