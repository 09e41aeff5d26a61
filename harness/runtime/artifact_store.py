"""From a finished export to an ``Artifact``: reads the archive as a zip, never with torch."""

import hashlib
import zipfile
import zlib
from pathlib import Path
from typing import BinaryIO, TypedDict

from harness.domain.artifact import Artifact, InputSet
from harness.domain.fixture import ModelDeclaration
from harness.domain.probe import ProbeResult
from harness.worker import wire

# Members that change with the path of the source and say nothing about the model (docs/evidence.md#archive-members).
VOLATILE = (".debug_pkl", "serialization_id")
# An archive may unpack to so many times its size and as much more, far beyond what code is ever compressed by: torch
# stores tensors as they are.
MOST_TIMES = 4
MOST_MORE_BYTES = 256 << 20
CHUNK_BYTES = 1 << 20
VERSIONS = ("version", ".data/version")
LONGEST_VERSION_BYTES = 100


def archive_identity(path: Path) -> tuple[str, str | None, str | None]:
    """Return (digest, archive version, operator version) of a TorchScript archive.

    The digest is a sha256 over (member name without its root folder, content), in name order, without the
    volatile members; so the same model saved under another file name has the same identity.

    Raises:
        ValueError: the file is not a readable zip archive, has two members of one name, or unpacks to far more than
            it is.
    """
    try:
        with path.open("rb") as stream:
            return stream_identity(stream, path.stat().st_size, path)
    except OSError as error:
        raise ValueError(f"{path} is not a readable TorchScript archive: {error}") from error


class ArchiveFields(TypedDict):
    """What an ``Artifact`` says of its file."""

    path: str
    digest: str
    size_bytes: int
    archive_version: str | None
    operator_version: str | None


def archive_fields(path: Path) -> ArchiveFields:
    """Return where an archive lies and what identifies it, as an ``Artifact`` has them.

    Raises:
        ValueError: as for ``archive_identity``.
    """
    digest, archive_version, operator_version = archive_identity(path)
    return ArchiveFields(
        path=str(path),
        digest=digest,
        size_bytes=path.stat().st_size,
        archive_version=archive_version,
        operator_version=operator_version,
    )


def stream_identity(content: BinaryIO, size_bytes: int, path: Path) -> tuple[str, str | None, str | None]:
    """Return the same of an archive that is open; ``path`` is how errors call it."""
    digest = hashlib.sha256()
    versions: dict[str, str] = {}
    try:
        with zipfile.ZipFile(content) as archive:
            files = [info.filename.partition("/")[2] for info in archive.infolist() if not info.is_dir()]
            if len(set(files)) < len(files):  # below two roots, say: torch would read the one, and this the other
                raise ValueError(f"{path} holds two members of one name: it has no identity")
            members = {info.filename.partition("/")[2]: info for info in archive.infolist()}
            unpacked = sum(info.file_size for info in members.values())
            if unpacked > MOST_TIMES * size_bytes + MOST_MORE_BYTES:
                raise ValueError(f"{path} unpacks to {unpacked} bytes, far more than it is: not read")
            for name in sorted(members):
                if name.endswith(VOLATILE):
                    continue
                digest.update(f"{len(name)} {name} {members[name].file_size} ".encode())
                with archive.open(members[name]) as stream:
                    chunk = stream.read(CHUNK_BYTES)
                    if name in VERSIONS:
                        versions[name] = chunk[:LONGEST_VERSION_BYTES].decode("ascii", "replace").strip()
                    while chunk:
                        digest.update(chunk)
                        chunk = stream.read(CHUNK_BYTES)
    except (OSError, zipfile.BadZipFile, zlib.error, EOFError, NotImplementedError, RuntimeError) as error:
        raise ValueError(f"{path} is not a readable TorchScript archive: {error}") from error
    return digest.hexdigest(), versions.get("version"), versions.get(".data/version")


def artifact_of(declaration: ModelDeclaration, export: ProbeResult) -> Artifact:
    """Return the artifact that a completed export left in its folder.

    Raises:
        ValueError: the saved file is not a readable archive.
    """
    folder = Path(export.directory)
    exported = export.data["exported"]
    return Artifact(
        **archive_fields(folder / f"{declaration.name}.pt"),
        model=declaration.name,
        operators=tuple(exported["operators"]),
        inputs_dir=str(folder / "inputs"),
        inputs_digest=inputs_digest(folder / "inputs"),
        input_sets=tuple(InputSet(name=name, method=method) for name, method in exported["input_sets"]),
        reset=declaration.reset,
        seed=declaration.seed,
    )


def inputs_digest(folder: Path) -> str:
    """Return the sha256 over the recorded inputs: index and bytes."""
    digest = hashlib.sha256()
    for name in (wire.TENSORS_INDEX, wire.TENSORS_BIN):
        with (folder / name).open("rb") as stream:
            while chunk := stream.read(CHUNK_BYTES):
                digest.update(chunk)
    return digest.hexdigest()


def uncovered(declaration: ModelDeclaration, artifact: Artifact) -> tuple[str, ...]:
    """Return the operators that the declaration promises and the artifact does not contain."""
    present = {operator.partition(".")[0] for operator in artifact.operators}
    return tuple(operator for operator in declaration.covers if operator not in present)
