"""What a program or a package answers, beside the golden outputs of the artifact as TorchScript."""

from collections.abc import Mapping
from dataclasses import replace

from harness.artifacts.tensors.outputs import Outputs
from harness.checks.migration.facts import Answers, Loader
from harness.checks.migration.structure import with_tuples
from harness.checks.outputs.compare import compare_answers
from harness.checks.outputs.findings import differs
from harness.core.comparison import OutputComparison
from harness.core.models import Artifact
from harness.core.outcome import Outcome
from harness.core.probe import ModelResult, ProbeResult
from harness.probing.alone import deadline_of
from harness.probing.facts import Answered, Effects, OldAnswers, ScenarioResult
from harness.probing.verification import legible_outputs


def ask(made: Artifact, loader: Loader, facts: Answered, effects: Effects, *, runtime: str = "python") -> Answers:
    deadline = deadline_of(facts.exports[made.model].declaration, facts)
    probe = effects.runner(facts.requests.run_exported(loader.side, made, deadline, runtime=runtime))
    load, *copies = probe.models
    calls = {item.name: result for item, result in zip(made.input_sets, copies, strict=True)}
    answered = {name: result for name, result in calls.items() if result.outcome is Outcome.COMPLETED}
    comparison, lists = None, False
    if answered:
        old = _to_sets(facts.baselines[made.model], answered)
        comparison, lists = _compared(made.model, _together(probe, answered), old, facts)
    return Answers(
        release=loader.name,
        probe=probe,
        load=load,
        calls=calls,
        comparison=comparison,
        lists=lists,
        evidence=effects.evidence(probe.directory),
    )


def in_torchscript(artifact: Artifact, loader: Loader, facts: Answered, effects: Effects) -> bool | None:
    """Return whether the artifact itself answers otherwise in that release; None where it does not answer there."""
    deadline = deadline_of(facts.exports[artifact.model].declaration, facts)
    probe = effects.runner(facts.requests.run(loader.side, [artifact], deadline))
    if probe.models[0].outcome is not Outcome.COMPLETED:
        return None
    outputs = legible_outputs(probe.directory, artifact.model)
    return differs(compare_answers(artifact.model, outputs, facts.baselines[artifact.model], facts))


def otherwise_when_served(model: str, result: ScenarioResult, facts: Answered) -> OutputComparison | None:
    """Return the comparison of the first copy that answers otherwise beside others than it should; None without."""
    for copy, directory in result.answers:
        comparison, _ = _compared(model, legible_outputs(directory, copy), facts.baselines[model], facts)
        if differs(comparison):
            return comparison
    return None


def _compared(model: str, outputs: Outputs, old: OldAnswers, facts: Answered) -> tuple[OutputComparison | None, bool]:
    """Return the comparison with golden outputs, None without any, and whether lists were taken for tuples in it."""
    if old.golden is None:
        return None, False
    alike = with_tuples(outputs, old.golden)
    return compare_answers(model, alike, old, facts), alike.calls != outputs.calls


def _to_sets(old: OldAnswers, answered: Mapping[str, ModelResult]) -> OldAnswers:
    if old.golden is None:
        return old
    calls = {key: tree for key, tree in old.golden.calls.items() if key[0] in answered}
    return replace(old, golden=replace(old.golden, calls=calls))


def _together(probe: ProbeResult, answered: Mapping[str, ModelResult]) -> Outputs:
    answers = [legible_outputs(probe.directory, result.model) for result in answered.values()]
    calls = {key: tree for outputs in answers for key, tree in outputs.calls.items()}
    effects = {key: effect for outputs in answers for key, effect in (outputs.effects or {}).items()}
    return Outputs(calls=calls, buffer=answers[0].buffer, effects=effects)
