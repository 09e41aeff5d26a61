"""Facts of the initializations -> one row per scenario and server group of the report."""

from collections.abc import Sequence

from harness.domain.outcome import UNCLEAR, Outcome
from harness.domain.report import ScenarioReport, ScenarioSide
from harness.probing.facts import GroupRun, ScenarioResult, Started
from harness.scenarios import INITIALIZATIONS
from harness.startup.initialize import threads_seen
from harness.startup.measures import growth_bytes, overlap
from harness.startup.rates import upper_bound
from harness.startup.readiness import init_s, is_undisturbed, median, undisturbed
from harness.worker import wire

# Less is the allocator's habit: arenas of a few threads. Healthy models stay far below (docs/evidence.md#memory).
GROWTH_BYTES = 4_000_000


def scenario_reports(facts: Started) -> tuple[ScenarioReport, ...]:
    """Return one report per scenario and server group, in the order of the plan."""
    old = {(run.scenario, run.group): run for run in facts.group_runs if run.side == "old"}
    reports = []
    for run in facts.group_runs:
        if run.side != "new":
            continue
        came = [facts.initialized[name, run.scenario] for name in run.members]
        before = old.get((run.scenario, run.group))
        new = _side(run, [item.new for item in came])
        reports.append(
            ScenarioReport(
                scenario=run.scenario,
                group=run.group,
                worker=facts.worker_of(INITIALIZATIONS[run.scenario]),
                threads=threads_seen(run),
                models=len(run.members),
                new=new,
                old=_side(before, [item.old for item in came]) if before is not None else None,
                hang_bound=upper_bound(new.failed, new.rounds),
            )
        )
    order = {name: index for index, name in enumerate(facts.plan.scenarios)}
    return tuple(sorted(reports, key=lambda item: (order[item.scenario], item.group)))


def growth_notes(reports: Sequence[ScenarioReport]) -> tuple[str, ...]:
    """Return what a reader must know of memory that grows in every cycle of a scenario, clearly more than before."""
    notes = []
    for report in reports:
        grows = report.new.growth_bytes or 0.0
        before = report.old.growth_bytes if report.old is not None else None
        if grows > max(GROWTH_BYTES, 2 * (before or 0.0)):
            was = "unknown" if before is None else f"{before / 1e6:.1f} MB"
            notes.append(
                f"{report.group}: memory grows by {grows / 1e6:.1f} MB in every cycle of "
                f"{INITIALIZATIONS[report.scenario].words} in the new release; in the old one: {was}"
            )
    return tuple(notes)


def _side(run: GroupRun, results: Sequence[ScenarioResult | None]) -> ScenarioSide:
    """Return the facts of one side; rounds within a process count where it came to its end."""
    within = INITIALIZATIONS[run.scenario].rounds
    whole = undisturbed(run)
    clear = [probes for probes in run.rounds if not any(probe.outcomes & UNCLEAR for probe in probes)]
    failed = sum(any(not is_undisturbed(probe) for probe in probes) for probes in clear)
    return ScenarioSide(
        rounds=failed + (len(clear) - failed) * within,
        failed=failed,
        ready=sum(one is not None and one.result.outcome is Outcome.COMPLETED for one in results),
        init_s=init_s(run),
        load_overlap=median([ratio for probe in whole if (ratio := overlap(probe.spans, wire.LOAD)) is not None]),
        growth_bytes=median(
            [slope for probe in whole if (slope := growth_bytes([size for _, size in probe.memory])) is not None]
        ),
        max_rss_bytes=max((probe.max_rss_bytes or 0 for probe in run.probes), default=0) or None,
    )
