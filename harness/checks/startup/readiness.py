"""How long a server group takes to get ready, and each of its models, over the rounds that nothing disturbed."""

import math
from collections.abc import Sequence

from harness.checks.startup.measures import busy_s, wall_s
from harness.checks.startup.slow_start import slow_start
from harness.config.policy import model_policy
from harness.core.outcome import Outcome
from harness.core.plan import INITIALIZATION_LIMIT
from harness.core.probe import ProbeResult
from harness.core.quantities import INITIALIZATION
from harness.core.verdict import Finding
from harness.probing.facts import GroupRun, Started
from harness.serving.scenarios import INITIALIZATIONS
from harness.worker import wire

BRINGING_UP = (wire.LOAD, wire.PREPARE, wire.CALL)


def undisturbed(run: GroupRun) -> list[ProbeResult]:
    """Return the processes that brought the whole group up; rounds within a process count where it came to its end."""
    within = INITIALIZATIONS[run.scenario].rounds
    whole = [probe for probes in run.rounds for probe in probes[: 1 if within == 1 else None]]
    return [probe for probe in whole if is_undisturbed(probe)]


def is_undisturbed(probe: ProbeResult) -> bool:
    """Whether a process, and every model in it, came to its end."""
    return probe.outcome is Outcome.COMPLETED and all(item.outcome is Outcome.COMPLETED for item in probe.models)


def init_s(run: GroupRun) -> float | None:
    """Return seconds from first load to last warm-up call, median over rounds; None without a whole, single start."""
    return median([spent for spent in init_times_s(run) if spent is not None])


def init_times_s(run: GroupRun) -> tuple[float | None, ...]:
    """Return the same of each round in its order; None for one that is no whole, single start."""
    single = INITIALIZATIONS[run.scenario].rounds == 1 and not run.why_untimed
    return tuple(
        wall_s(probes[0].spans, BRINGING_UP) if single and probes and is_undisturbed(probes[0]) else None
        for probes in run.rounds
    )


def init_logs(old: GroupRun, new: GroupRun) -> list[float]:
    """Return log(new / old) of each pair of rounds; the last ones pair, for they were measured in turn."""
    pairs = min(len(old.rounds), len(new.rounds))
    before, after = init_times_s(old)[len(old.rounds) - pairs :], init_times_s(new)[len(new.rounds) - pairs :]
    return [math.log(new_s / old_s) for old_s, new_s in zip(before, after, strict=True) if old_s and new_s]


def median(values: Sequence[float]) -> float | None:
    """Return the middle value, of two the smaller: what else a machine does only adds; None without any."""
    return sorted(values)[(len(values) - 1) // 2] if values else None


def own_s(run: GroupRun, model: str) -> float:
    """Return what one model took of getting ready, median over the rounds that nothing disturbed."""
    return median([busy_s(probe.spans, BRINGING_UP, model) for probe in undisturbed(run)]) or 0.0


def slow_starts(facts: Started) -> dict[tuple[str, str], Finding]:
    """Return (model, scenario) -> the finding on a slow group, kept with the model that itself slowed the most."""
    old = {(run.scenario, run.group): run for run in facts.group_runs if run.side == "old"}
    findings = {}
    for run in facts.group_runs:
        before = old.get((run.scenario, run.group))
        if run.side != "new" or before is None:
            continue
        new_s, old_s = init_s(run), init_s(before)
        if new_s is None or old_s is None:
            continue
        model = max(run.members, key=lambda name: own_s(run, name) - own_s(before, name))
        finding = slow_start(
            old_s,
            new_s,
            model_policy(facts.plan, model).settings.limits.get(INITIALIZATION, INITIALIZATION_LIMIT),
            group=run.group,
            words=INITIALIZATIONS[run.scenario].words,
        )
        if finding is not None:
            findings[model, run.scenario] = finding
    return findings
