"""Scenarios of servers that are asked for: how often does each planted case fail as planted, and its healthy twin not?

Every process is a new one. A case counts where its model ends as planted, a twin where nothing fails. Of hangs it is
measured how long after the last event the process was proven to hang, looked into and ended.
"""

import json
import os
import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from harness.domain.diagnosis import Setting
from harness.domain.outcome import Outcome
from harness.domain.plan import Plan
from harness.domain.probe import ProbeResult, model_of
from harness.probing.facts import Answered, Effects, Probed, WithWorker
from harness.settings.mitigations import MITIGATIONS
from harness.startup.native import build_workers
from harness.store import probe_files
from harness.worker import wire
from tests.integration.servers import answered, launcher, planned, provisioned

CONCURRENCY, BREAKS = "tests/integration/concurrency", "fixtures/breaks"
BOTH = ("libtorch", "python")
HANG_WITHIN_S = 5.0


@dataclass(frozen=True)
class Case:
    """A planted case of a scenario, and the twin that comes through: another model, or the same with a cure.

    Attributes:
        phase: in which it fails, empty for any; ``only``: the release that has it, empty for all.
    """

    scenario: str
    model: str
    twin: str
    outcome: Outcome
    phase: str = wire.CALL
    workers: Sequence[str] = BOTH
    cure: tuple[Setting, ...] = ()
    only: str = ""


CASES = (
    Case("exit", "straight", "straight", Outcome.CRASH, wire.EXIT, cure=(MITIGATIONS["join threads before exit"],)),
    Case("prefork_cold", "wild_read", "straight", Outcome.CRASH),
    Case("prefork", "fork_join", "straight", Outcome.HANG),
    Case(
        "python_keeping",
        "speculative_cascade",
        "speculative_cascade_in_line",
        Outcome.HANG,
        wire.LOAD,
        workers=("python",),
        only="2.15.0",
    ),
    Case("rolling", "worn_out", "worn_never", Outcome.CRASH, phase=""),
)


def main(times: int, releases: Sequence[str]) -> int:
    """Print the table for a pair of releases; return 0 if every process of every case and twin came out as planned."""
    begin_load = os.getloadavg()[0]
    print(f"{'scenario':16}{'worker':10}{'release':14}{'planted':12}{'twin':12}{'hang seen after':>16}", flush=True)
    with tempfile.TemporaryDirectory(prefix="gate-servers-") as folder:
        plan = _plan(folder, releases)
        with provisioned(Path(folder), plan) as (first, effects):
            facts = build_workers(Probed(**Answered.known(answered(first, effects)), alone={}), effects)
            assert facts.worker == "libtorch", facts.worker_notes
            right = [row for case in CASES for row in _rows(case, facts, effects, times)]
    print(f"load average {begin_load:.1f} before, {os.getloadavg()[0]:.1f} after")
    return int(not all(right))


def _plan(folder: str, releases: Sequence[str]) -> Plan:
    old, new = releases
    plan = planned(Path(folder), CONCURRENCY, also=(BREAKS,), overrides={"old": old, "new": new})
    wanted = {name for case in CASES for name in (case.model, case.twin)}
    return replace(plan, models=tuple(model for model in plan.models if model.name in wanted))


def _rows(case: Case, facts: WithWorker, effects: Effects, times: int) -> Iterator[bool]:
    for worker in case.workers:
        for side in ("old", "new"):
            yield _row(case, replace(facts, worker=worker), effects, side, times)


def _row(case: Case, facts: WithWorker, effects: Effects, side: str, times: int) -> bool:
    """Print how often the case ended as planted and its twin well, in one release; return whether always."""
    release = effects.environments[side].name
    has_it = case.only in release
    planted = launcher(case.scenario, facts, effects, side=side)
    healthy = replace(planted, settings=case.cure)
    shown = well = 0
    after_s = [0.0]
    for number in range(times):
        probe = planted.probe([case.model], number)
        if probe.outcome is Outcome.HANG:
            after_s.append(_since_last_event_s(probe))
        shown += _shows_as_planted(case, probe) if has_it else probe.outcome is Outcome.COMPLETED
        well += healthy.probe([case.twin], 1000 + number).outcome is Outcome.COMPLETED
    hang = f"{max(after_s):.1f} s" if len(after_s) > 1 else ""
    share = f"{shown} of {times}" if has_it else f"(clean {shown} of {times})"
    print(
        f"{case.scenario:16}{facts.worker:10}{release:14}{share:12}{f'{well} of {times}':12}{hang:>16}".rstrip(),
        flush=True,
    )
    return shown == well == times and max(after_s) <= HANG_WITHIN_S


def _shows_as_planted(case: Case, probe: ProbeResult) -> bool:
    ended = {item.way for item in probe.models if model_of(item.model) == case.model}
    return any(outcome is case.outcome and phase.startswith(case.phase) for outcome, phase in ended)


def _since_last_event_s(probe: ProbeResult) -> float:
    now_ns = time.monotonic_ns()
    lines = probe_files.read(Path(probe.directory), wire.EVENTS).splitlines()
    last_ns = max(int(json.loads(line)["ns"]) for line in lines if b'"beat"' not in line)
    return 1e-9 * (now_ns - last_ns)
