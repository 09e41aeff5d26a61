"""Probes every artifact in the old release: the golden outputs, their noise, what was broken.

A run of the gate asks once at first. Where the new release then answers bit for bit the same, the two processes agree
as two of the old release would; noise and a float64 reference are asked for where it does not
(docs/adr/0093-noise-is-measured-where-answers-differ.md).
"""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import replace

from harness.artifacts.tensors.outputs import Outputs, same_answers
from harness.core.models import Artifact, ArtifactKind
from harness.core.outcome import Outcome
from harness.core.probe import ProbeResult, ServingProfile
from harness.machine import pool
from harness.probing.facts import Answered, Effects, Export, Exported, OldAnswers, Provisioned
from harness.probing.requests import Requests, floor_deadline, impatient, reference_name, with_own_loading
from harness.probing.verification import legible_outputs
from harness.store.run_folder import StoredBaseline


def probe_old_release(facts: Exported, effects: Effects, *, repeats: int | None = None) -> Answered:
    """Return the facts with the old release's answers per exported model; goldens of records where they stand in.

    ``repeats``: runs of each model that goes well in the first; the settings' by default.
    """
    plan = facts.plan
    exports = [export for export in facts.exports.values() if needs_old_answers(export)]
    requests = facts.requests
    side = "old" if plan.golden is None else "new"
    effects.progress.stage(f"golden outputs in {effects.environments[side].name}", len(exports))

    def baseline(export: Export) -> tuple[str, OldAnswers]:
        name = export.declaration.name
        if plan.golden is not None and "planted" not in export.declaration.tags:
            answers = _remembered(name, effects)
        else:
            own = with_own_loading(plan.settings.profile) if "planted" in export.declaration.tags else None
            answers = take_old_answers(export, facts, effects, requests, side, profile=own, repeats=repeats)
        effects.progress.step(name)
        return name, answers

    with effects.runner.sharing():
        baselines = dict(pool.each(baseline, exports, jobs=plan.settings.jobs))
    effects.run_dir.save_old_answers(
        {
            export.declaration.name: StoredBaseline(artifact=export.artifact, directory=answers.directory)
            for export in exports
            if (answers := baselines[export.declaration.name]).directory and export.artifact is not None
        }
    )
    return Answered(**Exported.known(facts), baselines=baselines)


def was_asked_once(name: str, facts: Answered) -> bool:
    """Whether the old release has answered for a model, and less than the settings ask; golden records never have."""
    baseline = facts.baselines.get(name)
    return baseline is not None and 0 < len(baseline.results) < facts.plan.settings.repeats


def repeat_old_answers(names: Collection[str], facts: Answered, effects: Effects) -> Mapping[str, OldAnswers]:
    """Return all that the settings ask of the old release about these models, of which it was asked a part before."""
    old = effects.environments["old"]
    effects.progress.stage(f"golden outputs in {old.name}, again where they differ", len(names))

    def repeated(name: str) -> tuple[str, OldAnswers]:
        answers = take_old_answers(facts.exports[name], facts, effects, facts.requests, "old")
        effects.progress.step(name)
        return name, answers

    with effects.runner.sharing():
        return dict(pool.each(repeated, names, jobs=facts.plan.settings.jobs))


def _remembered(name: str, effects: Effects) -> OldAnswers:
    kept = effects.golden.remembered(name, effects.folder("golden") / name)
    return OldAnswers(
        golden=kept.golden,
        repeats=kept.repeats,
        other_threads=kept.other_threads,
        reference=kept.reference,
        numerics=kept.numerics,
    )


def needs_old_answers(export: Export) -> bool:
    """Whether there is an artifact to probe; a planted defect is judged by its twin's golden, not its own."""
    return export.artifact is not None and export.declaration.planted_defect is None


def take_old_answers(
    export: Export,
    facts: Provisioned,
    effects: Effects,
    requests: Requests,
    side: str,
    *,
    profile: ServingProfile | None = None,
    repeats: int | None = None,
) -> OldAnswers:
    """Return what an exported artifact answers in one release, run as often as the settings say.

    ``repeats``: fewer runs, without the float64 reference and other thread counts, where the first goes well.
    """
    artifact = export.artifact
    assert artifact is not None, export.declaration.name
    settings = facts.plan.settings
    planned = 1 if export.declaration.tags[:1] == ("planted",) else settings.repeats
    probes: list[ProbeResult] = []
    lasting = "planted" not in export.declaration.tags

    def ask(*, referred: bool = False) -> None:
        known = [export.result, *probes]
        hung = any(probe is not None and probe.models[0].outcome is Outcome.HANG for probe in known)
        deadline = floor_deadline(impatient(settings.deadlines) if hung else settings.deadlines)
        request = requests.run(side, [artifact], deadline, repeat=len(probes), profile=profile)
        probes.append(effects.runner(requests.with_reference(request) if referred else request, lasting=lasting))

    ask()
    enough = planned if repeats is None or probes[0].models[0].failed else min(repeats, planned)
    while len(probes) < enough:
        is_last = len(probes) == planned - 1
        ask(referred=is_last and artifact.kind is ArtifactKind.TORCHSCRIPT)  # others hold their dtypes
    results = tuple(probe.models[0] for probe in probes)
    completed = any(result.outcome is Outcome.COMPLETED for result in results)
    # Where no run answers every request, those that are answered are what the new release is held against.
    answered = [(probe.models[0], legible_outputs(probe.directory, artifact.model)) for probe in probes]
    good = [
        answers for result, answers in answered if (result.outcome is Outcome.COMPLETED if completed else answers.calls)
    ]
    golden = good[0] if good else None
    reference = None
    if good and len(probes[-1].models) > 1 and probes[-1].models[-1].made_calls:
        reference = legible_outputs(probes[-1].directory, reference_name(artifact.model))
    return OldAnswers(
        results=results,
        directory=probes[0].directory if completed else "",
        golden=golden,
        repeats=_shared(golden, good[1:]),
        other_threads=(
            _shared(golden, _with_other_threads(artifact, facts, effects, side))
            if good and len(probes) == planned > 1
            else ()
        ),
        reference=reference,
        numerics=probes[0].data.get("numerics", {}),
    )


def _shared(golden: Outputs | None, others: Iterable[Outputs]) -> tuple[Outputs, ...]:
    """Return the others, each the golden itself where it answers the same: they are kept for the whole run."""
    return tuple(golden if golden is not None and same_answers(golden, other) else other for other in others)


def _with_other_threads(artifact: Artifact, facts: Provisioned, effects: Effects, side: str) -> tuple[Outputs, ...]:
    settings, outputs = facts.plan.settings, []
    for threads in settings.noise_threads:
        profile = replace(settings.profile, intra_op_threads=threads)
        probe = effects.runner(
            facts.requests.run(side, [artifact], floor_deadline(settings.deadlines), profile=profile), lasting=True
        )
        if probe.models[0].made_calls and (answers := legible_outputs(probe.directory, artifact.model)).calls:
            outputs.append(answers)
    return tuple(outputs)
