"""Failures: is each kind of error, crash and hang reported as that, every time and how soon; is slow taken for one?

Two faults are probed at a time, as a run would on two cores, with a deadline floor of ``FLOOR_S`` in place of a
minute: what is only overdue (busy in one call, waiting for someone outside) is reported after that floor, the rest
without it. Slow twins take longer than the floor, which the old release's time allows them.
"""

import json
import statistics
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from benchmarks.calibrate.corpus import declared, measured, planted, scratch, store
from benchmarks.calibrate.tables import group_name, grouped, share
from harness.checks.outputs.compare import compare_answers
from harness.checks.startup.native import build_workers
from harness.core.hang import Evidence, HangKind
from harness.core.models import ModelDeclaration
from harness.core.outcome import Outcome, Status
from harness.core.plan import Cell, Deadlines
from harness.core.probe import ProbeResult
from harness.core.verdict import CellVerdict
from harness.machine import pool
from harness.probing.alone import deadline_of
from harness.probing.facts import Answered, Effects, Probed, WithWorker
from harness.probing.verification import legible_outputs
from harness.verdict.cell import judge_alone
from tests.integration.servers import launcher

RESULT = "failures.json"
FLOOR_S = 0.7  # as of the planted defects that hang
REPEATS = 5
JOBS = 2
POOLS = "small_pools"


@dataclass(frozen=True)
class Trial:
    """One probe of one model: what it was taken for, and how long until that was known."""

    declaration: ModelDeclaration
    repeat: int
    verdict: CellVerdict
    evidence: Evidence | None
    seconds: float

    @property
    def kinds(self) -> tuple[str, ...]:
        """What the gate reported."""
        return tuple(dict.fromkeys(finding.kind for finding in self.verdict.findings))

    @property
    def flagged(self) -> bool:
        """Whether the gate holds it for defective."""
        return self.verdict.status is Status.FAIL

    @property
    def as_expected(self) -> bool:
        """Whether it is flagged as what was planted (a deadlock with a proof), or a healthy one is found healthy."""
        mark = self.declaration.planted_defect
        if mark is None:
            return self.verdict.status is Status.PASS
        proven = self.proof == HangKind.BLOCKED if mark.scenario == POOLS else True
        return self.flagged and mark.expect in self.kinds and proven

    @property
    def proof(self) -> str:
        """What kind of hang was proven; empty where none was."""
        return self.evidence.proof.kind.value if self.evidence is not None and self.evidence.proof is not None else ""


def main(arguments: Sequence[str] = ()) -> int:
    """Measure, write ``docs/calibration/failures.json``, return 0 if all was reported and nothing healthy was."""
    repeats = int(arguments[0]) if arguments else REPEATS
    about = {**measured(), "deadline_floor_s": FLOOR_S, "jobs": JOBS, "repeats": repeats}
    corpus = declared("failures")
    with scratch() as folder, planted(folder, corpus, scenarios=("alone", POOLS)) as (facts, effects):
        trials = tried(brisk(facts, effects), effects, corpus, repeats)
    found = report(trials, about)
    path = store(RESULT, found)
    print(f"{json.dumps(found['summary'], sort_keys=True)}\nwritten to {path}")
    return int(bool(found["summary"]["missed"] or found["summary"]["false_alarms"]))


def brisk(facts: Answered, effects: Effects) -> WithWorker:
    """Return the facts with a worker and the lower floor; the old release has answered under the ordinary one."""
    with_worker = build_workers(Probed(**Answered.known(facts), alone={}), effects)
    settings = replace(facts.plan.settings, deadlines=Deadlines(floor_s=FLOOR_S))
    return replace(with_worker, plan=replace(facts.plan, settings=settings))


def tried(facts: WithWorker, effects: Effects, declarations: Sequence[ModelDeclaration], repeats: int) -> list[Trial]:
    """Return ``repeats`` trials of each model; what needs the C++ worker is left out where there is none."""
    able = [item for item in declarations if facts.worker == "libtorch" or not _in_pools(item)]
    asked = [(item, repeat) for repeat in range(repeats) for item in able]
    return list(pool.each(lambda one: _trial(*one, facts, effects), asked, jobs=JOBS))


def _in_pools(declaration: ModelDeclaration) -> bool:
    return declaration.planted_defect is not None and declaration.planted_defect.scenario == POOLS


def _trial(declaration: ModelDeclaration, repeat: int, facts: WithWorker, effects: Effects) -> Trial:
    name = declaration.name
    twin = name if declaration.planted_defect is None else declaration.planted_defect.twin
    facts = replace(facts, baselines={**facts.baselines, name: facts.baselines[twin]})
    begin = time.monotonic()
    probe = _probe(declaration, repeat, facts, effects)
    seconds = time.monotonic() - begin
    comparison = None
    if probe.models[0].outcome is Outcome.COMPLETED and not _in_pools(declaration):
        comparison = compare_answers(name, legible_outputs(probe.directory, name), facts.baselines[twin], facts)
    verdict = judge_alone(
        Cell(name, "alone").id,
        old=(),
        new=probe.models[0],
        comparison=comparison,
        old_name="",
        new_name="new",
        exit_detail=probe.exit_detail,
        seen=probe.evidence,
    )
    return Trial(declaration, repeat, verdict, probe.evidence, seconds)


def _probe(declaration: ModelDeclaration, repeat: int, facts: WithWorker, effects: Effects) -> ProbeResult:
    if _in_pools(declaration):
        return launcher(POOLS, facts, effects).probe([declaration.name], repeat)
    artifact = facts.exports[declaration.name].artifact
    assert artifact is not None, facts.exports[declaration.name]
    deadline = deadline_of(declaration, facts)
    return effects.runner(facts.requests.run("new", [artifact], deadline, repeat=repeat))


def report(trials: Sequence[Trial], about: dict[str, Any]) -> dict[str, Any]:
    """Return the table by what is planted, and the sums."""
    planted_ones = [trial for trial in trials if trial.declaration.planted_defect is not None]
    healthy = [trial for trial in trials if trial.declaration.planted_defect is None]
    missed = [trial for trial in planted_ones if not trial.as_expected]
    alarms = [trial for trial in healthy if not trial.as_expected]
    by_kind = grouped(planted_ones, _expects)
    return {
        "detectors": {kind: share(by_kind[kind], lambda trial: trial.as_expected) for kind in sorted(by_kind)},
        "faults": {name: _row(group) for name, group in grouped(planted_ones, _name).items()},
        "healthy": {name: _row(group) for name, group in grouped(healthy, _name).items()},
        "measured": about,
        "summary": {
            "false_alarms": len(alarms),
            "healthy": len(healthy),
            "missed": len(missed),
            "missed_names": sorted({trial.declaration.name for trial in missed}),
            "planted": len(planted_ones),
        },
    }


def _expects(trial: Trial) -> str:
    return trial.declaration.planted_defect.expect if trial.declaration.planted_defect is not None else ""


def _name(trial: Trial) -> str:
    return group_name(trial.declaration)


def _row(trials: Sequence[Trial]) -> dict[str, Any]:
    seconds = [trial.seconds for trial in trials]
    return {
        "as_expected": sum(trial.as_expected for trial in trials),
        "expected": _expects(trials[0]),
        "flagged": sum(trial.flagged for trial in trials),
        "n": len(trials),
        "proof": ", ".join(sorted({trial.proof for trial in trials} - {""})),
        "reported": ", ".join(dict.fromkeys(kind for trial in trials for kind in trial.kinds)),
        "seconds_max": round(max(seconds), 2),
        "seconds_median": round(statistics.median(seconds), 2),
    }
