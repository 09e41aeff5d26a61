"""Compares the new release's outputs with the golden ones: alone, and next to other models."""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace

from harness.artifacts.tensors.outputs import Outputs, same_answers
from harness.artifacts.tensors.samples import like_golden, mark_sampled
from harness.checks.outputs.findings import output_findings
from harness.checks.outputs.outputs import compare_outputs, hold_value
from harness.checks.outputs.tolerances import Precision
from harness.core.comparison import OutputComparison
from harness.core.findings import status_of
from harness.core.models import ModelDeclaration
from harness.core.outcome import Status
from harness.core.probe import ProbeResult
from harness.probing.facts import Compared, Effects, OldAnswers, Probed, Provisioned, Started
from harness.probing.verification import legible_outputs


def compare(facts: Started, effects: Effects) -> Compared:
    """Return the facts with an ``OutputComparison`` per (model, scenario) that answered and has a golden."""
    effects.progress.stage("compare", len(facts.alone))
    comparisons: dict[tuple[str, str], OutputComparison] = {}
    for name, probe in facts.alone.items():
        comparison = compare_alone(name, probe, facts.baselines.get(name), facts)
        if comparison is not None:
            comparisons[name, "alone"] = comparison
        effects.progress.step(name)
    for (name, scenario), item in facts.initialized.items():
        as_alone = comparisons.get((name, "alone"))
        comparison = otherwise_than_alone(name, scenario, item.new.answers, as_alone, facts)
        if comparison is not None:
            comparisons[name, scenario] = comparison
    return _asked_of_the_old_release(Compared(**Started.known(facts), comparisons=comparisons))


def compare_alone(
    name: str, probe: ProbeResult, baseline: OldAnswers | None, facts: Provisioned
) -> OutputComparison | None:
    """Return the comparison of a model alone with its golden; None without one, or where nothing was answered by both.

    Of a request that a release failed in, the calls that both have made are compared; where both failed in it, the new
    one also misses those that the old one alone has answered.
    """
    result = probe.models[0]
    if baseline is None or baseline.golden is None or not result.made_calls:
        return None
    before = {request.input_set for old in baseline.results for request in old.failed_requests}
    now = {request.input_set for request in result.failed_requests}
    failed, answers = before | now, legible_outputs(probe.directory, name)
    golden, answers = _in_both(baseline.golden, answers, now - before), _in_both(answers, baseline.golden, failed)
    if failed and not golden.calls and not answers.calls:
        return None
    return compare_answers(name, answers, replace(baseline, golden=golden), facts)


def _in_both(outputs: Outputs, other: Outputs, failed: Collection[str]) -> Outputs:
    """Return the outputs without the calls of failed requests that the other process has not answered."""
    if not failed:
        return outputs
    calls = {key: tree for key, tree in outputs.calls.items() if key[0] not in failed or key in other.calls}
    return replace(outputs, calls=calls)


def answers_hold_value(baseline: OldAnswers | None) -> bool:
    """Whether what is compared with holds anything that could differ; so it is taken to be where nothing is known."""
    return baseline is None or baseline.golden is None or hold_value(baseline.golden)


def worst_comparison(
    name: str, scenario: str, answers: Sequence[tuple[str, str]], as_alone: OutputComparison | None, facts: Probed
) -> OutputComparison | None:
    """Return the comparison with the golden of the first copy that differs, else of the first; None without one.

    Args:
        as_alone: what the comparison of the model alone gave; None where there was none.
    """
    baseline, alone = facts.baselines.get(name), facts.alone.get(name)
    if baseline is None or baseline.golden is None:
        return None
    known = facts.served_part(name, legible_outputs(alone.directory, name)) if alone is not None else None
    served = replace(baseline, golden=facts.served_part(name, baseline.golden))

    def compared(outputs: Outputs) -> OutputComparison:
        if known is not None and as_alone is not None and same_answers(known, outputs):
            return replace(as_alone, scenario=scenario)
        return _compare_outputs(name, scenario, outputs, served, facts)

    return _first_that_differs(compared(legible_outputs(directory, copy)) for copy, directory in answers)


def otherwise_than_alone(
    name: str, scenario: str, answers: Sequence[tuple[str, str]], as_alone: OutputComparison | None, facts: Probed
) -> OutputComparison | None:
    """Return what shows whether a model's outputs next to others differ from those alone in the same release.

    Where alone it answers as the golden does, the golden stands for that, with its noise and its float64 reference;
    else what it answers alone does.
    """
    baseline, alone = facts.baselines.get(name), facts.alone.get(name)
    if as_alone is not None and not differs(as_alone):
        return worst_comparison(name, scenario, answers, as_alone, facts)
    if alone is None or baseline is None or not alone.models[0].made_calls:
        return None
    itself = OldAnswers(golden=facts.served_part(name, legible_outputs(alone.directory, name)))
    return _first_that_differs(
        _compare_outputs(name, scenario, legible_outputs(directory, copy), itself, facts) for copy, directory in answers
    )


