"""This checkout against another commit: the same runs of both in turn, as ratios of wall, CPU time and memory.

``nox -s bench -- against COMMIT``: the commit is checked out beside this one, both use the environments that are there,
and each builds what it compiles in a run that does not count. Runs of a pair follow each other, the first of them in turn,
so that what else the machine does meets both. A run's processes are one control group where this user may make one: its
CPU time is exact, and its memory is what the kernel counts as theirs alone (no page cache), read four times a second.
Without control groups the CPU time is that of processes that were waited for, and memory is not told.

What both decide is compared too: decision, exit code, status of each cell, models of each cause, planted defects that
were not caught. A difference fails.
"""

import argparse
import json
import os
import shlex
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

from harness.machine import control_groups
from harness.probing.kept_answers import SIZE_VARIABLE

PROJECT = Path(__file__).resolve().parents[1]
WORK = {
    "zoo": ("--fixtures", "fixtures/zoo"),
    "zoo-correctness": ("--fixtures", "fixtures/zoo", "--until", "correctness"),
    "examples": ("--artifacts", "examples/models"),
    "breaks": ("--fixtures", "fixtures/breaks", "--until", "correctness"),
    "zoo-again": ("--fixtures", "fixtures/zoo", "--until", "correctness"),
}
"""What is run: arguments of ``compat``, as both commits understand them."""
AGAIN = "-again"
"""How work is called before which each commit does the same once: what it keeps of that, it may use."""
EVERY_S = 0.25


@dataclass(frozen=True)
class Cost:
    """One run: wall and CPU seconds of all its processes, and their largest anonymous memory in bytes."""

    wall_s: float
    cpu_s: float
    memory_bytes: int | None


@dataclass(frozen=True)
class Answer:
    """What a run decides; equal where both commits say the same."""

    decision: str
    exit_code: int
    cells: tuple[tuple[str, str], ...]
    causes: tuple[tuple[str, ...], ...]
    missed: tuple[str, ...] = ()

    @classmethod
    def read(cls, report: Path) -> Self:
        """Read ``report.json`` as it lies there: the commits may differ in its version."""
        run: dict[str, Any] = json.loads(report.read_bytes())
        judgement = run["judgement"]
        cells = judgement.get("cells") or [cell for row in judgement["rows"] for cell in row["cells"]]
        return cls(
            decision=judgement["decision"],
            exit_code=judgement["exit_code"],
            cells=tuple(sorted((cell["cell"], cell["status"]) for cell in cells)),
            missed=tuple(planted["name"] for planted in judgement["planted_defects"] if not planted["caught"]),
            causes=tuple(sorted(tuple(cause["models"]) for cause in (run if "causes" in run else judgement)["causes"])),
        )


class Group:
    """A control group of its own for the processes of one run, in version 1 or 2, where it can be made."""

    def __init__(self, name: str) -> None:
        self.folders: dict[str, Path] = {}
        for controller in ("cpuacct", "memory"):
            for parent in control_groups.folders(controller):
                try:
                    (folder := parent / name).mkdir(exist_ok=True)
                except OSError:
                    continue
                self.folders[controller] = folder
                break

    def joining(self, command: Sequence[str]) -> list[str]:
        """Return the command that first enters the group."""
        enter = [f"echo $$ > {shlex.quote(str(folder))}/cgroup.procs" for folder in set(self.folders.values())]
        return ["sh", "-c", "; ".join([*enter, 'exec "$@"']), "sh", *command]

    def cpu_s(self) -> float | None:
        """CPU seconds of all that ran in the group, or None."""
        if (folder := self.folders.get("cpuacct")) is None:
            return None
        if (count := folder / "cpuacct.usage").exists():
            return int(count.read_text()) / 1e9
        return _number(folder / "cpu.stat", "usage_usec") / 1e6

    def memory_bytes(self) -> int | None:
        """Anonymous memory of the processes in the group now, or None."""
        if (folder := self.folders.get("memory")) is None:
            return None
        first_version = (folder / "memory.usage_in_bytes").exists()
        return _number(folder / "memory.stat", "total_rss" if first_version else "anon")

    def remove(self) -> None:
        for folder in set(self.folders.values()):
            folder.rmdir()


def _waited_s() -> float:
    own = os.times()
    return own.children_user + own.children_system


def _number(file: Path, name: str) -> int:
    return next((int(line.split()[1]) for line in file.read_text().splitlines() if line.split()[0] == name), 0)


def main(arguments: Sequence[str]) -> int:
    """Print a line per piece of work and quantity; return 0 if both commits decide alike."""
    parser = argparse.ArgumentParser(prog="nox -s bench -- against")
    parser.add_argument("commit", help="what this checkout is held against")
    parser.add_argument("work", nargs="*", default=list(WORK), help=f"default: {' '.join(WORK)}")
    parser.add_argument("--times", type=int, default=3, help="pairs of runs; default: 3")
    asked = parser.parse_args(arguments)
    if unknown := sorted({*asked.work} - {*WORK}):
        parser.error(f"{', '.join(unknown)}: choose from {', '.join(WORK)}")
    return against(asked.commit, asked.work, asked.times)


