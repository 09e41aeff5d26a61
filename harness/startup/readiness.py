"""How long a server group takes to get ready, and each of its models, over the rounds that nothing disturbed."""

from collections.abc import Sequence

from harness.domain.outcome import Outcome
from harness.domain.probe import ProbeResult
from harness.probing.facts import GroupRun
from harness.scenarios import INITIALIZATIONS
from harness.startup.measures import busy_s, wall_s
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
    """Return the seconds from the first load to the last warm-up call, median over rounds; None without a whole one."""
    return median([spent for probe in undisturbed(run) if (spent := wall_s(probe.spans, BRINGING_UP)) is not None])


def median(values: Sequence[float]) -> float | None:
    """Return the middle value, of two the larger; None without any."""
    return sorted(values)[len(values) // 2] if values else None


def own_s(run: GroupRun, model: str) -> float:
    """Return what one model took of getting ready, median over the rounds that nothing disturbed."""
    return median([busy_s(probe.spans, BRINGING_UP, model) for probe in undisturbed(run)]) or 0.0
