"""A plan on a Ray cluster of two nodes on this machine, one of which is killed: the answer is that of one machine."""

import os
import re
import secrets
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from harness.environments.builder import ROOT_VARIABLE, default_environment_root
from tests.integration.fleet.test_fleet import answered, planned_by_command, write_store
from tests.integration.fleet.test_object_store import free_port
from tests.integration.gate import PROJECT, harness

pytest.importorskip("ray", reason="nox -s full installs it")
pytestmark = [pytest.mark.integration, pytest.mark.slow]

NAMES = ("ads/ranker_a", "ads/ranker_b", "ads/ranker_c", "search/ranker_d", "search/ranker_e", "search/half")
READY_S, DONE_S, GONE_S = 60.0, 400.0, 30.0


def processes_of(folder: Path) -> dict[int, str]:
    """The processes that name a folder in their command lines or environments: those of a cluster, and what it started."""
    found = {}
    for path in Path("/proc").glob("[0-9]*"):
        try:
            words = (path / "cmdline").read_bytes() + b"\0" + (path / "environ").read_bytes()
        except OSError:
            continue
        if str(folder).encode() in words and int(path.name) != os.getpid():
            found[int(path.name)] = words.split(b"XDG", 1)[0].replace(b"\0", b" ").decode(errors="replace")
    return found


class Cluster:
    """Two nodes with a folder of their own for everything that they write."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.address = folder, f"127.0.0.1:{free_port()}"
        self.env = {
            **os.environ,
            ROOT_VARIABLE: str(default_environment_root(PROJECT)),
            "PYTHONPATH": str(PROJECT),
            "RAY_AUTH_MODE": "token",
            "RAY_AUTH_TOKEN": secrets.token_hex(32),
            "XDG_CACHE_HOME": str(folder / "cache"),
        }
        self._start("--head", f"--port={self.address.rpartition(':')[2]}", f"--temp-dir={folder}", "--node-name=first")
        self._start(f"--address={self.address}", "--node-name=second")

    def _start(self, *words: str) -> None:
        command = (
            sys.executable,
            "-m",
            "ray.scripts.scripts",
            "start",
            "--num-cpus=1",
            "--disable-usage-stats",
            *words,
        )
        done = subprocess.run(command, env=self.env, capture_output=True, text=True, timeout=READY_S, check=False)
        assert done.returncode == 0, done.stdout + done.stderr

    def lose_second(self) -> None:
        """Kill the process that is the second node to Ray; what works for it ends with it."""
        (pid,) = (
            pid for pid, words in processes_of(self.folder).items() if "raylet/raylet" in words and "second" in words
        )
        os.kill(pid, signal.SIGKILL)

    def end(self) -> None:
        """End what is left, by its numbers."""
        until = time.monotonic() + GONE_S
        while (left := processes_of(self.folder)) and time.monotonic() < until:
            for pid in left:
                try:
                    os.kill(pid, signal.SIGKILL)
                except ProcessLookupError:
                    pass
            time.sleep(0.2)
        assert not left, left


@pytest.fixture
def cluster() -> Iterator[Cluster]:
    folder = Path("/tmp") / f"ray-{os.getpid()}"  # sockets of Ray lie in it, whose paths may not be long
    made = None
    try:
        made = Cluster(folder)
        yield made
    finally:
        if made is not None:
            made.end()
        shutil.rmtree(folder, ignore_errors=True)


def test_two_nodes_of_which_one_is_lost_come_to_the_answer_of_one_machine(
    cluster: Cluster, tmp_path: Path, old_python: str
) -> None:
    store = write_store(tmp_path / "store", old_python, *NAMES)
    alone, spread = tmp_path / "alone", tmp_path / "spread"
    planned_by_command(store, alone)
    shutil.copytree(alone, spread)
    process = subprocess.Popen(
        (sys.executable, "-m", "harness", "fleet", "run", str(spread), "--on", cluster.address, "--parts", "4"),
        cwd=PROJECT,
        env=cluster.env,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    said = ""
    with process:
        for line in process.stdout or ():
            said += line
            if "parts on 2 nodes" in line:
                time.sleep(3.0)
                cluster.lose_second()
    assert process.returncode == 0, said
    assert re.search(r"part \d: node \w+ is lost .*; begun again elsewhere", said), said
    assert "0 known before, 6 made now" in said
    assert harness("fleet", "run", str(alone), timeout_s=DONE_S).returncode == 0
    assert answered(spread) == answered(alone)
    assert list((cluster.folder / "cache").rglob("*.*")) == []
    again = harness("fleet", "run", str(spread), "--on", cluster.address)  # asks nobody
    assert again.returncode == 0 and "6 known before, 0 made now" in again.stdout


def test_a_cluster_that_is_not_there_is_an_error_that_names_it(tmp_path: Path, old_python: str) -> None:
    store = write_store(tmp_path / "store", old_python, NAMES[0])
    planned_by_command(store, tmp_path / "fleet")
    done = harness("fleet", "run", str(tmp_path / "fleet"), "--on", f"127.0.0.1:{free_port()}")
    assert done.returncode == 2 and "--on 127.0.0.1:" in done.stderr and "Traceback" not in done.stderr
