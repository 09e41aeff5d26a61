"""Takes artifacts out of TorchScript, one step after the other, each in a probe: convert, run, package, run."""

import hashlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from harness.correctness.compare import compare_answers, differs
from harness.domain.models import Artifact
from harness.domain.outcome import Outcome
from harness.domain.probe import ModelResult, ProbeResult
from harness.probing.alone import deadline_of
from harness.probing.facts import Answered, Effects, Export, OldAnswers
from harness.probing.verification import legible_outputs
from harness.successor.dimensions import best_example
from harness.successor.facts import Answers, Tried
from harness.successor.structure import with_tuples
from harness.system import pool
from harness.tensors.decode import DecodeError
from harness.tensors.outputs import Outputs
from harness.tensors.recorded import read_inputs
from harness.worker import wire

FORWARD = "forward"
# Modules of the worker that import for seconds what torch.export needs.
CONVERTING, RUNNING = "successor.converting", "successor.programs"


@dataclass(frozen=True, kw_only=True)
class Loader:
    """A release: the name that the user gave it, and the one by which the runner knows it."""

    name: str
    side: str


def try_all(facts: Answered, loaders: Sequence[Loader], effects: Effects, *, package: bool) -> list[Tried]:
    """Return what was tried on each model of ``facts``, in order; each release ends its processes.

    Args:
        facts: with the golden outputs.
        loaders: where programs are run; the first one converts, and packages.
        package: whether packages of AOTInductor are made as well.
    """
    way = _Way(facts, loaders, effects)
    effects.runner.preload(loaders[0].side, (CONVERTING, RUNNING))
    tried = way.each(
        "convert", way.convert, [_begun(export, facts, loaders[0].name) for export in facts.exports.values()]
    )
    for loader in loaders:
        if loader is not loaders[0]:
            effects.runner.preload(loader.side, (RUNNING,))
        tried = way.each("run", lambda one, loader=loader: way.run(one, loader), tried, loader)  # type: ignore[misc]
        if loader is loaders[0]:
            tried = [way.in_torchscript(one) for one in tried]
            if package:
                tried = way.each("package", way.package, tried, loader)
        effects.runner.release(loader.side)
    return tried


def _begun(export: Export, facts: Answered, release: str) -> Tried:
    """Return the first facts of a model: its requests, or why it cannot be tried."""
    name, artifact = export.declaration.name, export.artifact
    begun = Tried(model=name, release=release)
    if artifact is None:
        failure = export.failure
        said = f"{failure.type}: {failure.first_line}" if failure is not None else export.outcome.value
        return replace(begun, stopped=("not_exported", said))
    if not artifact.input_sets:
        return replace(begun, stopped=("no_requests", artifact.inputs_note or "nobody has given requests"))
    failed = next((one for one in facts.baselines[name].results if one.outcome is not Outcome.COMPLETED), None)
    if failed is not None:
        said = failed.failure.first_line if failed.failure is not None else failed.outcome.value
        return replace(begun, stopped=("fails_before", said))
    try:
        inputs = read_inputs(Path(artifact.inputs_dir))
    except DecodeError as error:
        return replace(begun, stopped=("no_requests", str(error)))
    requests = {set_name: tree for set_name, method, tree in inputs.entries if method == FORWARD}
    begun = replace(begun, input_sets=artifact.input_sets, requests=requests, reset=artifact.reset)
    return replace(begun, example=best_example(requests)) if requests else begun


