"""From a finished adoption, or from what a release has saved again, to an ``Artifact``; without torch."""

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from harness.archive.limits import CannotRead
from harness.archive.reading import read_artifact
from harness.domain.artifact import Artifact, InputSet
from harness.domain.fixture import ModelDeclaration
from harness.domain.probe import ProbeResult
from harness.policy.inputs import never_called
from harness.runtime import artifact_files, given_store
from harness.runtime.artifact_store import inputs_digest
from harness.worker import wire


def adopted(declaration: ModelDeclaration, kept: given_store.Kept, adoption: ProbeResult) -> Artifact:
    """Return the artifact that the adoption of a kept file has left, without inputs where that did not end well.

    Versions and operators are what static reading finds, nothing where it finds none.

    Raises:
        CannotRead: the file cannot be read any more.
    """
    inputs = Path(adoption.directory) / "inputs"
    found = adoption.data.get("adopted") or _without_inputs(adoption, inputs)
    archive_version = operator_version = None
    operators: tuple[str, ...] = ()
    with artifact_files.opened(str(kept.path)) as source:
        try:
            facts = read_artifact(source, str(kept.path))
        except CannotRead:
            pass  # probing tells what it is
        else:
            operators = tuple(sorted({use.name for use in facts.operators}))
            archive_version, operator_version = facts.archive_version, facts.operator_version
        size_bytes = source.size
    return Artifact(
        model=declaration.name,
        path=str(kept.path),
        digest=kept.sha256,
        size_bytes=size_bytes,
        operators=operators,
        inputs_dir=str(inputs),
        inputs_digest=inputs_digest(inputs),
        input_sets=tuple(InputSet(name=name, method=method) for name, method in found["input_sets"]),
        reset=declaration.reset,
        seed=declaration.seed,
        archive_version=archive_version,
        operator_version=operator_version,
        inputs_note=found["inputs_note"],
        uncalled=never_called(declaration.given.methods if declaration.given is not None else (), found),
    )


def saved_again(artifact: Artifact, resaving: ProbeResult) -> Artifact:
    """Return ``artifact`` as another release has saved it again, with the same inputs.

    Raises:
        CannotRead: the file cannot be read.
    """
    path = Path(resaving.directory) / f"{artifact.model}.pt"
    with artifact_files.opened(str(path)) as source:
        return replace(artifact, path=str(path), digest=given_store.digest_of(source), size_bytes=source.size)


def _without_inputs(adoption: ProbeResult, inputs: Path) -> Mapping[str, Any]:
    """Return what stands for the mark of an adoption that failed; probing says whether the file loads."""
    inputs.mkdir(exist_ok=True)
    for name in (wire.TENSORS_INDEX, wire.TENSORS_BIN):
        (inputs / name).write_bytes(b"")
    (model,) = adoption.models
    how = adoption.exit_detail or (model.failure.first_line if model.failure is not None else model.outcome.value)
    return {"input_sets": [], "inputs_note": f"taking it over ended in {model.phase or 'its start'}: {how}"}
