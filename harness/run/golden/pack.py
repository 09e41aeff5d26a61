"""Golden bundles: ask the old release alone, and write one portable file per model."""

from dataclasses import replace
from pathlib import Path

from harness.artifacts.bundles import write_bundle
from harness.artifacts.file_copies import planned
from harness.artifacts.old_outputs import Remembered
from harness.checks.hang.story import failure_finding
from harness.config.selection import select
from harness.core.errors import ConfigError, GateError, GoldenError
from harness.core.golden import Declared, GoldenRecord, Packed, Packing, Source
from harness.core.models import Artifact, ModelDeclaration
from harness.core.outcome import Outcome
from harness.core.plan import Plan
from harness.environments.sides import env_spec
from harness.machine import clock
from harness.machine.progress import Progress
from harness.probing.facts import Answered, Export, OldAnswers
from harness.run.options import (
    CONFIG,
    Options,
    builder_for,
    check_computes_in,
    golden_store,
    known_models,
    settings_of,
    shown_path,
)
from harness.run.pipeline import ask_old
from harness.run.plan import chosen_device
from harness.store.run_folder import RunDir
from harness.verdict.alone import not_made, unsupported_words
from harness.verdict.inputs import inputs_words


def pack(options: Options, into: Path, progress: Progress) -> Packing:
    """Export or take over the selected models in the old release, ask it for golden outputs, and write the bundles.

    What the workers left is kept where a model could not be packed, or an error may point to it.

    Raises:
        ConfigError: the configuration, a name or a file is wrong, or a model is a bundle already.
        EnvironmentUnavailable: the old environment could not be provisioned.
        RunDirError: ``into`` cannot be written.
    """
    plan = _plan(options)
    assert plan.old is not None
    name = plan.old.release or "old"
    with RunDir.create(options.reports, f"pack-{name}", clock.utc_now()) as run_dir:
        try:
            facts = ask_old(
                plan,
                run_dir=run_dir,
                builder=builder_for(options, progress),
                progress=progress,
                golden=golden_store(options),
                today=clock.today(),
            )
            packing = _packing(facts, into, progress)
        except GateError:
            run_dir.discard_if_empty()
            raise
        except KeyboardInterrupt:  # no later run goes on with it
            run_dir.discard()
            raise
        if packing.complete:
            run_dir.discard()
        return packing if packing.complete else replace(packing, evidence=shown_path(run_dir.path))


def _plan(options: Options) -> Plan:
    table, settings = settings_of(options)
    known = known_models(options, settings)
    models = tuple(map(planned, select(known.models, options.expression)))
    check_computes_in(options, settings, known)
    for model in models:
        if model.given is not None and model.given.bundle:
            raise ConfigError(f"{model.where} is a golden bundle already", "name the artifacts themselves")
    old = env_spec(
        table,
        settings,
        "old",
        options.environments,
        file=CONFIG,
        libraries=options.libraries,
        project=options.project,
    )
    return Plan(
        settings=settings,
        old=old,
        new=old,  # nothing is asked of it
        device=chosen_device(settings).name,
        direction="backward",
        models=models,
        planted_defects=(),
        groups={},
        scenarios=("alone",),
        arguments=tuple(options.arguments),
        notes=known.notes,
    )


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
