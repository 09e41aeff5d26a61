"""Processes that hold up a server, and their healthy twins: are they named, and nothing else?

``nox -s bench -- neighbours``: each case ``TIMES`` times, as ``python -m harness attach --system`` records it, on a
machine that does what it does: others that take CPUs are its noise. Server and neighbour run with a higher priority than
they, where that is allowed; so what is named beside the planted one is shown, with its share of the lost time.
"""

import contextlib
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

from harness.checks.interference.check import check
from harness.checks.interference.recorder import Recorder
from harness.core.interference import Interference
from harness.verdict.interference import culprits, share
from tests.programs import neighbours

TIMES, SECONDS, PERIOD_S = 20, 13.0, 0.3
FIRST_OF = 19 / 20
SAVES_S = 0.45
PRIORITY = -19
SETTLES_S = 0.3

Words = Sequence[object]
# A server, its neighbour by the server's PID, the neighbour's healthy twin; all by the folder for files.
CASES: dict[str, tuple[Callable[[Path], Words], Callable[[Path, int], Words], Callable[[Path, int], Words]]] = {
    "reads smaps": (
        lambda _: ("maps",),
        lambda _, pid: ("reads_smaps", pid, PERIOD_S),
        lambda *_: ("reads_smaps", "self", PERIOD_S),
    ),
    "burns the CPU": (
        lambda _: ("computes", 0),
        lambda *_: ("burns", 0, PERIOD_S, 0.25),
        lambda *_: ("burns", 1, PERIOD_S, 0.25),
    ),
    "fsyncs": (
        lambda folder: ("writes", folder / "log"),
        lambda folder, _: ("fsyncs", folder / "saved", SAVES_S),
        lambda *_: ("fsyncs", Path(tempfile.gettempdir(), "saved"), SAVES_S),  # a disk that the server does not use
    ),
}


def main(times: int = TIMES, disk: str = ".") -> int:
    """Print a table; return 0 if every planted case is named first often enough, and no twin ever."""
    first: dict[str, int] = dict.fromkeys(CASES, 0)
    alarms: dict[str, int] = dict.fromkeys(CASES, 0)
    own, intervals = [], []
    print(
        "| case | | load | interval | own CPU | pauses | named, with share of the lost time |\n|---|---|---|---|---|---|---|"
    )
    for _ in range(times):
        for case, (server, neighbour, twin) in CASES.items():
            for plants in (neighbour, twin):
                with tempfile.TemporaryDirectory(dir=disk) as folder, started(server(Path(folder))) as watched:
                    with started(plants(Path(folder), watched)) as planted:
                        seen = check(Recorder(watched).record(SECONDS), chosen=False)
                seen = replace(seen, culprits=culprits(seen))
                if plants is neighbour and planted not in seen.culprits:
                    print([one for one in seen.associations if one.pid == planted])
                is_first = seen.culprits[:1] == (planted,)
                first[case] += plants is neighbour and is_first
                alarms[case] += plants is twin and planted in seen.culprits
                own.append(seen.own_share)
                intervals.append(seen.interval_s)
                print(_row(case, "planted" if plants is neighbour else "twin", seen, planted), flush=True)
    print(f"own CPU: {max(own):.2%} at most; interval {min(intervals) * 1e3:.1f} to {max(intervals) * 1e3:.1f} ms")
    for case in CASES:
        print(f"{case}: named first in {first[case]} of {times}, its twin named in {alarms[case]} of {times}")
    return int(any(count < FIRST_OF * times for count in first.values()) or any(alarms.values()))


def _row(case: str, kind: str, seen: Interference, planted: int) -> str:
    names = {one.pid: one.command[-40:] for one in seen.active}
    best = {one.pid: share(one, seen) for one in reversed(seen.associations)}
    named = "; ".join(f"{'the planted one' if pid == planted else names[pid]} {best[pid]:.0%}" for pid in seen.culprits)
    counts = ", ".join(f"{pauses.count} {loss}" for loss, pauses in seen.pauses.items())
    load = f"{os.getloadavg()[0]:.1f}"
    return f"| {case} | {kind} | {load} | {seen.interval_s * 1e3:.1f} ms | {seen.own_share:.2%} | {counts} | {named or 'nothing'} |"


@contextmanager
def started(words: Words) -> Iterator[int]:
    """Run a program of ``neighbours`` and give its PID once it is ready."""
    process = subprocess.Popen(
        (sys.executable, neighbours.__file__, *map(str, words)),
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        start_new_session=True,  # Linux shares CPUs out by session first: its priority has a file of its own
    )
    try:
        with contextlib.suppress(OSError):
            Path(f"/proc/{process.pid}/autogroup").write_text(str(PRIORITY))
        assert process.stdout is not None and process.stdout.readline() == b"ready\n", words
        time.sleep(SETTLES_S)
        yield process.pid
    finally:
        process.kill()
        process.communicate()


if __name__ == "__main__":
    sys.exit(main(int(sys.argv[1]), *sys.argv[2:]) if sys.argv[1:] else main())
