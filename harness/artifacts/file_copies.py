"""Copies a given artifact into the run's folder, named by its content: what was planned is judged, and nothing else."""

import fcntl
import hashlib
import os
import stat
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from harness.artifacts import files
from harness.artifacts.archive.limits import CannotRead
from harness.core.models import GivenArtifact, ModelDeclaration
from harness.store.results import ResultStore, WhyNot
from harness.worker import wire

CHANGED = "changed"
"""Of ``CannotRead``: a file is another one than was planned."""
CHUNK_BYTES = 1 << 20
COPIED_BYTES = 256 << 20
"""Up to this size a file is copied where the file system cannot share its blocks; larger ones are linked."""
FICLONE = 0x40049409
"""``ioctl_ficlone(2)``: share the blocks of another file until one of the two is written."""


@dataclass(frozen=True, kw_only=True)
class Kept:
    """The run's copy of a given file, and the sha256 of its bytes."""

    path: Path
    sha256: str


def planned(declaration: ModelDeclaration) -> ModelDeclaration:
    """Return a declaration for a plan: where it is a given file, with the digests of what is there now."""
    given = declaration.given
    if given is None or given.bundle:  # whose source_digest stands for its bytes
        return declaration
    sha256, inputs_sha256 = (_digest_now(paths, given) for paths in ([given.path], _request_files(given.inputs)))
    return replace(declaration, given=replace(given, sha256=sha256, inputs_sha256=inputs_sha256))


def keep(declaration: ModelDeclaration, folder: Path) -> Kept:
    """Return the file under ``folder`` that is the given artifact of ``declaration`` for the run and its reruns.

    It is named by its content, read-only, and independent of the original: blocks are shared where the file system can
    do that, else copied; a file too large to copy is linked, and keeps its permissions. Raises ``CannotRead``: it is
    gone, may not be read, or is another file than was planned; ``OSError``: there is no room for a copy.
    """
    given = declaration.given
    assert given is not None
    folder.mkdir(parents=True, exist_ok=True)
    part = folder / f".{declaration.name}.part"
    part.unlink(missing_ok=True)
    path = files.real_path(given.path, given.within)
    try:
        with files.opened(path) as source:  # a plain file that we may read
            if not _shared(source, part) and not (source.size > COPIED_BYTES and _linked(path, part)):
                _copied(source, part)
        with files.opened(str(part)) as own:
            sha256 = digest_of(own)
        _require(given.sha256, sha256)
        if part.stat().st_nlink == 1:
            part.chmod(stat.S_IRUSR | stat.S_IRGRP | stat.S_IROTH)
        target = folder / f"{declaration.name}-{sha256[:12]}{given.kind.suffix}"
        part.replace(target)
    finally:
        part.unlink(missing_ok=True)
    known = {"source_digest": declaration.source_digest, "file": target.name}
    ResultStore(folder, dict[str, str]).save(declaration.name, known)
    return Kept(path=target, sha256=sha256)


def kept_before(declaration: ModelDeclaration, folder: Path) -> Path | None:
    """Return the copy of a given artifact, as planned, that a run keeps under ``folder``; None if there is none."""
    known = ResultStore(folder, dict[str, str]).reusable(
        declaration.name, answers=lambda kept: kept.get("source_digest") == declaration.source_digest
    )
    if isinstance(known, WhyNot):
        return None
    path = folder / Path(known.get("file", "")).name
    return path if path.is_file() else None


def by_content(declaration: ModelDeclaration, kept: Kept) -> ModelDeclaration:
    """Return the declaration as a request has it: with the kept file, and nothing that depends on when it was written.

    The digest covers the bytes of the file of requests too. Raises ``CannotRead``: the requests cannot be read, or are
    others than were planned.
    """
    given = declaration.given
    assert given is not None
    digest = hashlib.sha256(kept.sha256.encode())
    if given.inputs:
        sha256 = _digest(_request_files(given.inputs), given)
        _require(given.inputs_sha256, sha256)
        digest.update(sha256.encode())
    given = replace(given, path=str(kept.path), within="", sha256=None, inputs_sha256=None)
    return replace(declaration, given=given, package_root="", source="", line=0, source_digest=digest.hexdigest())


def _request_files(inputs: str) -> list[str]:
    """Return the files of the requests that ``inputs`` names: an index that the gate wrote has its bytes beside it."""
    path = Path(inputs)
    bytes_beside = [str(path.with_name(wire.TENSORS_BIN))] if path.name == wire.TENSORS_INDEX else []
    return [inputs, *bytes_beside] if inputs else []


def _digest_now(paths: Sequence[str], given: GivenArtifact) -> str:
    try:
        return _digest(paths, given)
    except CannotRead:
        return ""


def _digest(paths: Sequence[str], given: GivenArtifact) -> str:
    """Return the sha256 of a file, of several that of their digests. Raises ``CannotRead``: one cannot be read."""
    digests = []
    for path in paths:
        with files.opened(path, given.within) as source:
            digests.append(digest_of(source))
    return hashlib.sha256("".join(digests).encode()).hexdigest() if len(digests) > 1 else "".join(digests)


def _require(planned_sha256: str | None, sha256: str) -> None:
    if planned_sha256 not in (None, sha256):
        before = f"its sha256 was {planned_sha256[:12]}" if planned_sha256 else "it could not be read then"
        text = f"is another file than when this run was planned ({before}, now {sha256[:12]}): start a new run"
        raise CannotRead(CHANGED, text)


def _shared(source: files.FileSource, part: Path) -> bool:
    with part.open("wb") as stream:
        try:
            fcntl.ioctl(stream.fileno(), FICLONE, source.descriptor)
        except OSError:  # another file system, or one that cannot
            return False
    return True


def _linked(path: str, part: Path) -> bool:
    part.unlink(missing_ok=True)
    try:
        os.link(path, part)
    except OSError:  # another file system, or a file that is not ours
        return False
    return True


def _copied(source: files.FileSource, part: Path) -> None:
    with part.open("wb") as stream:
        for offset in range(0, source.size, CHUNK_BYTES):
            stream.write(source.read(offset, CHUNK_BYTES))


def digest_of(source: files.FileSource) -> str:
    """Return the sha256 of an open file, read in pieces."""
    digest = hashlib.sha256()
    for offset in range(0, source.size, CHUNK_BYTES):
        digest.update(source.read(offset, CHUNK_BYTES))
    return digest.hexdigest()
