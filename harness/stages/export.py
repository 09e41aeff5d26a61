"""Exports every model in the old release. A failed export is a row, not a crash."""

from dataclasses import replace

from packaging.version import Version

from harness.domain.fixture import ModelDeclaration
from harness.domain.outcome import Outcome
from harness.domain.probe import Failure
from harness.runtime import artifact_store, pool
from harness.stages.facts import Effects, Export, Facts
from harness.stages.requests import Requests


def export_models(facts: Facts, effects: Effects) -> Facts:
    """Return the facts with one ``Export`` per model and canary; from golden records where they stand in."""
    plan = facts.plan
    declarations = (*plan.canaries, *plan.models)
    requests = facts.requests
    exporter = "old" if plan.golden is None else "new"
    effects.progress.stage(f"export in {effects.environments[exporter].name}", len(declarations))

    def export(declaration: ModelDeclaration) -> Export:
        if plan.golden is not None and "canary" not in declaration.tags:
            done = _from_record(declaration, effects)
        else:
            done = _export(declaration, facts, effects, requests, exporter)
        effects.progress.step(declaration.name)
        return done

    exports = pool.each(export, declarations, jobs=plan.settings.jobs)
    return replace(facts, exports={export.declaration.name: export for export in exports})


def _from_record(declaration: ModelDeclaration, effects: Effects) -> Export:
    artifact = effects.golden.unpack(declaration.name, effects.folder("golden") / declaration.name)
    if artifact is None:
        failure = Failure(
            type="NotRecorded", message="its golden record holds no artifact (too large for git)", phase=""
        )
        return Export(declaration=declaration, outcome=Outcome.NOT_RUN, failure=failure)
    return Export(declaration=declaration, outcome=Outcome.COMPLETED, artifact=artifact)


def _export(declaration: ModelDeclaration, facts: Facts, effects: Effects, requests: Requests, side: str) -> Export:
    unsupported = _unsupported(declaration, facts, side)
    if unsupported is not None:
        return Export(declaration=declaration, outcome=Outcome.UNSUPPORTED, failure=unsupported)
    result = effects.runner(requests.export(declaration, side))
    (model,) = result.models
    if model.outcome is not Outcome.COMPLETED:
        return Export(declaration=declaration, outcome=model.outcome, failure=model.failure, result=result)
    try:
        artifact = artifact_store.artifact_of(declaration, result)
    except ValueError as error:
        failure = Failure(type="BadArchive", message=str(error), phase="save")
        return Export(declaration=declaration, outcome=Outcome.EXPORT_ERROR, failure=failure, result=result)
    return Export(
        declaration=declaration,
        outcome=Outcome.COMPLETED,
        artifact=artifact,
        uncovered=artifact_store.uncovered(declaration, artifact),
        result=result,
    )


def _unsupported(declaration: ModelDeclaration, facts: Facts, side: str) -> Failure | None:
    if facts.plan.device not in declaration.devices:
        return Failure(type="Unsupported", message=f"declared for {', '.join(declaration.devices)} only", phase="")
    torch = facts.fingerprints[side].torch
    if declaration.requires is not None and Version(torch).release < Version(declaration.requires).release:
        return Failure(type="Unsupported", message=f"needs torch {declaration.requires} or later to export", phase="")
    return None
