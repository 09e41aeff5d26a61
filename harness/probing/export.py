"""Exports every model in the old release, or adopts what is given. A failure there is a row, not a crash."""

import errno
from dataclasses import replace
from pathlib import Path

from packaging.version import Version

from harness.artifacts import adopted, file_copies
from harness.artifacts.archive.formats import FAILURES
from harness.artifacts.archive.limits import CannotRead
from harness.artifacts.bundles import BundleStore
from harness.artifacts.old_outputs import Records
from harness.artifacts.provenance import read_provenance
from harness.core.errors import GoldenError
from harness.core.models import Artifact, GivenArtifact, ModelDeclaration
from harness.core.outcome import UNCLEAR, Disturbance, Outcome
from harness.core.probe import Failure
from harness.machine import pool
from harness.probing.facts import Effects, Export, Exported, Provisioned
from harness.probing.requests import Requests
from harness.worker import wire


def export_models(facts: Provisioned, effects: Effects) -> Exported:
    """Return the facts with one ``Export`` per model and planted defect; from golden records where they stand in."""
    plan = facts.plan
    declarations = (*plan.planted_defects, *plan.models)
    requests = facts.requests
    exporter = "old" if plan.golden is None else "new"
    effects.progress.stage(f"export in {effects.environments[exporter].name}", len(declarations))

    def export(declaration: ModelDeclaration) -> Export:
        if plan.golden is not None and "planted" not in declaration.tags:
            done = _kept(declaration, effects.golden, effects)
        else:
            done = export_model(declaration, facts, effects, requests, exporter)
        effects.progress.step(declaration.name)
        if declaration.given is None or done.artifact is None:
            return done
        known = read_provenance(done.artifact.path, declaration.given.path, done.artifact.digest)
        return replace(done, provenance=known)

    with effects.runner.sharing():
        exports = pool.each(export, declarations, jobs=plan.settings.jobs)
    return Exported(**Provisioned.known(facts), exports={export.declaration.name: export for export in exports})


def _kept(declaration: ModelDeclaration, records: Records, effects: Effects) -> Export:
    given = declaration.given
    if declaration.name not in records.names():
        what = "it has no golden record: golden propose RUN, of a run that judges it"
        failure = Failure(type="", message=what, phase="")
        return Export(declaration=declaration, outcome=Outcome.NOT_RUN, failure=failure)
    try:
        artifact = records.unpack(declaration.name, effects.folder("golden") / declaration.name)
        if given is not None and not given.bundle:
            artifact = _of_that_file(artifact, file_copies.keep(declaration, effects.folder("given")))
        if not artifact.path:
            raise CannotRead("missing", "has a golden record without the artifact (too large for git)")
    except GoldenError as error:
        failure = Failure(type="", message=error.message, phase="")
    except (CannotRead, OSError) as error:
        failure = _not_kept(error, given.path if given is not None else declaration.name, effects)
    else:
        return Export(declaration=declaration, outcome=Outcome.COMPLETED, artifact=artifact)
    return Export(declaration=declaration, outcome=Outcome.NOT_RUN, failure=failure)


def _of_that_file(artifact: Artifact, kept: file_copies.Kept) -> Artifact:
    if kept.sha256 != artifact.digest:
        raise CannotRead("other", "is not the file that its golden record is about: propose a record from a run of it")
    return replace(artifact, path=str(kept.path))


def _not_kept(error: CannotRead | OSError, path: str, effects: Effects) -> Failure:
    if isinstance(error, CannotRead):
        advice = f": {FAILURES[error.kind]}" if error.kind in FAILURES else ""
        disturbance = Disturbance.CHANGED if error.kind == file_copies.CHANGED else None
        return Failure(type="", message=f"{path} {error.text}{advice}", phase="", disturbance=disturbance)
    message = f"{path} cannot be kept under {effects.run_dir.path}: {error.strerror or error}"
    disturbance = Disturbance.DISK_FULL if error.errno == errno.ENOSPC else None
    return Failure(type="", message=message, phase="", disturbance=disturbance)


