"""Takes artifacts out of TorchScript, one step after the other, each in a probe: convert, run, package, run."""

import hashlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

from harness.artifacts.tensors.decode import DecodeError
from harness.artifacts.tensors.recorded import read_inputs
from harness.artifacts.tensors.trees import Tree
from harness.checks.migration.answers import ask, in_torchscript
from harness.checks.migration.dimensions import batches, best_example, fixed_dimensions, held, larger, sizes_of
from harness.checks.migration.facts import COMES_THROUGH, Answers, Loader, Tried
from harness.checks.migration.parts import Part, parts_of
from harness.checks.migration.serving import Serving
from harness.checks.outputs.findings import differs
from harness.core.models import Artifact, ArtifactKind
from harness.core.outcome import UNCLEAR, Outcome
from harness.core.probe import ModelRun, ProbeResult, Script
from harness.machine import pool
from harness.probing.alone import deadline_of
from harness.probing.facts import Answered, Effects, Export
from harness.worker import wire

FORWARD = "forward"
Standing = Callable[[Tried], int]
"""How far a model has come on its way: more is further."""
ENDINGS = {ArtifactKind.PROGRAM: wire.PROGRAM, ArtifactKind.PACKAGE: wire.PACKAGE}
# Modules of the worker that import for seconds what torch.export needs.
CONVERTING, RUNNING = "successor.converting", "successor.programs"


def try_all(
    facts: Answered,
    loaders: Sequence[Loader],
    effects: Effects,
    *,
    package: bool,
    in_cpp: bool = False,
    standing: Standing | None = None,
) -> list[Tried]:
    """Return what was tried on each model of ``facts``, in order; each release ends its processes.

    Args:
        standing: how far a model has come by walking its graph; below ``COMES_THROUGH`` torch's own converter is asked
            too, and what comes further goes on. By default nothing is walked.
        facts: with the golden outputs, and the artifacts that people serve: answers and times are beside those.
        in_cpp: whether these are loaded, served and timed in C++ too: the first release has its worker.
    """
    way = _Way(facts, loaders, effects)
    effects.runner.preload(loaders[0].side, (CONVERTING, RUNNING))
    walks = standing is not None
    begun = [_begun(export, facts, loaders[0], in_parts=walks) for export in facts.exports.values()]
    tried = way.each("walk the graph" if walks else "convert", partial(way.convert, walk=walks), begun)
    for loader in loaders:
        if loader is not loaders[0]:
            effects.runner.preload(loader.side, (RUNNING,))
        tried = way.each("run", lambda model, loader=loader: way.run(model, loader), tried, loader)  # type: ignore[misc]
        if loader is loaders[0]:
            tried = [_of_each(way.in_torchscript, model) for model in tried]
            tried = way.each("try another batch", way.other_batch, tried, loader)
            if standing is not None:
                tried = way.each("convert", partial(way.by_converter, standing=standing), tried, loader)
                tried = way.each("one program a value", partial(way.by_value, standing=standing), tried, loader)
            if package:
                tried = way.each("package", way.package, tried, loader)
            if package and in_cpp:
                tried = way.each("package in C++", way.in_cpp, tried, loader)
                tried = way.served_and_timed(tried)
        effects.runner.release(loader.side)
    return tried


def _begun(export: Export, facts: Answered, loader: Loader, *, in_parts: bool) -> Tried:
    """Return the first facts of a model: its requests, or why it cannot be tried.

    ``in_parts``: whether other methods than ``forward`` are tried, and several programs where one is not enough.
    """
    name, artifact = export.declaration.name, export.artifact
    begun = Tried(model=name, release=loader.name, torch=loader.torch)
    if artifact is None:
        failure = export.failure
        why = f"{failure.type}: {failure.first_line}" if failure is not None else export.outcome.value
        return replace(begun, stopped=("not_exported", why))
    if not artifact.input_sets:
        return replace(begun, stopped=("no_requests", artifact.inputs_note or "nobody has given requests"))
    failed = next((result for result in facts.baselines[name].results if result.outcome is not Outcome.COMPLETED), None)
    if failed is not None:
        why = failed.failure.first_line if failed.failure is not None else failed.outcome.value
        return replace(begun, stopped=("busy_before" if failed.outcome in UNCLEAR else "fails_before", why))
    try:
        inputs = read_inputs(Path(artifact.inputs_dir))
    except DecodeError as error:
        return replace(begun, stopped=("no_requests", str(error)))
    begun = replace(begun, input_sets=artifact.input_sets, reset=artifact.reset)
    called = {name: (method, tree) for name, method, tree in inputs.entries if in_parts or method == FORWARD}
    return _with_requests(begun, called, parts_of(called))


