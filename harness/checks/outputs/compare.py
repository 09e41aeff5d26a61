"""Compares the new release's outputs with the golden ones: alone, and next to other models."""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace

from harness.artifacts.tensors.outputs import Outputs, same_answers
from harness.artifacts.tensors.samples import like_golden, mark_sampled
from harness.checks.outputs.outputs import compare_outputs, hold_value
from harness.checks.outputs.tolerances import Precision
from harness.config.policy import model_policy
from harness.core.comparison import OutputComparison
from harness.core.models import ModelDeclaration
from harness.core.plan import ERROR
from harness.core.probe import ProbeResult
from harness.probing.facts import Compared, Effects, OldAnswers, Probed, Provisioned, Started
from harness.probing.old_answers import repeat_old_answers, was_asked_once
from harness.probing.verification import legible_outputs

Differs = Callable[[OutputComparison | None], bool]
"""Whether outputs are others than the golden ones: that is judged elsewhere."""


def compare(facts: Started, effects: Effects, differs: Differs) -> Compared:
    """Return the facts with an ``OutputComparison`` per (model, scenario) that answered and has a golden.

    Where answers differ by more than rounding, or something failed, the old release is asked for its noise first.
    """
    effects.progress.stage("compare")
    comparisons = dict(_compared(facts.alone, facts, differs))
    doubtful = [name for name in facts.alone if _wants_noise(name, comparisons, facts, differs)]
    if doubtful:
        known = repeat_old_answers(doubtful, facts, effects)
        facts = replace(facts, baselines={**facts.baselines, **known})
        comparisons.update(_compared(doubtful, facts, differs))
    return _asked_of_the_old_release(Compared(**Started.known(facts), comparisons=comparisons), differs)


def _compared(
    names: Collection[str], facts: Started, differs: Differs
) -> Iterator[tuple[tuple[str, str], OutputComparison]]:
    for name in names:
        as_alone = compare_alone(name, facts.alone[name], facts.baselines.get(name), facts)
        if as_alone is not None:
            yield (name, "alone"), as_alone
        for (model, scenario), item in facts.initialized.items():
            if model == name:
                answers = item.new.answers
                comparison = otherwise_than_alone(name, scenario, answers, as_alone, facts, differs=differs)
                if comparison is not None:
                    yield (name, scenario), comparison


def _wants_noise(
    name: str, comparisons: Mapping[tuple[str, str], OutputComparison], facts: Started, differs: Differs
) -> bool:
    """Whether the old release has been asked once about a model, and more of it is needed to judge the model.

    Noise and a reference excuse what is beyond the tolerance, or beyond a limit of the policy; nothing else does.
    """
    if not was_asked_once(name, facts):
        return False
    if facts.alone[name].models[0].failed or (name, "alone") not in comparisons:
        return True
    started = [item for (model, _), item in facts.initialized.items() if model == name]
    sides = [side for item in started for side in (item.new, item.old) if side is not None]
    if any(side.failures or side.served_otherwise for side in sides):
        return True
    own = [comparison for (model, _), comparison in comparisons.items() if model == name]
    if ERROR in model_policy(facts.plan, name).settings.limits:
        return not all(comparison.is_exact for comparison in own)
    return any(map(differs, own))


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
    name: str,
    scenario: str,
    answers: Sequence[tuple[str, str]],
    as_alone: OutputComparison | None,
    facts: Probed,
    *,
    differs: Differs,
) -> OutputComparison | None:
    """Return the comparison of the first copy that differs from the golden, else of the first; None without one."""
    baseline, alone = facts.baselines.get(name), facts.alone.get(name)
    if baseline is None or baseline.golden is None:
        return None
    known = facts.served_part(name, legible_outputs(alone.directory, name)) if alone is not None else None
    served = replace(baseline, golden=facts.served_part(name, baseline.golden))

    def compared(outputs: Outputs) -> OutputComparison | None:
        if known is not None and as_alone is not None and same_answers(known, outputs):
            return replace(as_alone, scenario=scenario)
        return compare_answers(name, outputs, served, facts, scenario)

    return _first_that_differs((compared(legible_outputs(directory, copy)) for copy, directory in answers), differs)


