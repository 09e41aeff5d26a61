"""Takes an artifact that is given into the run: kept under the run's folder, named by what it is."""

import hashlib
import os
import shutil
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from harness.archive.limits import CannotRead
from harness.archive.reading import read_artifact
from harness.domain.artifact import Artifact, InputSet
from harness.domain.fixture import ModelDeclaration
from harness.domain.probe import ProbeResult
from harness.runtime import artifact_files
from harness.runtime.artifact_store import inputs_digest
from harness.worker import wire

CHUNK_BYTES = 1 << 20


def keep(declaration: ModelDeclaration, folder: Path) -> Path:
    """Return the path under ``folder`` where the given file of ``declaration`` stays for the run and its reruns.

    It is linked where the file system allows it, so that it costs nothing and outlives the name that it came by; else
    copied.

    Raises:
        CannotRead: it is gone or may not be read.
        OSError: there is no room for a copy.
    """
    assert declaration.given is not None
    target = folder / f"{declaration.name}-{declaration.source_digest[:12]}.pt"
    if target.exists():
        return target
    folder.mkdir(parents=True, exist_ok=True)
    source = os.path.realpath(declaration.given.path)
    with artifact_files.opened(source):  # a plain file that we may read
        part = target.with_suffix(".part")
        part.unlink(missing_ok=True)
        try:
            os.link(source, part)
        except OSError:  # another file system, or a file that is not ours
            shutil.copyfile(source, part)
        part.replace(target)
    return target


def adopted(declaration: ModelDeclaration, kept: Path, adoption: ProbeResult) -> Artifact:
    """Return the artifact that the adoption of a kept file has left, without inputs where that did not end well.

    Its digest is the sha256 of the file, read in pieces; versions and operators are what static reading finds, nothing
    where it finds none.

    Raises:
        CannotRead: the file cannot be read any more.
    """
    inputs = Path(adoption.directory) / "inputs"
    found = adoption.data.get("adopted") or _without_inputs(adoption, inputs)
    archive_version = operator_version = None
    operators: tuple[str, ...] = ()
    with artifact_files.opened(str(kept)) as source:
        digest = _digest(source)
        try:
            facts = read_artifact(source, str(kept))
        except CannotRead:
            pass  # probing tells what it is
        else:
            operators = tuple(sorted({use.name for use in facts.operators}))
            archive_version, operator_version = facts.archive_version, facts.operator_version
        size_bytes = source.size
    return Artifact(
        model=declaration.name,
        path=str(kept),
        digest=digest,
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
    )


def saved_again(artifact: Artifact, resaving: ProbeResult) -> Artifact:
    """Return ``artifact`` as another release has saved it again, with the same inputs.

    Raises:
        CannotRead: the file cannot be read.
    """
    path = Path(resaving.directory) / f"{artifact.model}.pt"
    with artifact_files.opened(str(path)) as source:
        return replace(artifact, path=str(path), digest=_digest(source), size_bytes=source.size)


def _without_inputs(adoption: ProbeResult, inputs: Path) -> Mapping[str, Any]:
    """Return what stands for the mark of an adoption that failed; probing says whether the file loads."""
    inputs.mkdir(exist_ok=True)
    for name in (wire.TENSORS_INDEX, wire.TENSORS_BIN):
        (inputs / name).write_bytes(b"")
    (model,) = adoption.models
    how = adoption.exit_detail or (model.failure.first_line if model.failure is not None else model.outcome.value)
    return {"input_sets": [], "inputs_note": f"taking it over ended in {model.phase or 'its start'}: {how}"}


def _digest(source: artifact_files.FileSource) -> str:
    digest = hashlib.sha256()
    for offset in range(0, source.size, CHUNK_BYTES):
        digest.update(source.read(offset, CHUNK_BYTES))
    return digest.hexdigest()
