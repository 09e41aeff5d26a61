"""Programs that are started in an environment under test, and what their answers have in common."""

import json
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

PROJECT = Path(__file__).resolve().parents[2]
PROGRAM = Path(__file__).with_name("in_torch.py")
QUIET = {"PYTHONWARNINGS": "ignore", "TORCH_CPP_LOG_LEVEL": "ERROR"}
LIMIT_S = 1200.0


def release_of(python: str) -> str:
    """Return the torch release of an interpreter, without the local part of its version."""
    words = [python, "-c", "import importlib.metadata as m; print(m.version('torch').partition('+')[0])"]
    return subprocess.run(words, capture_output=True, text=True, timeout=60, check=True).stdout.strip()


def ask(python: str, *arguments: str, program: Path = PROGRAM, env: dict[str, str] | None = None) -> Any:
    """Return what ``in_torch.py`` prints last."""
    done = subprocess.run(
        [python, str(program), *arguments],
        stdout=subprocess.PIPE,
        text=True,
        timeout=LIMIT_S,
        check=True,
        env={**os.environ, **QUIET, **(env or {})},
    )
    return json.loads(done.stdout.splitlines()[-1])


def started(python: str, *arguments: str) -> "subprocess.Popen[str]":
    """Return ``in_torch.py`` in a fresh process, ready to be asked."""
    process = subprocess.Popen(
        [python, str(PROGRAM), *arguments],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        env={**os.environ, **QUIET},
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "ready\n"
    return process


def returned(python: str, *arguments: str, limit_s: float) -> list[float]:
    """Return the numbers that ``in_torch.py`` prints within ``limit_s`` seconds of being ready; it is ended then."""
    process = started(python, *arguments)
    with suppress(subprocess.TimeoutExpired):
        process.wait(limit_s)
    process.kill()
    process.wait()
    assert process.stdout is not None
    return [float(line) for line in process.stdout]


def harness(*arguments: str, env: dict[str, str] | None = None) -> None:
    """Run the command line of the gate; any answer will do."""
    words = [sys.executable, "-m", "harness", *arguments]
    done = subprocess.run(
        words,
        cwd=PROJECT,
        capture_output=True,
        text=True,
        timeout=LIMIT_S,
        check=False,
        env={**os.environ, **(env or {})},
    )
    assert done.returncode in (0, 1, 4), done.stdout + done.stderr


def median_s(times: int, work: Any) -> float:
    """Return the median duration of ``times`` calls."""
    found = []
    for _ in range(times):
        begin = time.monotonic()
        work()
        found.append(time.monotonic() - begin)
    return statistics.median(found)


def cpu_name() -> str:
    """Return what the kernel calls the CPU."""
    lines = Path("/proc/cpuinfo").read_text().splitlines()
    return next((line.partition(": ")[2] for line in lines if line.startswith("model name")), "unknown")


def rounded(value: float, digits: int = 3) -> float:
    """Return a number with so many significant digits."""
    return float(f"{value:.{digits}g}")


def quantile(values: Sequence[float], share: float) -> float:
    """Return the value below which ``share`` of the values lie, the next greater one between two."""
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(share * len(ordered)))]