@dataclass(frozen=True)
class _Way:
    facts: Answered
    loaders: Sequence[Loader]
    effects: Effects

    def each(
        self, verb: str, step: Callable[[Tried], Tried], tried: Sequence[Tried], loader: Loader | None = None
    ) -> list[Tried]:
        """Return every model after one more step, as many at a time as the settings say."""
        self.effects.progress.stage(f"{verb} in {(loader or self.loaders[0]).name}", len(tried))

        def done(one: Tried) -> Tried:
            result = step(one)
            self.effects.progress.step(one.model)
            return result

        return pool.each(done, tried, jobs=self.facts.plan.settings.jobs)

    def convert(self, one: Tried) -> Tried:
        if one.stopped[0] or not one.requests or one.reset is not None:
            return one
        artifact = self.facts.artifact(one.model)
        probe = self.effects.runner(self.facts.requests.convert(self.loaders[0].side, artifact, one.example))
        return replace(one, conversion=probe, evidence=self.effects.evidence(probe.directory))

    def run(self, one: Tried, loader: Loader) -> Tried:
        program = self.made(one, one.conversion, wire.PROGRAM)
        if program is None:
            return one
        return replace(one, answers=(*one.answers, self.answers(one, program, loader)))

    def in_torchscript(self, one: Tried) -> Tried:
        """Ask, where the program answers otherwise, whether TorchScript itself does in that release."""
        if not one.answers or not differs(one.answers[0].comparison):
            return one
        artifact = self.facts.artifact(one.model)
        deadline = deadline_of(self.facts.exports[one.model].declaration, self.facts)
        probe = self.effects.runner(self.facts.requests.run(self.loaders[0].side, [artifact], deadline))
        if probe.models[0].outcome is not Outcome.COMPLETED:
            return one
        found = legible_outputs(probe.directory, one.model)
        return replace(one, in_torchscript=differs(compare_answers(one.model, found, self.golden(one), self.facts)))

    def package(self, one: Tried) -> Tried:
        program = self.made(one, one.conversion, wire.PROGRAM)
        if program is None or not one.answers or any(call.failed for call in one.answers[0].calls.values()):
            return one
        probe = self.effects.runner(self.facts.requests.package(self.loaders[0].side, program))
        one = replace(one, package=probe, package_evidence=self.effects.evidence(probe.directory))
        package = self.made(one, probe, wire.PACKAGE)
        if package is None:
            return one
        return replace(one, packaged=self.answers(one, package, self.loaders[0], packaged=True))

    def made(self, one: Tried, probe: ProbeResult | None, ending: str) -> Artifact | None:
        """Return the artifact that a probe has written, None where it has not come so far."""
        if probe is None or probe.models[0].outcome is not Outcome.COMPLETED:
            return None
        path = Path(probe.directory) / (one.model + ending)
        if path.is_symlink() or not path.is_file():
            return None
        with path.open("rb") as stream:
            digest = hashlib.file_digest(stream, "sha256").hexdigest()
        before = self.facts.artifact(one.model)
        return replace(before, path=str(path), digest=digest, size_bytes=path.stat().st_size)

    def answers(self, one: Tried, made: Artifact, loader: Loader, *, packaged: bool = False) -> Answers:
        deadline = deadline_of(self.facts.exports[one.model].declaration, self.facts)
        probe = self.effects.runner(self.facts.requests.run_exported(loader.side, made, deadline, packaged=packaged))
        load, *copies = probe.models
        calls = {item.name: result for item, result in zip(one.input_sets, copies, strict=True)}
        answered = {name: result for name, result in calls.items() if result.outcome is Outcome.COMPLETED}
        comparison, lists = None, False
        if answered:
            golden, found = self.golden(one, answered), _together(probe, answered)
            if golden.golden is not None:
                alike = with_tuples(found, golden.golden)
                lists, found = alike.calls != found.calls, alike
            comparison = compare_answers(one.model, found, golden, self.facts)
        return Answers(
            release=loader.name,
            probe=probe,
            load=load,
            calls=calls,
            comparison=comparison,
            lists=lists,
            evidence=self.effects.evidence(probe.directory),
        )

    def golden(self, one: Tried, answered: Mapping[str, ModelResult] | None = None) -> OldAnswers:
        """Return the old answers to the input sets that were answered, to all where nothing is said."""
        old = self.facts.baselines[one.model]
        if answered is None or old.golden is None:
            return old
        calls = {key: tree for key, tree in old.golden.calls.items() if key[0] in answered}
        return replace(old, golden=replace(old.golden, calls=calls))


def _together(probe: ProbeResult, answered: Mapping[str, ModelResult]) -> Outputs:
    """Return what all input sets have answered, as one model's outputs; each has answered under its own name."""
    found = [legible_outputs(probe.directory, result.model) for result in answered.values()]
    calls = {key: tree for one in found for key, tree in one.calls.items()}
    effects = {key: effect for one in found for key, effect in (one.effects or {}).items()}
    return Outputs(calls=calls, buffer=found[0].buffer, effects=effects)
