"""Model servers on a real torch: the C++ one of examples/, and one in Python that forks after OpenMP has run."""

import contextlib
import os
import shutil
import signal
import subprocess
import urllib.request
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from harness.apps.attach.attach import attach
from harness.apps.attach.find import asked_for
from harness.core.attach import Attached, ProcessState
from harness.project import Project
from tests.integration.conftest import NEW
from tests.programs.planting import free_port, loaded

pytestmark = [
    pytest.mark.integration,
    pytest.mark.slow,
    pytest.mark.skipif(shutil.which("eu-stack") is None, reason="needs eu-stack"),
]
PROJECT = Path(__file__).resolve().parents[4]
RANKER = PROJECT / "examples" / "models" / "ranker.pt"


@contextlib.contextmanager
def _running(words: Sequence[str], says: bytes) -> Iterator["subprocess.Popen[bytes]"]:
    """Run a server, from when it says that it serves on; its children are ended with it, by their ids."""
    process = subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
    assert process.stdout is not None
    try:
        assert says in process.stdout.readline()
        yield process
    finally:
        children = Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split()
        for pid in (*map(int, children), process.pid):
            os.kill(pid, signal.SIGKILL)
        process.wait()
        process.stdout.close()


def _seen(pid: int) -> tuple[Attached, ...]:
    return attach(Project(folder=PROJECT), asked_for(pid=str(pid)), window_s=2.0).processes


def test_the_example_server_is_idle_and_works_under_load(new_python: str, tmp_path: Path) -> None:
    (torch,) = Path(new_python).parents[1].glob("lib/python*/site-packages/torch")
    server = tmp_path / "server"
    subprocess.run([PROJECT / "examples" / "cpp-server" / "build.sh", torch, server], check=True)
    port = free_port()
    with _running([str(server), str(port), f"{RANKER}=4x16"], b"serving 1 models") as process:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/ranker", timeout=10) as reply:
            assert reply.read().startswith(b"[4, 1] mean ")
        (idle,) = _seen(process.pid)
        with loaded(port, connections=2, pause_s=0.01):
            (working,) = _seen(process.pid)
    assert idle.state is ProcessState.IDLE
    assert working.state is ProcessState.WORKING
    assert idle.artifacts == (f"argument: {RANKER}",)
    (library,) = idle.torch
    assert library.version.partition("+")[0] == NEW
    assert Path(library.path).resolve() == (torch / "lib" / "libtorch_cpu.so").resolve()
    assert len(idle.openmp) == 1
    assert max((*idle.stops_s, *working.stops_s), default=0.0) <= 0.3


def test_a_fork_after_openmp_is_known_with_its_cure(new_python: str) -> None:
    port = free_port()
    program = PROJECT / "tests" / "programs" / "torch_server.py"
    with _running([new_python, str(program), str(port), "1", str(RANKER)], b"ready") as process:
        worst, parent = _seen(process.pid)
    assert (worst.state, parent.state) == (ProcessState.BLOCKED, ProcessState.IDLE)
    assert worst.parent == process.pid == parent.pid
    assert worst.known is not None
    assert worst.known.name == "openmp-after-fork"
    assert worst.scenario == "prefork"
    assert "torch.set_num_threads(1)" in worst.known.lines["one thread after the fork"]["python"]
    assert f"--artifact {RANKER}" in worst.again
    assert "--scenario prefork" in worst.again
