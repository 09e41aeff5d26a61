"""Says how long a run has to go, where that is long, before it spends the time."""

from harness.checks.latency.benchmark import expected_s as timing_s
from harness.checks.startup.initialize import groups_to_bring_up
from harness.checks.startup.launch import expected_s, load_seconds
from harness.machine.progress import rough_duration
from harness.probing.facts import Effects, WithWorker

# What is shorter needs no announcement, in seconds.
LONG_S = 120.0
# A load that takes so long is named as what makes it long.
SLOW_LOAD_S = 3.0


def tell_expected(facts: WithWorker, effects: Effects) -> None:
    """Print what initialization and timing are expected to take, with what makes it shorter."""
    if facts.plan.budget_s:
        return
    work = groups_to_bring_up(facts)
    init_s = sum(expected_s(scenario, members, facts) for scenario, _, members in work) / facts.plan.settings.jobs
    benchmark_s = timing_s(facts, effects) or 0.0
    if init_s + benchmark_s < LONG_S:
        return
    slowest = max(load_seconds(facts, list(facts.alone)).items(), default=("", 0.0), key=lambda item: item[1])
    why = f" (a load of {slowest[0]} takes {slowest[1]:.0f} s)" if slowest[1] >= SLOW_LOAD_S else ""
    timing = f", timing {rough_duration(benchmark_s)}" if benchmark_s else ""
    shorter = "--until correctness ends before timing, " if benchmark_s else ""
    effects.progress.note(
        f"to go   {rough_duration(init_s + benchmark_s)}: initialization {rough_duration(init_s)}{why}{timing}; "
        f"{shorter}--budget 5min leaves out what does not fit"
    )
