"""Servers that are slower under load in one way, and a healthy one: what the comparison under load says of each.

``nox -s bench -- load``: each case ``TIMES`` times, as ``shadow`` measures it in about two minutes, with servers and
generator at a higher priority than others of this machine, where that is allowed. Beside it what a closed loop of one
caller, as long, says of the same server: new/old of its 99th percentile.
"""

import contextlib
import os
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import numpy as np

from harness.artifacts.traffic import TrafficWriter
from harness.checks.load import tail
from harness.checks.load.generator import Order
from harness.checks.load.measure import Generator, Load, Servers
from harness.core.load import LoadMeasurement, LoadPlan, LoadQuantity, LoadRow
from harness.core.measurement import CONTROL, NEW, OLD
from harness.core.outcome import Status
from harness.machine.progress import Progress
from harness.core.traffic import TrafficHeader, TrafficRequest
from harness.verdict.load import load_rows, suspects
from tests.programs import load_server
from tests.programs.planting import free_port

TIMES, PRIORITY = 20, -19
ENOUGH = 18 / 20
PLAN = LoadPlan(rate=200)
CASES = {"same": "", "tail": "p99", "p99": "p99", "ceiling": "ceiling", "errors": "failed", "drops": "failed"}
"""What is planted, and the row that has to be red."""


def main(times: int = TIMES, *only: str) -> int:
    """Print a table; return 0 if every planted case is found often enough, and the healthy one is never red."""
    print("| planted | found | other red | undecided rows | p50 | p99 | ceiling | closed loop p99 | late | s |")
    print("|---|---|---|---|---|---|---|---|---|---|")
    well = True
    for kind, wanted in CASES.items():
        if only and kind not in only:
            continue
        runs = [_run(kind) for _ in range(times)]
        reds = [{row.name for row in rows if row.status is Status.FAIL} for _, rows, _, _ in runs]
        hits = sum(wanted in red for red in reds)
        others = sum(bool(red - {wanted, "p90", "p50", "p99", "p99.9"}) if wanted else bool(red) for red in reds)
        open_rows = sum(row.status is Status.INCONCLUSIVE for _, rows, _, _ in runs for row in rows)
        changes = [
            _range([item for load, *_ in runs for item in load.quantities if item.name == name])
            for name in ("p50", "p99", "ceiling")
        ]
        closed = f"{min(run[2] for run in runs):.3f} to {max(run[2] for run in runs):.3f}"
        late = max(load.late_p99_s for load, *_ in runs) * 1e3
        took = np.median([seconds for *_, seconds in runs])
        found = f"{hits} of {times}" if wanted else ""
        print(
            f"| {kind} | {found} | {others} of {times} | {open_rows} | {' | '.join(changes)} | {closed} | {late:.2f} ms | {took:.0f} |",
            flush=True,
        )
        well = well and (hits >= ENOUGH * times if wanted else not others)
    return 0 if well else 1


def _range(items: list[LoadQuantity]) -> str:
    ratios = [item.ratio.ratio for item in items if item.ratio is not None]
    return f"{min(ratios):.3f} to {max(ratios):.3f}" if ratios else ""


def _run(kind: str) -> tuple[LoadMeasurement, tuple[LoadRow, ...], float, float]:
    begin = time.monotonic()

    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder, "requests.jsonl")
        with TrafficWriter(file, TrafficHeader()) as writer:
            writer.write(TrafficRequest(path="/", body=b"x" * 1000))
        with _first(), Generator(file, Path(folder)) as generator:
            measured = Load(PLAN, file, generator, Progress(enabled=False)).measure(_servers(kind), suspects)
            seconds = time.monotonic() - begin
            closed = _closed_loop(generator, kind, seconds / 4)
    return measured, load_rows(measured), closed, seconds


def _closed_loop(generator: Generator, kind: str, seconds: float) -> float:
    """Return new/old of the 99th percentile as one caller sees it who waits for each answer."""
    times: dict[str, float] = {}
    with _servers(kind)(0) as ports:
        for arm in (OLD, NEW):
            order = Order(port=ports[arm], at=(), first=0, connections=1, seconds=seconds, patience_s=5)
            times[arm] = tail.quantile([generator.send(order)[1]], 0.99)
    return times[NEW] / times[OLD]


@contextmanager
def _first() -> Iterator[None]:
    """Run this process and what it starts before others, where that is allowed."""
    usual = os.getpriority(os.PRIO_PROCESS, 0)
    with contextlib.suppress(PermissionError):
        os.setpriority(os.PRIO_PROCESS, 0, PRIORITY)
    try:
        yield
    finally:
        os.setpriority(os.PRIO_PROCESS, 0, usual)


def _servers(kind: str) -> Servers:
    @contextmanager
    def started(_: int) -> Iterator[Mapping[str, int]]:
        with contextlib.ExitStack() as opened:
            ports = {}
            for arm in (OLD, CONTROL, NEW):
                ports[arm] = free_port()
                words = (sys.executable, load_server.__file__, str(ports[arm]), kind if arm == NEW else "same")
                process = opened.enter_context(subprocess.Popen(words))
                opened.callback(process.kill)
            for port in ports.values():
                while True:
                    with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port)):
                        break
                    time.sleep(0.02)
            yield ports

    return started


if __name__ == "__main__":
    sys.exit(main(int(sys.argv[1]) if sys.argv[1:] else TIMES, *sys.argv[2:]))