def otherwise_than_alone(
    name: str,
    scenario: str,
    answers: Sequence[tuple[str, str]],
    as_alone: OutputComparison | None,
    facts: Probed,
    *,
    differs: Differs,
) -> OutputComparison | None:
    """Return what shows whether a model's outputs next to others differ from those alone in the same release.

    Where alone it answers as the golden does, the golden stands for that, with its noise and its float64 reference;
    else what it answers alone does.
    """
    baseline, alone = facts.baselines.get(name), facts.alone.get(name)
    if as_alone is not None and not differs(as_alone):
        return worst_comparison(name, scenario, answers, as_alone, facts, differs=differs)
    if alone is None or baseline is None or not alone.models[0].made_calls:
        return None
    itself = OldAnswers(golden=facts.served_part(name, legible_outputs(alone.directory, name)))
    comparisons = (
        compare_answers(name, legible_outputs(directory, copy), itself, facts, scenario) for copy, directory in answers
    )
    return _first_that_differs(comparisons, differs)


def _first_that_differs(comparisons: Iterable[OutputComparison | None], differs: Differs) -> OutputComparison | None:
    """Return the first comparison that shows other outputs, else the first; those after it are not made."""
    first: OutputComparison | None = None
    for comparison in comparisons:
        if differs(comparison):
            return comparison
        first = first or comparison
    return first


def _asked_of_the_old_release(facts: Compared, differs: Differs) -> Compared:
    initialized = dict(facts.initialized)
    for (name, scenario), item in facts.initialized.items():
        if item.old is not None and differs(facts.comparisons.get((name, scenario))):
            as_alone = facts.comparisons.get((name, "alone"))
            before = worst_comparison(name, scenario, item.old.answers, as_alone, facts, differs=differs)
            initialized[name, scenario] = replace(item, old_differs=differs(before))
    return replace(facts, initialized=initialized)


def later_call_notes(facts: Compared, differs: Differs, agrees: Callable[[OutputComparison], bool]) -> tuple[str, ...]:
    """Return which models answer the same request otherwise at later calls than at call 0, in both releases alike.

    Releases are compared call by call: so what a fuser, or another path of a warm program, changes in either of them is
    no difference between them, and may still be more than whoever made the golden record expects.
    """
    notes = []
    for (name, scenario), comparison in facts.comparisons.items():
        baseline = facts.baselines.get(name)
        if scenario != "alone" or baseline is None or baseline.golden is None or not agrees(comparison):
            continue
        off = list(_off_later(name, baseline.golden, precision_of(name, facts), differs))
        if off:
            names, worst = dict.fromkeys(input_set for input_set, _ in off), max(share for _, share in off)
            by_how_much = f", by up to {worst:.2g} of the largest value" if worst else ""
            notes.append(
                f"{name}: later calls of {', '.join(names)} do not answer as call 0 does{by_how_much}, alike in both "
                "releases, which agree call by call: a fuser that begins after the first calls, or state of the model"
            )
    return tuple(notes)


def _off_later(name: str, golden: Outputs, precision: Precision, differs: Differs) -> Iterator[tuple[str, float]]:
    """Yield each input set and call whose answer rounding does not explain by call 0, and how far off it is at most."""
    later = {key: tree for key, tree in golden.calls.items() if key[1] > 0 and (key[0], 0) in golden.calls}
    first = {key: golden.calls[key[0], 0] for key in later}
    before, now = Outputs(calls=first, buffer=golden.buffer), Outputs(calls=later, buffer=golden.buffer)
    comparison = compare_outputs(name, "alone", golden=before, probe=now, precision=precision)
    for call in comparison.calls:
        if differs(replace(comparison, calls=(call,), missing_calls=(), unordered_missing=())):
            yield call.input_set, max((item.max_abs / item.scale for item in call.tensors if item.scale), default=0.0)


def compare_answers(
    name: str, answers: Outputs, baseline: OldAnswers | None, facts: Provisioned, scenario: str = "alone"
) -> OutputComparison | None:
    if baseline is None or baseline.golden is None:
        return None
    model = _declared(name, facts)
    comparison = compare_outputs(
        name,
        scenario,
        golden=baseline.golden,
        probe=like_golden(answers, baseline.golden),
        repeats=baseline.repeats,
        other_threads=baseline.other_threads,
        reference=baseline.reference,
        precision=precision_of(name, facts),
        unordered=model.unordered if model is not None else (),
    )
    return mark_sampled(comparison, baseline.golden, answers)


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