def _with_requests(begun: Tried, called: Mapping[str, tuple[str, Tree]], parts: Sequence[Part]) -> Tried:
    if len(parts) > 1:
        return replace(begun, parts=tuple(_with_requests(replace(begun, part=part), called, [part]) for part in parts))
    requests = {name: called[name][1] for part in parts for name in part.sets}
    if not requests:
        return begun
    if begun.part is None and parts[0].method != FORWARD:
        begun = replace(begun, part=parts[0])
    sets = begun.input_sets if begun.part is None else [item for item in begun.input_sets if item.name in requests]
    return replace(begun, input_sets=tuple(sets), requests=requests, example=best_example(requests))


def _unconverted(tried: Tried) -> Tried:
    return replace(tried, conversion=None, program=None, answers=(), batch=(), other_batch=None)


def _of_each(step: Callable[[Tried], Tried], tried: Tried) -> Tried:
    if not tried.parts:
        return step(tried)
    return replace(tried, parts=tuple(step(part) for part in tried.parts))


@dataclass(frozen=True)
class _Way:
    facts: Answered
    loaders: Sequence[Loader]
    effects: Effects

    def each(
        self, verb: str, step: Callable[[Tried], Tried], tried: Sequence[Tried], loader: Loader | None = None
    ) -> list[Tried]:
        self.effects.progress.stage(f"{verb} in {(loader or self.loaders[0]).name}", len(tried))

        def done(model: Tried) -> Tried:
            result = _of_each(step, model)
            self.effects.progress.step(model.model)
            return result

        return pool.each(done, tried, jobs=self.facts.plan.settings.jobs)

    def convert(self, tried: Tried, *, walk: bool = False) -> Tried:
        if tried.stopped[0] or not tried.requests or tried.reset is not None:
            return tried
        archive, side = self.facts.artifact(tried.model), self.loaders[0].side
        sets = [tried.example, *(name for name in tried.requests if name != tried.example)]
        probe = self.effects.runner(self.facts.requests.convert(side, archive, sets, walk=walk))
        made = self.made(tried, probe, ArtifactKind.PROGRAM)
        tried = replace(tried, conversion=probe, evidence=self.effects.evidence(probe.directory), program=made)
        named = str(tried.mark("converted").get("example", ""))
        return replace(
            tried, walked=walk and made is not None, example=named if named in tried.requests else tried.example
        )

    def by_converter(self, tried: Tried, standing: Standing) -> Tried:
        """Return the model as it stands after torch's own converter, if that comes further than the walk."""
        if tried.conversion is None or tried.part is not None or standing(tried) == COMES_THROUGH:
            return tried
        converted = self.anew(_unconverted(tried))
        return converted if standing(converted) > standing(tried) else tried

    def by_value(self, tried: Tried, standing: Standing) -> Tried:
        """Return the model with a program for each value of a whole number, where one program holds that constant."""
        fixed = fixed_dimensions(sizes_of(tried), tried.example, tried.requests) if tried.program is not None else ()
        if (
            not tried.walked
            or tried.part is not None
            or not fixed
            or any(dimension.axis is not None for dimension in fixed)
        ):
            return tried
        method = tried.input_sets[0].method
        called = {name: (method, tree) for name, tree in tried.requests.items()}
        parted = _with_requests(_unconverted(tried), called, parts_of(called, whole_numbers=True))
        if not parted.parts:
            return tried
        parted = _of_each(partial(self.anew, walk=True), parted)
        return parted if standing(parted) > standing(tried) else tried

    def anew(self, tried: Tried, *, walk: bool = False) -> Tried:
        """Return what another conversion comes to in the release that converts."""
        converted = self.run(self.convert(tried, walk=walk), self.loaders[0])
        return self.other_batch(self.in_torchscript(converted))

    def run(self, tried: Tried, loader: Loader) -> Tried:
        if tried.program is None:
            return tried
        return replace(tried, answers=(*tried.answers, ask(tried.program, loader, self.facts, self.effects)))

    def in_torchscript(self, tried: Tried) -> Tried:
        if not tried.answers or not differs(tried.answers[0].comparison):
            return tried
        artifact = self.facts.artifact(tried.model)
        return replace(tried, in_torchscript=in_torchscript(artifact, self.loaders[0], self.facts, self.effects))

    def other_batch(self, tried: Tried) -> Tried:
        """Ask the artifact for another batch than that of all its requests, where the program has that one alone."""
        if tried.program is None or not tried.answers or not answers_well(tried.answers[0]):
            return tried
        request, artifact = tried.requests[tried.example], self.facts.artifact(tried.model)
        for places in batches(tried.example, tried.requests):
            fixed = held(sizes_of(tried), request, places)
            if not fixed:
                continue
            larger_inputs = larger(request, places)
            script = Script(
                threads=((("load", tried.model), ("calls", tried.model), ("answer", tried.model, "own", 1)),)
            )
            deadline = deadline_of(self.facts.exports[tried.model].declaration, self.facts)
            asked = self.facts.requests.run(self.loaders[0].side, [artifact], deadline, script=script)
            run = ModelRun(artifact=artifact, schedule=((tried.example, 1),), larger_inputs=larger_inputs)
            tried = replace(tried, batch=fixed, other_batch=self.effects.runner(replace(asked, runs=(run,))))
            if tried.other_batch is not None and tried.other_batch.models[0].outcome is not Outcome.RUNTIME_ERROR:
                return tried
        return tried

    def package(self, tried: Tried) -> Tried:
        if tried.program is None or not tried.answers or not answers_well(tried.answers[0]):
            return tried
        probe = self.effects.runner(self.facts.requests.package(self.loaders[0].side, tried.program))
        made = self.made(tried, probe, ArtifactKind.PACKAGE)
        tried = replace(tried, package=probe, package_evidence=self.effects.evidence(probe.directory), compiled=made)
        if made is None:
            return tried
        return replace(tried, packaged=ask(made, self.loaders[0], self.facts, self.effects))

    def in_cpp(self, tried: Tried) -> Tried:
        if tried.compiled is None or tried.packaged is None or not answers_well(tried.packaged):
            return tried
        if tried.part is not None:  # which of several packages a call is for, a server of ours in C++ does not know
            return tried
        return replace(tried, in_cpp=ask(tried.compiled, self.loaders[0], self.facts, self.effects, runtime="libtorch"))

    def served_and_timed(self, tried: Sequence[Tried]) -> list[Tried]:
        packages = {
            model.model: model.compiled
            for model in tried
            if model.compiled is not None and model.in_cpp is not None and answers_well(model.in_cpp)
        }
        serving = Serving(packages, self.facts, self.effects, self.loaders[0].side)
        return serving.timed(serving.served(tried))

    def made(self, tried: Tried, probe: ProbeResult, kind: ArtifactKind) -> Artifact | None:
        if probe.models[0].outcome is not Outcome.COMPLETED:
            return None
        path = Path(probe.directory) / (tried.model + ENDINGS[kind])
        if path.is_symlink() or not path.is_file():
            return None
        with path.open("rb") as stream:
            digest = hashlib.file_digest(stream, "sha256").hexdigest()
        archive, size = self.facts.artifact(tried.model), path.stat().st_size
        if tried.part is not None:
            schedule = self.facts.requests.model_run(archive).schedule
            own = tuple((name, calls) for name, calls in schedule if name in tried.requests)
            archive = replace(archive, input_sets=tried.input_sets, schedule=own)
        return replace(archive, path=str(path), kind=kind, digest=digest, size_bytes=size)


def answers_well(answers: Answers) -> bool:
    failed = answers.load.failed or any(call.failed for call in answers.calls.values())
    return not failed and not differs(answers.comparison)