def against(commit: str, work: Sequence[str], times: int) -> int:
    """Run both commits in turn; 0 if they decide alike."""
    alike = True
    with (
        tempfile.TemporaryDirectory(prefix="gate-against-") as name,
        _checkout(commit, Path(name) / "before") as before,
    ):
        sides = {"before": before, "now": PROJECT}
        for checkout in sides.values():  # compiles, and reads the registries of operators
            _run(checkout, Path(name), ("--artifacts", str(PROJECT / "examples" / "models"), "--until", "correctness"))
        for piece in work:
            costs: dict[str, list[Cost]] = {side: [] for side in sides}
            answers: dict[str, list[Answer]] = {side: [] for side in sides}
            kept_gb = "1" if piece.endswith(AGAIN) else "0"
            for checkout in sides.values() if piece.endswith(AGAIN) else ():
                _run(checkout, Path(name), WORK[piece], kept_gb)
            for turn in range(times):
                for side in sorted(sides, reverse=turn % 2 == 1):
                    cost, answer = _run(sides[side], Path(name), WORK[piece], kept_gb)
                    costs[side].append(cost)
                    answers[side].append(answer)
                    print(f"  {piece} {side}: {cost.wall_s:.1f} s, {cost.cpu_s:.1f} s of CPU", flush=True)
            _print(piece, costs)
            alike &= _same(piece, answers)
    print(f"load of the machine {os.getloadavg()[0]:.1f}")
    return int(not alike)


@contextmanager
def _checkout(commit: str, folder: Path) -> Iterator[Path]:
    git = ["git", "-C", str(PROJECT), "worktree"]
    subprocess.run([*git, "add", "-q", "--detach", str(folder), commit], check=True)
    try:
        yield folder
    finally:
        subprocess.run([*git, "remove", "--force", str(folder)], check=True)


def _run(side: Path, scratch: Path, arguments: Sequence[str], kept_gb: str = "0") -> tuple[Cost, Answer]:
    """Return what one run of a checkout costs and decides; of answers of former runs it has so many gigabytes.

    Raises:
        RuntimeError: the run left no report.
    """
    group = Group(f"gate-against-{os.getpid()}")
    with (
        tempfile.TemporaryDirectory(dir=scratch, ignore_cleanup_errors=True) as out,
        open(Path(out) / "log", "wb") as log,
    ):
        command = [sys.executable, "-m", "harness", "compat", "--out", out, *arguments]
        waited_s = _waited_s()
        begin = time.monotonic()
        process = subprocess.Popen(
            group.joining(command),
            cwd=side,
            stdout=log,
            stderr=log,
            env={**os.environ, "PYTHONPATH": str(side), SIZE_VARIABLE: kept_gb},
        )
        peak = group.memory_bytes()
        while process.poll() is None:
            time.sleep(EVERY_S)
            peak = max(peak or 0, group.memory_bytes() or 0) or None
        wall_s = time.monotonic() - begin
        cpu_s = group.cpu_s()
        group.remove()
        report = next(Path(out).glob("*/report.json"), None)
        if report is None:
            raise RuntimeError(f"{shlex.join(command)}: {Path(log.name).read_text()[-2000:]}")
        answer = Answer.read(report)
    return Cost(wall_s, _waited_s() - waited_s if cpu_s is None else cpu_s, peak), answer


def _print(piece: str, costs: dict[str, list[Cost]]) -> None:
    for quantity, unit, scale in (("wall_s", "s", 1.0), ("cpu_s", "s of CPU", 1.0), ("memory_bytes", "GB", 1e-9)):
        values = {side: [getattr(cost, quantity) for cost in spent] for side, spent in costs.items()}
        if None in values["before"] + values["now"]:
            continue
        ratios = [now / before for now, before in zip(values["now"], values["before"], strict=True)]
        before, now = (statistics.median(values[side]) * scale for side in ("before", "now"))
        print(
            f"{piece:18}{before:8.1f} -> {now:8.1f} {unit:9} ratio {statistics.median(ratios):.2f} "
            f"[{min(ratios):.2f}, {max(ratios):.2f}] of {len(ratios)} pairs",
            flush=True,
        )


def _same(piece: str, answers: dict[str, list[Answer]]) -> bool:
    """Say what the commits decide otherwise; what changes from run to run of one commit is no difference."""
    both = {side: set(seen) for side, seen in answers.items()}
    if both["before"] & both["now"]:
        return True
    before, now = answers["before"][0], answers["now"][0]
    print(f"{piece}: {before.decision} ({before.exit_code}) -> {now.decision} ({now.exit_code})")
    statuses = dict(before.cells), dict(now.cells)
    for cell in sorted({*statuses[0], *statuses[1]}):
        was, became = (side.get(cell, "-") for side in statuses)
        if was != became:
            print(f"    {cell}: {was} -> {became}")
    if before.missed != now.missed:
        print(f"    planted defects missed: {', '.join(before.missed)} -> {', '.join(now.missed)}")
    for words, causes in (
        ("only before", set(before.causes) - set(now.causes)),
        ("only now", set(now.causes) - set(before.causes)),
    ):
        for models in sorted(causes):
            print(f"    cause {words}: {', '.join(models)}")
    return False