def _first_that_differs(comparisons: Iterable[OutputComparison]) -> OutputComparison | None:
    """Return the first comparison that shows other outputs, else the first; those after it are not made."""
    first: OutputComparison | None = None
    for comparison in comparisons:
        if differs(comparison):
            return comparison
        first = first or comparison
    return first


def _asked_of_the_old_release(facts: Compared) -> Compared:
    """Return the facts with ``old_differs`` set where a model answers otherwise beside others in both releases."""
    initialized = dict(facts.initialized)
    for (name, scenario), item in facts.initialized.items():
        if item.old is not None and differs(facts.comparisons.get((name, scenario))):
            before = worst_comparison(name, scenario, item.old.answers, facts.comparisons.get((name, "alone")), facts)
            initialized[name, scenario] = replace(item, old_differs=differs(before))
    return replace(facts, initialized=initialized)


def later_call_notes(facts: Compared) -> tuple[str, ...]:
    """Return which models answer the same request otherwise at later calls than at call 0, in both releases alike.

    Releases are compared call by call: so what a fuser, or another path of a warm program, changes in either of them is
    no difference between them, and may still be more than whoever made the golden record expects.
    """
    notes = []
    for (name, scenario), comparison in facts.comparisons.items():
        baseline = facts.baselines.get(name)
        if scenario != "alone" or baseline is None or baseline.golden is None or differs(comparison):
            continue
        off = list(_off_later(name, baseline.golden, precision_of(name, facts)))
        if off:
            names, worst = dict.fromkeys(input_set for input_set, _ in off), max(share for _, share in off)
            by_how_much = f", by up to {worst:.2g} of the largest value" if worst else ""
            notes.append(
                f"{name}: later calls of {', '.join(names)} do not answer as call 0 does{by_how_much}, alike in both "
                "releases, which agree call by call: a fuser that begins after the first calls, or state of the model"
            )
    return tuple(notes)


def _off_later(name: str, golden: Outputs, precision: Precision) -> Iterator[tuple[str, float]]:
    """Yield each input set and call whose answer rounding does not explain by call 0, and how far off it is at most."""
    later = {key: tree for key, tree in golden.calls.items() if key[1] > 0 and (key[0], 0) in golden.calls}
    first = {key: golden.calls[key[0], 0] for key in later}
    before, now = Outputs(calls=first, buffer=golden.buffer), Outputs(calls=later, buffer=golden.buffer)
    found = compare_outputs(name, "alone", golden=before, probe=now, precision=precision)
    for call in found.calls:
        if differs(replace(found, calls=(call,), missing_calls=(), unordered_missing=())):
            yield call.input_set, max((item.max_abs / item.scale for item in call.tensors if item.scale), default=0.0)


def differs(comparison: OutputComparison | None) -> bool:
    """Whether the outputs are others than the golden ones."""
    return comparison is not None and status_of(output_findings(comparison)) is Status.FAIL


def compare_model(
    name: str, directory: str, baseline: OldAnswers | None, facts: Provisioned
) -> OutputComparison | None:
    """Return the comparison of what a model alone left in ``directory`` with the golden of ``baseline``, if any."""
    return None if baseline is None else compare_answers(name, legible_outputs(directory, name), baseline, facts)


def compare_answers(name: str, answers: Outputs, baseline: OldAnswers, facts: Provisioned) -> OutputComparison | None:
    """Return the comparison of answers with the golden of ``baseline``, if any."""
    return None if baseline.golden is None else _compare_outputs(name, "alone", answers, baseline, facts)


def _compare_outputs(
    name: str, scenario: str, probe: Outputs, baseline: OldAnswers, facts: Provisioned
) -> OutputComparison:
    model = _declared(name, facts)
    assert baseline.golden is not None
    comparison = compare_outputs(
        name,
        scenario,
        golden=baseline.golden,
        probe=like_golden(probe, baseline.golden),
        repeats=baseline.repeats,
        other_threads=baseline.other_threads,
        reference=baseline.reference,
        precision=precision_of(name, facts),
        unordered=model.unordered if model is not None else (),
    )
    return mark_sampled(comparison, baseline.golden, probe)


def precision_of(name: str, facts: Provisioned) -> Precision:
    """Return what a model computes in: as it declares itself, else as the serving profile has it, else None."""
    model, settings = _declared(name, facts), facts.plan.settings
    declared = settings.computes_in.get(name) if model is None or model.tolerance is None else model.tolerance
    return declared or precision_under(settings.profile.numerics)


def precision_under(numerics: Mapping[str, bool | str]) -> str | None:
    """Return the dtype in which models compute under settings of the serving profile, None for their own."""
    cast = str(numerics.get("autocast", "off"))
    if cast != "off":
        return cast
    return {"high": "tf32", "medium": "bfloat16"}.get(str(numerics.get("matmul_precision")))


def _declared(name: str, facts: Provisioned) -> ModelDeclaration | None:
    """Return what declares a model; a planted defect is judged by what its own line says."""
    return next((model for model in (*facts.plan.models, *facts.plan.planted_defects) if model.name == name), None)
