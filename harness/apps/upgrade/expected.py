"""Says what is known, and how long the rest will take, before a run spends the time."""

from harness.artifacts.archive.code import CodeMemory
from harness.checks.latency.benchmark import expected_s as timing_s
from harness.checks.prediction.check import inspect_file
from harness.checks.prediction.known_releases import is_known, known_registry
from harness.checks.startup.initialize import groups_to_bring_up
from harness.checks.startup.launch import expected_s, load_seconds
from harness.core.plan import Plan
from harness.core.prediction import Prediction, Weight
from harness.machine.progress import Progress, rough_duration
from harness.probing.facts import Effects, WithWorker

# What is shorter needs no announcement, in seconds.
LONG_S = 120.0
# So many files are read for what is told before anything is installed.
AT_ONCE = 100
# A load that takes so long is named as what makes it long.
SLOW_LOAD_S = 3.0


def tell_predicted(plan: Plan, progress: Progress) -> None:
    """Print which given files will not load in the new release, before anything is installed or started.

    Only where the table of releases has it, and for so many files as are read in seconds; the run judges all.
    """
    given = [(model.name, model.given) for model in plan.models if model.given is not None][:AT_ONCE]
    if not given or not is_known(plan.new):
        return
    registry, memory = known_registry(str(plan.new.release)), CodeMemory()
    progress.stage("read", len(given))
    for name, file in given:
        inspected = inspect_file(file.path, {"new": registry}, memory, within=file.within)
        verdict = inspected.verdicts.get("new")
        progress.step(name)
        if verdict is not None and verdict.prediction is Prediction.FAILS:
            why = next(finding for finding in verdict.findings if finding.weight is Weight.STOPS)
            known = " (has a waiver)" if name in progress.waived else ""
            progress.note(f"foretold  {name}{known} will not load in {plan.new.name}: {why.words}")


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
