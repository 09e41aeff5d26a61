"""Scenarios of servers that are asked for: how often does each planted case fail as planted, and its healthy twin not?

Every process is a new one. A case counts where its model ends as planted, a twin where nothing fails. Of hangs it is
measured how long after the last event the process was proven to hang, looked into and ended.
"""

import json
import os
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from harness.checks.startup.measures import growth_bytes
from harness.checks.startup.native import build_workers
from harness.core.diagnosis import Setting
from harness.core.outcome import Outcome
from harness.core.plan import Plan
from harness.core.probe import ProbeResult
from harness.probing.facts import Answered, Effects, Probed, WithWorker
from harness.serving.scenarios import CYCLES, NEW_SIZES, NEW_THREADS
from harness.serving.settings.mitigations import MITIGATIONS
from harness.store import probe_files
from harness.worker import wire
from tests.integration.servers import answered, launcher, planned, provisioned

CONCURRENCY = "tests/integration/checks/startup/concurrency"
BOTH = ("libtorch", "python")
HANG_WITHIN_S = 5.0


Shows = Callable[[ProbeResult], bool]


def _ends(outcome: Outcome, phase: str = "") -> Shows:
    """Return whether a process ends so, in that phase; empty for any."""
    return lambda probe: any(
        found is outcome and where.startswith(phase) for found, where in (item.way for item in probe.models)
    )


def _starts_threads(probe: ProbeResult) -> bool:
    """Return whether a new thread of the process, which lives on, has started another one."""
    counts = [threads for _, _, threads in probe.memory]
    return counts[-1] - counts[0] > 1.5 * (CYCLES - 1) * NEW_THREADS


def _grows(probe: ProbeResult) -> bool:
    """Return whether a new size costs more than a megabyte of memory."""
    growth = growth_bytes([size for _, size, _ in probe.memory])
    return growth is not None and growth / NEW_SIZES > 1e6


@dataclass(frozen=True)
class Case:
    """A planted case of a scenario, and the twin that comes through: another model, or the same with a mitigation.

    Attributes:
        shows: whether a process shows what is planted.
        profile: what differs from the configured serving profile.
    """

    scenario: str
    model: str
    twin: str
    shows: Shows
    workers: Sequence[str] = BOTH
    mitigation: tuple[Setting, ...] = ()
    profile: Mapping[str, object] = field(default_factory=dict)


INFERENCE = {"switches": {"inference_mode": True}}  # what "worn_out" and the cascade wait for
JOINED = (MITIGATIONS["join threads before exit"],)
CASES = (
    Case("exit", "straight", "straight", _ends(Outcome.CRASH, wire.EXIT), mitigation=JOINED),
    Case("prefork_cold", "wild_read", "straight", _ends(Outcome.CRASH, wire.CALL)),
    Case("prefork", "fork_join", "straight", _ends(Outcome.HANG, wire.CALL)),
    Case(
        "python_keeping",
        "speculative_cascade",
        "speculative_cascade_in_line",
        _ends(Outcome.HANG, wire.LOAD),
        workers=("python",),
        profile=INFERENCE,
    ),
    Case("rolling", "worn_out", "worn_never", _ends(Outcome.CRASH), profile=INFERENCE),
    Case("thread_per_request", "worn_out", "worn_never", _ends(Outcome.CRASH, wire.SERVE), profile=INFERENCE),
    Case("thread_per_connection", "wide", "narrow", _starts_threads, profile={"intra_op_threads": 2}),
    Case("thread_counts", "worn_out", "worn_never", _ends(Outcome.CRASH, wire.CALL), profile=INFERENCE),
    Case("growing_shapes", "caching", "caching_few", _grows),
)
SCENARIOS = tuple(case.scenario for case in CASES)


def main(times: int, releases: Sequence[str], only: Sequence[str]) -> int:
    """Print the rows of the scenarios ``only``; return 0 if every process of every case and twin came out as planned."""
    begin_load = os.getloadavg()[0]
    print(f"{'scenario':22}{'worker':10}{'release':14}{'planted':18}{'twin':12}{'hang seen after':>15}", flush=True)
    cases = [case for case in CASES if case.scenario in only]
    with tempfile.TemporaryDirectory(prefix="gate-servers-") as folder:
        plan = _plan(folder, releases, cases)
        with provisioned(Path(folder), plan) as (first, effects):
            facts = build_workers(Probed(**Answered.known(answered(first, effects)), alone={}), effects)
            assert facts.worker == "libtorch", facts.worker_notes
            right = [row for case in cases for row in _rows(case, facts, effects, times)]
    print(f"load average {begin_load:.1f} before, {os.getloadavg()[0]:.1f} after")
    return int(not all(right))


def _plan(folder: str, releases: Sequence[str], cases: Sequence[Case]) -> Plan:
    old, new = releases
    plan = planned(Path(folder), CONCURRENCY, overrides={"old": old, "new": new})
    wanted = {name for case in cases for name in (case.model, case.twin)}
    return replace(plan, models=tuple(model for model in plan.models if model.name in wanted))


def _rows(case: Case, facts: WithWorker, effects: Effects, times: int) -> Iterator[bool]:
    for worker in case.workers:
        for side in ("old", "new"):
            yield _row(case, replace(facts, worker=worker), effects, side, times)


def _row(case: Case, facts: WithWorker, effects: Effects, side: str, times: int) -> bool:
    """Print how often the case ended as planted and its twin well, in one release; return whether always."""
    release = effects.environments[side].name
    planted = launcher(case.scenario, facts, effects, side=side, **case.profile)
    healthy = replace(planted, settings=case.mitigation)
    shown = well = 0
    after_s = [0.0]
    for number in range(times):
        probe = planted.probe([case.model], number)
        if probe.outcome is Outcome.HANG:
            after_s.append(_since_last_event_s(probe))
        shown += case.shows(probe)
        twin = healthy.probe([case.twin], 1000 + number)
        well += twin.outcome is Outcome.COMPLETED and not case.shows(twin)
    hang = f"{max(after_s):.1f} s" if len(after_s) > 1 else ""
    share, twin_share = f"{shown} of {times}", f"{well} of {times}"
    print(
        f"{case.scenario:22}{facts.worker:10}{release:14}{share:18}{twin_share:12}{hang:>15}".rstrip(),
        flush=True,
    )
    return shown == well == times and max(after_s) <= HANG_WITHIN_S


def _since_last_event_s(probe: ProbeResult) -> float:
    now_ns = time.monotonic_ns()
    lines = probe_files.read(Path(probe.directory), wire.EVENTS).splitlines()
    last_ns = max(int(json.loads(line)["ns"]) for line in lines if b'"beat"' not in line)
    return 1e-9 * (now_ns - last_ns)
