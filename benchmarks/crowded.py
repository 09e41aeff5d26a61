"""Silent processes on crowded CPUs: is a healthy one ever taken for blocked, and is a hang named all the same?

``nox -s bench -- crowded``: programs of ``tests/programs/still.py``, beside so many busy loops on two CPUs. What healthy
ones do is silent for a drawn time, longer than any proof takes there. Of hangs it is said how late they were named.
"""

import os
import random
import statistics
import sys
import tempfile
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from harness.checks.hang import watchdog
from harness.core.hang import Evidence, HangKind, HangProof
from harness.probing.conclusion import Ending
from tests.programs import watching

LOADS = (5, 15, 30)
HEALTHY = 200
# So many at a time: they wait, and start one after another.
BESIDE = 25
SILENT_S = (4.0, 20.0)
# A loop that looks every second is called blocked by design after ten of them.
RETRIES_S = 9.5
PLANTED = (
    "abba",
    "inherited_gil",
    "polls",
    "own_pipe",
    "forked_processes",
    "loads_while_serving",
    "beside_an_idle_pool",
)
CPUS = 2
SEED = 39


def main() -> int:
    """Return 0 if no healthy process was called blocked, and every planted hang was, at every load."""
    return run(LOADS)


def run(loads: Sequence[int]) -> int:
    """Return the same for these loads."""
    cpus = set(sorted(os.sched_getaffinity(0))[:CPUS])
    os.sched_setaffinity(0, cpus)
    return max(_at(load, HEALTHY, cpus) for load in loads)


def _at(load: int, healthy: int, cpus: set[int]) -> int:
    chance = random.Random(SEED)
    drawn = [chance.choice(watching.WELL) for _ in range(healthy)]
    well: dict[str, float | None] = {
        f"{name}:{index}": round(chance.uniform(SILENT_S[0], RETRIES_S if name == "retries" else SILENT_S[1]), 1)
        for index, name in enumerate(drawn)
    }
    sick: dict[str, float | None] = dict.fromkeys(PLANTED)
    with tempfile.TemporaryDirectory() as folder, watching.hogs(load, cpus):
        ends = _watched(Path(folder) / "well", well)
        hung = _watched(Path(folder) / "sick", sick)
    alarms = {name: end for name, end in ends.items() if end.killed or end.proof is not None or not end.event_log.bye}
    named = {name: end.proof for name, end in hung.items() if end.proof and end.proof.kind is HangKind.BLOCKED}
    late_s = [proof.silent_s for proof in named.values()]
    print(f"{load} busy loops on {CPUS} CPUs: {len(alarms)} alarms in {len(ends)} healthy processes; ", end="")
    print(f"{len(named)} of {len(hung)} hangs named", end="")
    print(
        f" after {min(late_s):.1f} to {max(late_s):.1f} s, {statistics.median(late_s):.1f} half the time" * bool(named)
    )
    print(
        "  hangs:",
        ", ".join(f"{name} {proof.silent_s:.1f} s ({proof.stalled_s:.1f} s stalled)" for name, proof in named.items()),
    )
    for name, end in alarms.items():
        print(f"  alarm: {name}, {well[name]} s: {end.proof or end.stacks} {end.evidence and end.evidence.remarks}")
    for name, end in hung.items():
        if name not in named:
            print(f"  not named: {name}: {end.proof}")
    return int(bool(alarms) or len(named) < len(hung))


def _threads_of(pid: int, _run_dir: Path, _proof: HangProof) -> Evidence:
    """Return what the kernel says of each thread, for whoever asks why there was an alarm."""
    tasks = sorted(Path(f"/proc/{pid}/task").iterdir())
    said = (" ".join((task / name).read_text().strip() for name in ("stat", "syscall", "schedstat")) for task in tasks)
    return Evidence(remarks=tuple(said))


def _watched(folder: Path, programs: Mapping[str, float | None]) -> dict[str, Ending]:
    def watch(name: str) -> Ending:
        child = watching.start(folder / name, name.partition(":")[0], programs[name])
        try:
            return watchdog.watch(child, folder / name, watching.PATIENT, investigate=_threads_of)
        finally:
            watching.end(child)

    with ThreadPoolExecutor(BESIDE) as pool:
        return dict(zip(programs, pool.map(watch, programs), strict=True))


if __name__ == "__main__":
    sys.exit(run([int(load) for load in sys.argv[1:]] or LOADS))
