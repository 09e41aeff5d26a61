"""SIGKILL at drawn moments over the commands that work long, on a stub of torch: repeated, they come to the same answer.

Nothing that a killed command has started is alive after 2 s, and once it was repeated no draft and no temporary file is
left. Each kill hits: a command that ended before its moment is killed at another one.
"""

import ctypes
import os
import random
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from harness.serving.scenarios import TIMING
from tests.programs import cli, stub
from tests.programs.cli import ROOT
from tests.programs.installers import fake_uv

COUNT = 200
DEADLINE_S = 600.0
GONE_S = 2.0
BOTH = ("--old", "old", "--new", "new")
COMMANDS = {
    "compat": ("compat", *BOTH, "--latency", "off", "-k", "well_a or dies_in_new"),
    "compat that times": ("compat", *BOTH, "--latency", "quick", "-k", "well_a"),
    "compat that explains": ("compat", *BOTH, "--latency", "off", "--explain", "20", "-k", "dies_in_new"),
    "bisect": ("bisect", *BOTH, "--model", "dies_in_new", "--latency", "off"),
    "mitigate": ("mitigate", *BOTH, "--model", "dies_in_new"),
    "matrix": ("matrix", "--releases", "old", "new", "-k", "well_a or dies_in_new"),
    "golden": ("golden", "propose", "last"),
    "env": ("env", "2.1.2", "2.6.0"),
}
RUNS = ("compat", "bisect", "mitigate", "matrix")
RESUMABLE = RUNS[:3]
PR_SET_CHILD_SUBREAPER = 36

Answer = tuple[int | None, object]


@dataclass(frozen=True)
class Gate:
    """The gate in a project of its own, with a folder of its own for temporary files, and uv as ``installers`` has it."""

    project: Path
    environments: Sequence[str]

    @property
    def temporary(self) -> Path:
        """Where temporary files go."""
        return self.project / "tmp"

    def start(self, name: str, *, again: bool = False) -> "subprocess.Popen[str]":
        """Start a command, ``again`` where it was begun: one that has a run to go on with goes on."""
        uv = self.project / "uv"
        if not self.temporary.exists():
            self.temporary.mkdir(parents=True)
            uv.mkdir()
            (uv / "__init__.py").write_text(f"def find_uv_bin(): return {str(uv / 'uv')!r}\n")
            fake_uv(uv / "uv", calls=uv / "calls", body="sleep 0.2; touch $site/half; sleep 0.2", resolving="sleep 0.1")
        verb, *words = COMMANDS[name]
        if verb in RUNS:
            words += [*self.environments, "--fixtures", str(stub.MODELS)]
        if again and verb in RESUMABLE and any(self.project.glob("reports/*/plan.json")):
            words = ["--resume", "last"]
        return subprocess.Popen(
            (sys.executable, "-m", "harness", "--project", self.project, verb, *words),
            cwd=ROOT,
            env={
                "PATH": f"{os.path.dirname(os.path.realpath(sys.executable))}:/usr/bin:/bin",
                "HOME": str(self.project),
                "TMPDIR": str(self.temporary),
                "PYTHONPATH": str(self.project),
            },
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )

    def answer(self, name: str, *, again: bool = False) -> Answer:
        """Return the exit code of a command and what it concludes, without what differs from time to time."""
        out, errors = (process := self.start(name, again=again)).communicate(timeout=DEADLINE_S)
        if process.returncode in (2, 3, 5) or "Traceback" in errors:
            return process.returncode, errors[-500:]
        if COMMANDS[name][0] == "compat":
            (report,) = (cli.read_report(path.parent) for path in self.project.glob("reports/*/report.json"))
            timed = set()
            for row in report["judgement"]["rows"]:
                for cell in (cell for cell in row["cells"] if cell["scenario"] == TIMING):
                    timed.add(cell["cell"])  # whether a difference of times is decided hangs on noise
                    cell |= {"status": "", "findings": ()}
                    row["status"] = ""
            explained = [(one["model"], one["answer"]) for one in report["explained"]]
            causes = [
                (cause["id"], cause["models"]) for cause in report["causes"] if not timed.issuperset(cause["cells"])
            ]
            return process.returncode, (cli.judgement_of(report), causes, explained)
        if name == "golden":
            names = (str(path.relative_to(self.project)) for path in self.project.glob("golden/**/*"))
            return process.returncode, sorted(names)
        said = re.sub(r"[\d.]+( (ms|s|min)\b)?", "#", out.replace(str(self.project), "")).split()
        return process.returncode, " ".join(said)

    def left(self) -> list[str]:
        """Return the drafts and temporary files of a command that is over."""
        names = ("*.part", "*.draft", "*.asking", "*.temporary")
        found = {path for name in names for path in self.project.rglob(name)}
        return sorted(str(path.relative_to(self.project)) for path in found.union(self.temporary.iterdir()))


