"""TorchServe archives: which files of one are models, and each of them as a file by itself.

``torch-model-archiver`` writes them as a zip (``.mar``) or, with ``--archive-format tgz``, as a tar of gzip in which
all lies in a folder of the model's name. That is read to its end, but never beyond what a real one unpacks to; links
in it are none of its files.
"""

import gzip
import hashlib
import json
import re
import secrets
import tarfile
import zipfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path, PurePosixPath
from typing import Any, NamedTuple

from harness.artifacts import files
from harness.artifacts.adopted import MOST_MORE_BYTES, MOST_TIMES
from harness.artifacts.archive.limits import CannotRead
from harness.machine.files import ZIP_DAMAGE
from harness.store.codec import draft_of

MAR = ".mar"
SUFFIXES = (MAR, ".tar.gz", ".tgz")
MANIFEST = "MAR-INF/MANIFEST.json"
_IN_FOLDER = re.compile(rf"[^/]+/{re.escape(MANIFEST)}")
MANIFEST_BYTES = 1 << 20
MOST_MEMBERS = 100_000
PIECE_BYTES = 1 << 20
DAMAGE = (OSError, ValueError, TypeError, tarfile.TarError, *ZIP_DAMAGE)


class Member(NamedTuple):
    """A plain file of an archive."""

    name: str
    size: int
    open: Callable[[], Any]


class ServedArchive(NamedTuple):
    """What an archive holds.

    Attributes:
        served: the member that its handler is told to load; empty where none is.
        models: all members that may be models, what is served first.
        is_served: whether it has a manifest at all.
    """

    served: str = ""
    models: tuple[str, ...] = ()
    is_served: bool = True


def is_archive(path: str) -> bool:
    return path.lower().endswith(SUFFIXES)


def stem_of(path: str) -> str:
    return next((path[: -len(suffix)] for suffix in SUFFIXES if path.lower().endswith(suffix)), path)


def read_archive(archive: Path) -> ServedArchive:
    """Return what an archive holds. Raises ``CannotRead``: it, or its manifest, is damaged."""
    names: list[str] = []
    manifest, root = None, ""
    try:
        with _opened(archive) as members:
            for member in members:
                names.append(member.name)
                if len(names) > MOST_MEMBERS:
                    raise CannotRead("too_large", f"has more than {MOST_MEMBERS:,} members")
                if member.name == MANIFEST or _IN_FOLDER.fullmatch(member.name):
                    root = member.name.removesuffix(MANIFEST)
                    if member.size > MANIFEST_BYTES:
                        raise CannotRead("too_large", f"{MANIFEST} has {member.size:,} bytes")
                    manifest = member.open().read(MANIFEST_BYTES + 1)
        if manifest is None:
            return ServedArchive(is_served=False)
        parsed = json.loads(manifest)
        named = parsed["model"].get("serializedFile")
    except KeyError as error:
        raise CannotRead("member_missing", f"a TorchServe archive without {error}") from None
    except (*DAMAGE, AttributeError, RecursionError) as error:
        raise CannotRead("damaged", f"no readable TorchServe archive: {error}") from None
    served = f"{root}{named}" if named is not None else ""
    if named is not None and (not isinstance(named, str) or served not in names):
        raise CannotRead("member_missing", f"{MANIFEST} names {named!r}, which is not in the archive")
    others = {name for name in names if PurePosixPath(name).suffix.lower() in files.SUFFIXES} - {served}
    return ServedArchive(served, (*([served] if served else []), *sorted(others)))


def unpacked(archive: Path, member: str, scratch: Path) -> Path:
    """Return a file of an archive as a file by itself, under a name that follows from its content.

    Raises:
        CannotRead: it is damaged, not there any more, or unpacks to far more than the archive is.
        OSError: there is no room for it.
    """
    scratch.mkdir(parents=True, exist_ok=True)
    part = draft_of(scratch / secrets.token_hex(8))
    made, left = hashlib.sha256(), most_bytes(archive)
    try:
        with part.open("wb") as target:
            for piece in _pieces(archive, member):
                left -= len(piece)
                if left < 0:
                    raise CannotRead("zip_bomb", f"{member} unpacks to far more than the archive is")
                made.update(piece)
                target.write(piece)
        path = scratch / f"{made.hexdigest()[:32]}.pt"
        part.replace(path)
    finally:
        part.unlink(missing_ok=True)
    return path


def _pieces(archive: Path, member: str) -> Iterator[bytes]:
    try:
        with _opened(archive) as members:
            content = next(item for item in members if item.name == member).open()
            while piece := content.read(PIECE_BYTES):
                yield piece
    except StopIteration:
        raise CannotRead("member_missing", f"{member} is not in the archive") from None
    except DAMAGE as error:
        raise CannotRead("damaged", f"{member} of a TorchServe archive: {error}") from None


def most_bytes(archive: Path) -> int:
    """Return how many bytes a real archive of this size unpacks to at most."""
    return MOST_TIMES * archive.stat().st_size + MOST_MORE_BYTES


@contextmanager
def _opened(archive: Path) -> Iterator[Iterator[Member]]:
    """Give the plain files of an archive; one is read before the next one is taken."""
    with archive.open("rb") as source:
        is_tar = source.read(2) == b"\x1f\x8b"
        source.seek(0)
        if is_tar:
            with gzip.GzipFile(fileobj=source) as inner:
                yield _of_tar(_Bounded(inner, most_bytes(archive)))
        else:
            with zipfile.ZipFile(source) as opened:
                yield _of_zip(opened)


def _of_zip(opened: zipfile.ZipFile) -> Iterator[Member]:
    for info in opened.infolist():
        if not info.is_dir():
            yield Member(info.filename, info.file_size, partial(opened.open, info))


def _of_tar(source: Any) -> Iterator[Member]:
    with tarfile.open(fileobj=source, mode="r|") as opened:
        for info in opened:
            if info.isreg():
                yield Member(info.name.removeprefix("./"), info.size, partial(opened.extractfile, info))


class _Bounded:
    """A stream that ends with an error where it is longer than a real archive."""

    def __init__(self, source: gzip.GzipFile, left: int) -> None:
        self._source, self._left = source, left

    def read(self, length: int) -> bytes:
        piece = self._source.read(min(length, PIECE_BYTES))
        self._left -= len(piece)
        if self._left < 0:
            raise CannotRead("zip_bomb", "unpacks to far more than the archive is")
        return piece
