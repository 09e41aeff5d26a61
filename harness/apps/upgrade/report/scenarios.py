"""Facts of the initializations -> one row per scenario and server group of the report."""

import math
from collections.abc import Sequence

from harness.checks.latency.statistics import interval
from harness.checks.startup.initialize import scenarios_of, takes_part, threads_seen, works_alone
from harness.checks.startup.launch import load_seconds, threads_of
from harness.checks.startup.measures import growth_bytes, overlap
from harness.checks.startup.rates import upper_bound
from harness.checks.startup.readiness import init_logs, init_s, is_undisturbed, median, undisturbed
from harness.core.measurement import RatioEstimate
from harness.core.outcome import UNCLEAR, Outcome, Status
from harness.core.report import ScenarioReport, ScenarioSide
from harness.core.text import first_few
from harness.core.verdict import CellVerdict
from harness.probing.facts import GroupRun, ScenarioResult, Started
from harness.serving.scenarios import CYCLES, INITIALIZATIONS, NEW_THREAD, affordable, copies
from harness.worker import wire

# Less is the allocator's habit: arenas of a few threads. Healthy models stay far below (docs/evidence.md#memory).
GROWTH_BYTES = 4_000_000
# Of two rounds, one beside a burst of other work: -97 % to +5,300 % tells nothing.
TOO_WIDE = 4.0
NAMED = 5
# Kinds of findings that are no fault of the new release, in words that the models end.
HOW_TO_SERVE = {
    "shared_state": "models that keep state between calls in both releases, and must not be shared by threads",
    "shared_generator": "models that draw random numbers, whose values and shapes are not compared beside others",
    "sizes_refused": "models that refuse requests of other sizes in both releases, not covered by growing_shapes",
    "exit_crash": "models whose process ends by a signal in both releases when it exits while threads call them",
}


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
                worker=facts.worker_of(INITIALIZATIONS[run.scenario], run.members),
                threads=threads_seen(run),
                models=len(run.members),
                new=new,
                old=_side(before, [item.old for item in came]) if before is not None else None,
                hang_bound=upper_bound(new.failed, new.rounds),
                init_ratio=_telling(interval(init_logs(before, run))) if before is not None else None,
            )
        )
    order = {name: index for index, name in enumerate(facts.plan.scenarios)}
    return tuple(sorted(reports, key=lambda item: (order[item.scenario], item.group)))


def _telling(estimate: RatioEstimate | None) -> RatioEstimate | None:
    """Return an estimate, None where two rounds differ so much that its interval spans a factor of ``TOO_WIDE``."""
    wide = estimate is not None and math.isfinite(estimate.high) and estimate.high > TOO_WIDE * estimate.low
    return None if wide else estimate


def growth_notes(reports: Sequence[ScenarioReport]) -> tuple[str, ...]:
    """Return what a reader must know of memory that grows in every cycle of a scenario, clearly more than before."""
    notes = []
    for report in reports:
        scenario = INITIALIZATIONS[report.scenario]
        grows = report.new.growth_bytes or 0.0
        before = report.old.growth_bytes if report.old is not None else None
        if grows > max(GROWTH_BYTES / scenario.per_cycle(report.models), 2 * (before or 0.0)):
            was = "unknown" if before is None else f"{before / 1e6:.1f} MB"
            notes.append(
                f"{report.group}: memory grows by {grows / 1e6:.1f} MB with every {scenario.growth_per} in "
                f"{scenario.words} in the new release; in the old one: {was}"
            )
    return tuple(notes)


def fewer_loads_notes(facts: Started) -> tuple[str, ...]:
    """Return where slow files were loaded less often than a scenario asks for."""
    notes = {}
    for run in facts.group_runs:
        scenario, load_s, threads = INITIALIZATIONS[run.scenario], load_seconds(facts, run.members), threads_of(facts)
        asked = len(copies(scenario.write(run.members, threads)))
        made = len(copies(affordable(scenario, run.members, threads, load_s)))
        if made < asked:
            slowest = max(load_s, key=lambda name: load_s[name])
            notes[run.scenario, run.group] = (
                f"{run.group}: {made} loads in {scenario.words} in place of {asked}: "
                f"a load of {slowest} takes {load_s[slowest]:.1f} s"
            )
    return tuple(notes.values())


