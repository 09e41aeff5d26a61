"""The index of golden records: which record of each model is accepted, why, by whom and when.

A record lies in a folder that is named after its digest, so what is accepted never overwrites what it replaces. The
one rename that writes ``golden/index.json`` is the decision: a kill before it leaves the records of before, and one
after it those of after, with at most folders that the index does not name and ``golden gc`` removes.
"""

import fcntl
import os
import re
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import date
from pathlib import Path

from harness.core.errors import GoldenError
from harness.machine.files import unwritable
from harness.store import codec
from harness.store.json import JsonError, from_json

INDEX = "index.json"
RECORDS = "records"
PROPOSED = "proposed"
CONFLICT = (b"<<<<<<< ", b">>>>>>> ")
PART = ".part"
"""In ``PROPOSED``: where a record is written before it takes its place."""
WITHIN = (RECORDS, PROPOSED, f"{PROPOSED}/{PART}")
"""The folders that commands write into and tidy up."""
SCHEMA_VERSION = 3
DIGEST = re.compile(r"[0-9a-f]{64}")


@dataclass(frozen=True, kw_only=True, slots=True)
class IndexEntry:
    """Which record of a model is accepted, by the sha256 of its ``record.json``, and why it is trusted."""

    sha256: str
    release: str
    reason: str
    accepted: date
    by: str = ""
    run: str = ""


@dataclass(frozen=True, kw_only=True, slots=True)
class Index:
    """``golden/index.json``."""

    schema_version: int = SCHEMA_VERSION
    records: Mapping[str, IndexEntry] = field(default_factory=dict)


def can_have_folder(model: str) -> bool:
    """Whether a model of this name can have a folder of its own here; names come from files that anybody may write."""
    return not (model == "" or model.startswith(".") or "/" in model or "\0" in model)


def index_bytes(folder: Path) -> bytes | None:
    """Return what lies in the index under ``folder``; None without one. Raises ``RunDirError``: unreadable."""
    path = folder / INDEX
    try:
        return path.read_bytes()
    except FileNotFoundError:
        return None
    except OSError as error:
        raise unwritable(f"{path} cannot be read", error, "make it readable") from error


def parsed_index(data: bytes | None, folder: Path) -> Mapping[str, IndexEntry]:
    """Return the accepted records by model. Raises ``GoldenError``: a damaged index, or one of another schema."""
    if data is None:
        return {}
    path = folder / INDEX
    restore = f"restore it: git checkout {path} (git log -p {path} shows who changed it)"
    if any(line.startswith(CONFLICT) for line in data.splitlines()):
        raise GoldenError(
            f"{path} holds the marks of a merge conflict", "keep the entries of both sides, one for each model"
        )
    try:
        index = from_json(data, Index)
    except JsonError as error:
        raise GoldenError(f"{path} is damaged: {error}", restore) from error
    if index.schema_version != SCHEMA_VERSION:
        when = "a later" if index.schema_version > SCHEMA_VERSION else "an earlier"
        raise GoldenError(
            f"{path} is of schema {index.schema_version}, from {when} version",
            "use a gate of that version, or propose the records again",
        )
    for model, entry in index.records.items():
        if not can_have_folder(model):
            raise GoldenError(f"{path} names a model that can have no folder: {model!r}", restore)
        if not DIGEST.fullmatch(entry.sha256):
            raise GoldenError(f"{path}: sha256 of {model} is no digest: {entry.sha256!a:.80}", restore)
    return dict(sorted(index.records.items()))


def write_index(folder: Path, records: Mapping[str, IndexEntry]) -> None:
    """Write the index under ``folder``, whole or not at all."""
    codec.write_atomically(folder / INDEX, codec.pretty(Index(records=dict(sorted(records.items())))))


def refuse_links(paths: Iterable[Path]) -> None:
    """Raise ``GoldenError`` where a command would read, write or remove in a folder that a link leads to."""
    for path in paths:
        if path.is_symlink():
            raise GoldenError(f"{path} is a link: records and proposals lie in folders of their own", "remove the link")


@contextmanager
def locked(folder: Path) -> Iterator[None]:
    """Hold the folder for this process, so that no two commands write one index at once.

    Raises:
        GoldenError: another command holds it, or a folder in it is a link.
        RunDirError: it cannot be written.
    """
    records = folder / RECORDS
    refuse_links(folder / name for name in WITHIN)
    refuse_links(records.iterdir() if records.is_dir() else ())
    try:
        folder.mkdir(parents=True, exist_ok=True)
        handle = os.open(folder, os.O_RDONLY)
    except OSError as error:
        raise unwritable(f"{folder} cannot be written", error, "make it writable") from error
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        yield
    except BlockingIOError as error:
        raise GoldenError(f"another command is changing {folder}", "wait for it") from error
    finally:
        os.close(handle)