def attack(count: int = COUNT, seed: int = 18) -> list[str]:
    """Return what went wrong in so many kills, one line each."""
    ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, 1)  # whatever a killed command leaves becomes a child of this one
    with tempfile.TemporaryDirectory(prefix="kills-") as folder:
        judged = made(Path(folder))
        return kill_each(judged, uninterrupted(judged), count, random.Random(seed))


def made(folder: Path) -> Gate:
    """Return a project with a run that was judged."""
    sides = {"old": "2.1.2", "new": "2.6.0"}
    interpreters = {side: stub.make_environment(folder / side, version=sides[side]).interpreter for side in sides}
    judged = Gate(folder / "judged", [word for side in sides for word in ("--env", f"{side}={interpreters[side]}")])
    judged.answer("compat")
    return judged


def uninterrupted(judged: Gate) -> dict[str, tuple[Answer, float]]:
    """Return what each command answers where nobody kills it, and how many seconds that takes."""
    known = {}
    for name in COMMANDS:
        begin = time.monotonic()
        known[name] = prepared(judged, name, f"whole-{name}").answer(name), time.monotonic() - begin
    return known


def kill_each(judged: Gate, known: Mapping[str, tuple[Answer, float]], count: int, chance: random.Random) -> list[str]:
    """Kill the commands in turn, ``count`` times in all, and return what went wrong, one line each."""
    wrong: list[str] = []
    tries = hits = 0
    while hits < count:
        name = list(COMMANDS)[hits % len(COMMANDS)]
        answer, lasts_s = known[name]
        tries, moment_s = tries + 1, chance.uniform(0.0, lasts_s)
        gate = prepared(judged, name, f"{tries}")
        found = killed(gate, name, moment_s, answer)
        if found is not None:
            hits += 1
            wrong += [f"{name}, killed after {moment_s:.2f} s: {what}" for what in found]
        shutil.rmtree(gate.project, ignore_errors=True)
    return wrong


def prepared(judged: Gate, name: str, folder: str) -> Gate:
    """Return a project in which the command finds what it works on, and what is compiled once for all of them."""
    gate = Gate(judged.project.with_name(folder), judged.environments)
    if name == "golden":
        shutil.copytree(judged.project, gate.project, symlinks=True)
    elif name != "env":
        shutil.copytree(judged.project / ".cache", gate.project / ".cache")
    return gate


def killed(gate: Gate, name: str, moment_s: float, answer: Answer) -> list[str] | None:
    """Kill a command, repeat it, and return what is otherwise than where nobody kills it; None if it ended before."""
    wrong = []
    process = gate.start(name)
    try:
        process.communicate(timeout=moment_s)
    except subprocess.TimeoutExpired:
        process.kill()
        process.communicate()
    if process.returncode >= 0:
        return None
    if not stub.eventually(lambda: not stub.descendants(), within_s=GONE_S):
        wrong.append(f"alive after {GONE_S:.0f} s: {list(stub.descendants().values())}")
    found = gate.answer(name, again=True)
    if found != answer:
        wrong.append(f"{found} and not {answer}")
    left = gate.left()
    return [*wrong, *([f"left: {', '.join(left)}"] if left else [])]


if __name__ == "__main__":
    print(*attack(int(sys.argv[1])), sep="\n")
