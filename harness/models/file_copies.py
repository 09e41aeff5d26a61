"""Copies a given artifact into the run's folder, named by its content, so that later writes do not affect the run."""

import fcntl
import hashlib
import os
from dataclasses import dataclass, replace
from pathlib import Path

from harness.archive.limits import CannotRead
from harness.domain.models import Artifact, ModelDeclaration
from harness.models import files
from harness.store.results import ResultStore, WhyNot

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


def keep(declaration: ModelDeclaration, folder: Path) -> Kept:
    """Return the file under ``folder`` that is the given artifact of ``declaration`` for the run and its reruns.

    It is named by its content and independent of the original: blocks are shared where the file system can do that,
    else copied; a file too large to copy is linked (see ``has_changed``).

    Raises:
        CannotRead: it is gone or may not be read.
        OSError: there is no room for a copy.
    """
    assert declaration.given is not None
    folder.mkdir(parents=True, exist_ok=True)
    part = folder / f".{declaration.name}.part"
    part.unlink(missing_ok=True)
    path = os.path.realpath(declaration.given.path)
    with files.opened(path) as source:  # a plain file that we may read
        if not _shared(source, part) and not (source.size > COPIED_BYTES and _linked(path, part)):
            _copied(source, part)
    with files.opened(str(part)) as own:
        sha256 = digest_of(own)
    target = folder / f"{declaration.name}-{sha256[:12]}.pt"
    if target.exists():
        part.unlink()
    else:
        part.replace(target)
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


def has_changed(artifact: Artifact) -> bool:
    """Whether a linked copy was changed through its other name."""
    try:
        if os.stat(artifact.path).st_nlink == 1:  # noqa: PTH116
            return False
        with files.opened(artifact.path) as source:
            return digest_of(source) != artifact.digest
    except (OSError, CannotRead):
        return True


def by_content(declaration: ModelDeclaration, kept: Kept) -> ModelDeclaration:
    """Return the declaration as a request has it: with the kept file, and nothing that depends on when it was written.

    The digest covers the bytes of the file of requests too.

    Raises:
        CannotRead: the requests cannot be read.
    """
    assert declaration.given is not None
    digest = hashlib.sha256(kept.sha256.encode())
    inputs = declaration.given.inputs
    if inputs:
        with files.opened(inputs) as source:
            digest.update(digest_of(source).encode())
    given = replace(declaration.given, path=str(kept.path))
    return replace(declaration, given=given, package_root="", source="", line=0, source_digest=digest.hexdigest())


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
