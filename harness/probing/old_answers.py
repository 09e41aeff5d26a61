"""Probes every artifact in the old release, more than once: the golden outputs, their noise, what was broken."""

from collections.abc import Iterable
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


def probe_old_release(facts: Exported, effects: Effects) -> Answered:
    """Return the facts with the old release's answers per exported model; goldens of records where they stand in."""
    plan = facts.plan
    exports = [export for export in facts.exports.values() if needs_old_answers(export)]
    requests = facts.requests
    side = "old" if plan.golden is None else "new"
    effects.progress.stage(f"golden outputs in {effects.environments[side].name}", len(exports))

    def baseline(export: Export) -> tuple[str, OldAnswers]:
        name = export.declaration.name
        if plan.golden is not None and "planted" not in export.declaration.tags:
            found = _remembered(name, effects)
        else:
            own = with_own_loading(plan.settings.profile) if "planted" in export.declaration.tags else None
            found = take_old_answers(export, facts, effects, requests, side, profile=own)
        effects.progress.step(name)
        return name, found

    with effects.runner.sharing():
        baselines = dict(pool.each(baseline, exports, jobs=plan.settings.jobs))
    effects.run_dir.save_old_answers(
        {
            export.declaration.name: StoredBaseline(artifact=export.artifact, directory=found.directory)
            for export in exports
            if (found := baselines[export.declaration.name]).directory and export.artifact is not None
        }
    )
    return Answered(**Exported.known(facts), baselines=baselines)


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
) -> OldAnswers:
    """Return what an exported artifact answers in one release, run as often as the settings say."""
    artifact = export.artifact
    assert artifact is not None, export.declaration.name
    settings = facts.plan.settings
    repeats = 1 if export.declaration.tags[:1] == ("planted",) else settings.repeats
    probes: list[ProbeResult] = []
    for index in range(repeats):
        known = [export.result, *probes]
        hung = any(probe is not None and probe.models[0].outcome is Outcome.HANG for probe in known)
        deadline = floor_deadline(impatient(settings.deadlines) if hung else settings.deadlines)
        request = requests.run(side, [artifact], deadline, repeat=index, profile=profile)
        referred = 0 < index == repeats - 1 and artifact.kind is ArtifactKind.TORCHSCRIPT  # others hold their dtypes
        probes.append(effects.runner(requests.with_reference(request) if referred else request))
    results = tuple(probe.models[0] for probe in probes)
    completed = any(result.outcome is Outcome.COMPLETED for result in results)
    # Where no run answers every request, those that are answered are what the new release is held against.
    told = [(probe.models[0], legible_outputs(probe.directory, artifact.model)) for probe in probes]
    good = [
        answers for result, answers in told if (result.outcome is Outcome.COMPLETED if completed else answers.calls)
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
            _shared(golden, _with_other_threads(artifact, facts, effects, side)) if good and repeats > 1 else ()
        ),
        reference=reference,
        numerics=probes[0].data.get("numerics", {}),
    )


def _shared(golden: Outputs | None, others: Iterable[Outputs]) -> tuple[Outputs, ...]:
    """Return the others, each the golden itself where it answers the same: they are kept for the whole run."""
    return tuple(golden if golden is not None and same_answers(golden, other) else other for other in others)


def _with_other_threads(artifact: Artifact, facts: Provisioned, effects: Effects, side: str) -> tuple[Outputs, ...]:
    settings, found = facts.plan.settings, []
    for threads in settings.noise_threads:
        profile = replace(settings.profile, intra_op_threads=threads)
        probe = effects.runner(
            facts.requests.run(side, [artifact], floor_deadline(settings.deadlines), profile=profile)
        )
        if probe.models[0].made_calls and (answers := legible_outputs(probe.directory, artifact.model)).calls:
            found.append(answers)
    return tuple(found)
