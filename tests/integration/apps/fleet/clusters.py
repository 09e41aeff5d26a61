"""Servers of this machine alone: a free port, and a Ray cluster of two nodes of which one can be killed."""

import os
import secrets
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

from harness.environments.builder import ROOT_VARIABLE, default_environment_root
from tests.integration.gate import PROJECT
from tests.programs.planting import free_port

READY_S, GONE_S = 60.0, 30.0


def processes_of(folder: Path) -> dict[int, str]:
    """The processes that name a folder in their command lines or environments: those of a cluster, and what it started."""
    found = {}
    for path in Path("/proc").glob("[0-9]*"):
        try:
            words = (path / "cmdline").read_bytes() + b"\0" + (path / "environ").read_bytes()
        except OSError:
            continue
        if str(folder).encode() in words and int(path.name) != os.getpid():
            found[int(path.name)] = (path / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
    return found


class Cluster:
    """Two nodes with a folder of their own for everything that they write."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.address = folder, f"127.0.0.1:{free_port()}"
        self.temporary = folder / "tmp"
        self.temporary.mkdir(parents=True)
        self.env = {
            **os.environ,
            ROOT_VARIABLE: str(default_environment_root()),
            "PYTHONPATH": str(PROJECT),
            "RAY_AUTH_MODE": "token",
            "RAY_AUTH_TOKEN": secrets.token_hex(32),
            "XDG_CACHE_HOME": str(folder / "cache"),
            "TMPDIR": str(self.temporary),
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
