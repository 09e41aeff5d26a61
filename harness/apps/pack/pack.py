"""Golden bundles: ask the old release alone, and write one portable file per model."""

from dataclasses import replace
from pathlib import Path

from harness.apps.upgrade.pipeline import provisioned
from harness.apps.upgrade.plan import plan_of_probes
from harness.artifacts.bundles import write_bundle
from harness.artifacts.old_outputs import Remembered
from harness.checks.hang.story import failure_finding
from harness.core.errors import ConfigError, GateError, GoldenError
from harness.core.golden import Declared, GoldenRecord, Packed, Packing, Source
from harness.core.models import Artifact, ModelDeclaration
from harness.core.outcome import Outcome
from harness.core.plan import Plan
from harness.machine import clock
from harness.machine.progress import Progress
from harness.probing.export import export_models
from harness.probing.facts import Answered, Export, OldAnswers
from harness.probing.old_answers import probe_old_release
from harness.project import Project, shown_path
from harness.store.run_folder import RunDir
from harness.verdict.alone import not_made, unsupported_words
from harness.verdict.inputs import inputs_words


def pack(project: Project, into: Path) -> Packing:
    """Let the old release answer the selected models, and write bundles; what workers left stays where one failed."""
    plan = _plan(project)
    assert plan.old is not None
    name = plan.old.release or "old"
    with RunDir.create(project.reports, f"pack-{name}", clock.utc_now()) as run_dir:
        try:
            with provisioned(plan, {"old": plan.old}, run_dir, project) as (effects, first):
                facts = probe_old_release(export_models(first, effects), effects)
                project.progress.finish()
            packing = _packing(facts, into, project.progress)
        except GateError:
            run_dir.discard_if_empty()
            raise
        except KeyboardInterrupt:  # no later run goes on with it
            run_dir.discard()
            raise
        if packing.complete:
            run_dir.discard()
        return packing if packing.complete else replace(packing, evidence=shown_path(run_dir.path))


def _plan(project: Project) -> Plan:
    selected = project.selected()
    for model in selected.models:
        if model.given is not None and model.given.bundle:
            raise ConfigError(f"{model.where} is a golden bundle already", "name the artifacts themselves")
    old = project.side("old")
    return plan_of_probes(project, selected, project.settings, old=old, new=old)  # nothing is asked of a new one


def _packing(facts: Answered, into: Path, progress: Progress) -> Packing:
    progress.stage("write bundles", len(facts.plan.models))
    rows = []
    for model in facts.plan.models:
        rows.append(_packed(model, facts, into))
        progress.step(model.name)
    progress.finish()
    plan = facts.plan
    return Packing(producer=facts.fingerprints["old"], device=plan.device, rows=tuple(rows), notes=plan.notes)


def _packed(model: ModelDeclaration, facts: Answered, into: Path) -> Packed:
    export = facts.exports[model.name]
    baseline = facts.baselines.get(model.name, OldAnswers())
    note = inputs_words(export.artifact) if export.artifact is not None else ""
    why = _why_not(export, baseline, f"torch {facts.fingerprints['old'].torch}")
    if why:
        return Packed(model=model.name, why=why, note=note)
    assert export.artifact is not None
    assert baseline.golden is not None
    remembered = Remembered(
        golden=baseline.golden,
        repeats=baseline.repeats,
        other_threads=baseline.other_threads,
        reference=baseline.reference,
    )
    try:
        path = write_bundle(into, _described(model, export.artifact, baseline, facts), export.artifact, remembered)
    except GoldenError as error:
        return Packed(model=model.name, why=error.message, note=note)
    return Packed(model=model.name, path=shown_path(path), size_bytes=path.stat().st_size, note=note)


def _why_not(export: Export, baseline: OldAnswers, release: str) -> str:
    """Return why a model has no golden outputs to pack; empty if it has."""
    if export.artifact is None:
        return unsupported_words(export) if export.outcome is Outcome.UNSUPPORTED else not_made(export)
    failed = next((result for result in baseline.results if result.outcome is not Outcome.COMPLETED), None)
    if failed is not None:
        return failure_finding(failed, release, stage="alone").message
    if baseline.golden is None or not baseline.golden.calls:
        return f"it was never called: {export.artifact.inputs_note or 'no inputs'}"
    return ""


def _described(model: ModelDeclaration, artifact: Artifact, baseline: OldAnswers, facts: Answered) -> GoldenRecord:
    settings = facts.plan.settings
    return GoldenRecord(
        model=model.name,
        device=facts.plan.device,
        producer=facts.fingerprints["old"],
        artifact=artifact,
        inputs=[],
        answers=[],
        files={},
        source=Source(run="", profile=settings.profile),
        declared=Declared(
            tags=model.tags,
            devices=model.devices,
            unordered=model.unordered,
            tolerance=model.tolerance,
            computes_in=settings.computes_in.get(model.name),
        ),
        numerics=baseline.numerics,
    )