def export_model(
    declaration: ModelDeclaration, facts: Provisioned, effects: Effects, requests: Requests, side: str
) -> Export:
    """Return how the export of one model in ``side`` went, or how a given one was taken over there."""
    unsupported = _unsupported(declaration, facts, side)
    if unsupported is not None:
        return Export(declaration=declaration, outcome=Outcome.UNSUPPORTED, failure=unsupported)
    if declaration.given is not None and declaration.given.bundle:
        kept = _kept(declaration, BundleStore([declaration]), effects)
        return kept if kept.artifact is None else replace(kept, artifact=replace(kept.artifact, schedule=()))
    if declaration.given is not None:
        return _adopt(declaration, declaration.given, effects, requests, side)
    result = effects.runner(requests.export(declaration, side))
    (model,) = result.models
    if model.outcome is not Outcome.COMPLETED:
        return Export(declaration=declaration, outcome=model.outcome, failure=model.failure, result=result)
    try:
        artifact = adopted.artifact_of(declaration, result)
    except ValueError as error:
        failure = Failure(type="BadArchive", message=str(error), phase="save")
        return Export(declaration=declaration, outcome=Outcome.EXPORT_ERROR, failure=failure, result=result)
    return Export(
        declaration=declaration,
        outcome=Outcome.COMPLETED,
        artifact=artifact,
        uncovered=adopted.uncovered(declaration, artifact),
        result=result,
    )


def _adopt(
    declaration: ModelDeclaration, given: GivenArtifact, effects: Effects, requests: Requests, side: str
) -> Export:
    """Take a given artifact over: keep its file, and let the old release read its requests or infer them."""
    read = given.path
    try:
        kept = file_copies.keep(declaration, effects.folder("given"))
        read = given.inputs
        declared = file_copies.by_content(declaration, kept)
    except (CannotRead, OSError) as error:
        return Export(declaration=declaration, outcome=Outcome.NOT_RUN, failure=_not_kept(error, read, effects))
    result = effects.runner(requests.adopt(declared, side), lasting="planted" not in declaration.tags)
    try:
        file_copies.by_content(declaration, kept)  # the worker has read the requests where they lie
    except CannotRead as error:
        return Export(declaration=declaration, outcome=Outcome.NOT_RUN, failure=_not_kept(error, read, effects))
    (model,) = result.models
    refused = model.failure is not None and model.failure.phase == wire.INPUTS
    if refused or model.outcome in UNCLEAR:
        named = _by_its_own_name(model.failure, kept.path, given)
        return Export(declaration=declaration, outcome=model.outcome, failure=named, result=result)
    try:
        artifact = adopted.adopted(declaration, kept, result)
    except (CannotRead, OSError) as error:  # an artifact can have done away with it
        failure = Failure(type="DamagedRecord", message=f"what taking it over has left: {error}", phase=model.phase)
        return Export(declaration=declaration, outcome=Outcome.PROTOCOL_ERROR, failure=failure, result=result)
    return Export(declaration=declaration, outcome=Outcome.COMPLETED, artifact=artifact, result=result)


def _by_its_own_name(failure: Failure | None, kept: Path, given: GivenArtifact) -> Failure | None:
    if failure is None:
        return None
    return replace(failure, message=failure.message.replace(str(kept), given.path))


def _unsupported(declaration: ModelDeclaration, facts: Provisioned, side: str) -> Failure | None:
    if not facts.plan.runs_on.takes(declaration.devices):
        return Failure(type="Unsupported", message=f"declared for {', '.join(declaration.devices)} only", phase="")
    torch = facts.fingerprints[side].torch
    if declaration.requires is not None and Version(torch).release < Version(declaration.requires).release:
        return Failure(type="Unsupported", message=f"needs torch {declaration.requires} or later to export", phase="")
    return None