def new_thread_notes(reports: Sequence[ScenarioReport]) -> tuple[str, ...]:
    """Return what the new threads of each scenario that starts some have cost: threads of the process, and memory."""
    notes = []
    for report in reports:
        scenario = INITIALIZATIONS[report.scenario]
        if scenario.growth_per != NEW_THREAD:
            continue
        started = CYCLES * scenario.per_cycle(report.models)
        cost = [
            f"{side.os_threads} threads and {side.growth_bytes / 1e6:+.2f} MB each"
            for side in (report.new, report.old)
            if side is not None and side.os_threads is not None and side.growth_bytes is not None
        ]
        if cost:
            before = f"; in the old one: {cost[1]}" if len(cost) > 1 else ""
            notes.append(
                f"{report.group}: after {started} new threads of {scenario.words} the process has {cost[0]} in the "
                f"new release{before}"
            )
    return tuple(notes)


def untimed_notes(facts: Started) -> tuple[str, ...]:
    """Return which server groups seemed to start slower, by times that say nothing, and why."""
    groups: dict[str, list[str]] = {}
    for run in facts.group_runs:
        if run.side == "new" and run.why_untimed:
            groups.setdefault(run.why_untimed, []).append(f"{run.group} ({INITIALIZATIONS[run.scenario].words})")
    return tuple(
        f"seemed to get ready more slowly, and not measured again, for {why}: {first_few(names, NAMED)}; their times "
        "are left out"
        for why, names in groups.items()
    )


def fixed_size_notes(facts: Started) -> tuple[str, ...]:
    """Return which models a scenario of larger inputs left out, as nothing says which of their dimensions may vary."""
    notes = []
    for scenario in (item for item in scenarios_of(facts) if item.larger_inputs):
        names = [name for name in facts.alone if works_alone(name, facts) and not takes_part(scenario, name, facts)]
        if names:
            notes.append(
                f"{scenario.words}: not asked of {', '.join(names)}: no dimension differs between the input sets, so "
                "that none is known to vary; give it an input set of another size"
            )
    return tuple(notes)


def prefork_notes(reports: Sequence[ScenarioReport], intra_op_threads: int) -> tuple[str, ...]:
    """Return what a server that forks must know where its pools were asked for with one thread only."""
    if intra_op_threads != 1 or not any(INITIALIZATIONS[report.scenario].forks for report in reports):
        return ()
    words = (
        "processes were forked with an intra-op pool of one thread: with more of them, as torch has by itself, OpenMP "
        "may hang after the fork; where your server has more, ask with serving.intra_op_threads = 2"
    )
    return (words,)


def how_to_serve_notes(cells: Sequence[CellVerdict]) -> tuple[str, ...]:
    """Return what a run has learnt about how models must be served, each once: it decides nothing about the upgrade."""
    notes = []
    for kind, words in HOW_TO_SERVE.items():
        weighed = (Status.PASS, Status.SAME_FAIL)
        models = dict.fromkeys(cell.model for cell in cells if cell.status in weighed and kind in cell.kinds)
        if models:
            notes.append(f"{words}: {first_few(tuple(models), NAMED)}")
    return tuple(notes)


def _side(run: GroupRun, results: Sequence[ScenarioResult | None]) -> ScenarioSide:
    """Return the facts of one side; rounds within a process count where it came to its end."""
    scenario = INITIALIZATIONS[run.scenario]
    whole = undisturbed(run)
    clear = [probes for probes in run.rounds if not any(probe.outcomes & UNCLEAR for probe in probes)]
    failed = sum(any(not is_undisturbed(probe) for probe in probes) for probes in clear)
    return ScenarioSide(
        rounds=failed + (len(clear) - failed) * scenario.rounds,
        failed=failed,
        ready=sum(one is not None and one.result.outcome is Outcome.COMPLETED for one in results),
        init_s=init_s(run),
        load_overlap=median([ratio for probe in whole if (ratio := overlap(probe.spans, wire.LOAD)) is not None]),
        growth_bytes=median(
            [
                slope / scenario.per_cycle(len(run.members))
                for probe in whole
                if (slope := growth_bytes([size for _, size, _ in probe.memory])) is not None
            ]
        ),
        os_threads=max((probe.memory[-1][2] for probe in whole if probe.memory), default=None),
        max_rss_bytes=max((probe.max_rss_bytes or 0 for probe in run.probes), default=0) or None,
    )
