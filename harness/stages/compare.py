"""Compares what the new release answered with the golden: alone, and beside other models."""

from collections.abc import Mapping
from dataclasses import replace

from harness.domain.comparison import OutputComparison
from harness.domain.outcome import Outcome, Status
from harness.domain.probe import ModelResult
from harness.numerics.compare import Outputs, compare_outputs
from harness.numerics.sampling import like_golden, mark_sampled
from harness.policy.cells import status_of
from harness.policy.numbers import output_findings
from harness.runtime.outputs import read_outputs
from harness.stages.concurrent import directories_of_old_group
from harness.stages.facts import Baseline, Effects, Facts


def compare(facts: Facts, effects: Effects) -> Facts:
    """Return the facts with an ``OutputComparison`` per (model, scenario) that answered and has a golden."""
    effects.progress.stage("compare", len(facts.alone))
    comparisons: dict[tuple[str, str], OutputComparison] = {}
    for name, probe in facts.alone.items():
        comparison = compare_model(name, "alone", probe.directory, facts.baselines.get(name), facts)
        if comparison is not None and _comparable(probe.models[0], facts.baselines[name]):
            comparisons[name, "alone"] = comparison
        effects.progress.step(name)
    for name, item in facts.initialized.items():
        if item.result.outcome is Outcome.COMPLETED:
            comparison = compare_model(name, "concurrent", item.directory, facts.baselines.get(name), facts)
            if comparison is not None:
                comparisons[name, "concurrent"] = comparison
    return _asked_of_the_old_release(replace(facts, comparisons=comparisons), effects)


def _comparable(result: ModelResult, baseline: Baseline) -> bool:
    """Whether both releases made every call, or both failed: then the calls before the failure are compared."""
    broken_before = any(before.outcome is not Outcome.COMPLETED for before in baseline.results)
    return (result.outcome is Outcome.COMPLETED) is not broken_before


def _asked_of_the_old_release(facts: Facts, effects: Effects) -> Facts:
    """Return the facts with ``old_differs`` set where a model answers otherwise beside others in both releases."""
    if "old" not in effects.environments:
        return facts
    initialized = dict(facts.initialized)
    for members in facts.plan.groups.values():
        differing = [name for name in members if _differs(facts.comparisons.get((name, "concurrent")))]
        if not differing:
            continue
        together = [name for name in members if name in facts.initialized]
        directories = directories_of_old_group(together, facts, effects)
        for name in differing:
            if name in directories:
                before = compare_model(name, "concurrent", directories[name], facts.baselines.get(name), facts)
                initialized[name] = replace(initialized[name], old_differs=_differs(before))
    return replace(facts, initialized=initialized)


def _differs(comparison: OutputComparison | None) -> bool:
    return comparison is not None and status_of(output_findings(comparison)) is Status.FAIL


def compare_model(
    name: str, scenario: str, directory: str, baseline: Baseline | None, facts: Facts
) -> OutputComparison | None:
    """Return the comparison of the outputs in ``directory`` with the golden of ``baseline``, None without one."""
    if baseline is None or baseline.golden is None:
        return None
    computes_in: Mapping[str, str] = facts.plan.settings.computes_in
    probe: Outputs = read_outputs(directory, name)
    comparison = compare_outputs(
        name,
        scenario,
        golden=baseline.golden,
        probe=like_golden(probe, baseline.golden),
        repeats=baseline.repeats,
        reference=baseline.reference,
        computes_in=computes_in.get(name),
    )
    return mark_sampled(comparison, baseline.golden, probe)
