"""SIGKILL at drawn moments over the commands that run probes, on a stub of torch: they go on to the same answer.

Nothing of a killed command is alive after 2 s, and what finishes it leaves no draft and no temporary file. Left out:
``env``, whose installer a unit test kills with its controller.
"""

import random
import re
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from tests.programs import stub
from tests.programs.cli import ROOT

COUNT = 200
DEADLINE_S = 600.0
GONE_S = 2.0
COMMANDS = {
    "compat": ("compat", "--latency", "off", "-k", "well_a or dies_in_new"),
    "compat that times": ("compat", "--latency", "quick", "-k", "well_a"),
    "compat that explains": ("compat", "--latency", "off", "--explain", "20", "-k", "dies_in_new"),
    "bisect": ("bisect", "--model", "dies_in_new", "--latency", "off"),
    "mitigate": ("mitigate", "--model", "dies_in_new"),
    "matrix": ("matrix", "--releases", "old", "new", "-k", "well_a or dies_in_new"),
    "golden": ("golden", "propose", "last"),
}


@dataclass(frozen=True)
class Gate:
    """The gate in a project of its own, with a folder of its own for temporary files."""

    project: Path
    environments: Sequence[str]

    @property
    def temporary(self) -> Path:
        """Where temporary files go."""
        return self.project / "tmp"

    def start(self, name: str, *more: str) -> "subprocess.Popen[str]":
        """Start a command."""
        self.temporary.mkdir(parents=True, exist_ok=True)
        words = COMMANDS[name]
        sides = () if words[0] in ("golden", "matrix") else ("--old", "old", "--new", "new")
        where = () if words[0] == "golden" else (*self.environments, "--fixtures", str(stub.MODELS), "--jobs", "2")
        return subprocess.Popen(
            (sys.executable, "-m", "harness", "--project", str(self.project), *words, *sides, *where, *more),
            cwd=ROOT,
            env={"PATH": "/usr/bin:/bin", "HOME": str(self.project), "TMPDIR": str(self.temporary)},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )

    def answer(self, name: str, *more: str) -> tuple[int, str]:
        """Return the exit code of a command and its last line, in which numbers do not count."""
        out, errors = (process := self.start(name, *more)).communicate(timeout=DEADLINE_S)
        if process.returncode in (2, 5) or "Traceback" in errors:
            return process.returncode, errors
        return process.returncode, re.sub(r"[\d.]+", "#", out.strip().splitlines()[-1].replace(str(self.project), ""))

    def begun(self, name: str) -> tuple[str, ...]:
        """Return the words that go on with what was killed."""
        plans = list(self.project.glob("reports/*/plan.json"))
        return ("--resume", "last") if plans and COMMANDS[name][0] in ("compat", "bisect", "mitigate") else ()


def attack(count: int = COUNT, seed: int = 18) -> list[str]:
    """Return what went wrong in so many kills, one line each."""
    chance = random.Random(seed)
    wrong: list[str] = []
    known: dict[str, tuple[tuple[int, str], float]] = {}
    with tempfile.TemporaryDirectory(prefix="kills-") as folder:
        sides = {"old": "2.1.2", "new": "2.6.0"}
        made = {side: stub.make_environment(Path(folder, side), version=torch) for side, torch in sides.items()}
        environments = [word for side in sides for word in ("--env", f"{side}={made[side].interpreter}")]
        for number in range(count):
            name = list(COMMANDS)[number % len(COMMANDS)]
            if name not in known:
                gate = prepared(Path(folder, f"whole-{number}"), environments, name)
                begin = time.monotonic()
                known[name] = gate.answer(name), time.monotonic() - begin
            answer, lasts_s = known[name]
            gate = prepared(Path(folder, str(number)), environments, name)
            moment_s = chance.uniform(0.0, lasts_s)
            wrong += [f"{name}, killed after {moment_s:.1f} s: {what}" for what in killed(gate, name, moment_s, answer)]
    return wrong


def prepared(project: Path, environments: Sequence[str], name: str) -> Gate:
    """Return a project in which the command finds what it works on."""
    gate = Gate(project, environments)
    if name == "golden":
        gate.answer("compat")
    return gate


def killed(gate: Gate, name: str, moment_s: float, answer: tuple[int, str]) -> list[str]:
    """Kill a command, go on with it, and return what is otherwise than where nobody kills it."""
    wrong = []
    process = gate.start(name)
    try:
        process.communicate(timeout=moment_s)
    except subprocess.TimeoutExpired:
        process.send_signal(signal.SIGKILL)
        process.communicate()
    if not stub.eventually(lambda: not stub.processes_naming(gate.project), within_s=GONE_S):
        wrong.append(f"alive after {GONE_S:.0f} s: {list(stub.processes_naming(gate.project).values())}")
    left = [path.name for path in gate.temporary.iterdir()]
    found = gate.answer(name, *gate.begun(name))
    if found != answer:
        wrong.append(f"{found} and not {answer}")
    left += [str(path) for pattern in (".*.part", "*.draft") for path in gate.project.rglob(pattern)]
    return [*wrong, *([f"left: {', '.join(left)}"] if left else [])]


if __name__ == "__main__":
    print(*attack(int(sys.argv[1])), sep="\n")
