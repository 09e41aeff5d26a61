"""What a rewritten archive says of its origin: a note inside, and one beside it that has the price too."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from harness.artifacts import files
from harness.artifacts.archive.limits import LIMITS, CannotRead
from harness.artifacts.archive.members import read_directory, read_member
from harness.artifacts.file_copies import digest_of
from harness.core.verdict import Fix, Provenance
from harness.machine.files import plain_bytes
from harness.store import codec
from harness.store.json import JsonError, from_json
from harness.worker import wire

BESIDE = f".{wire.PROVENANCE}"
INSIDE = f"extra/{wire.PROVENANCE}"
MOST_BYTES = 1 << 20
PRUNING = "prune"


@dataclass(frozen=True, kw_only=True, slots=True)
class NoteBeside:
    """``NAME.provenance.json``; ``sha256``: of the archive that it is about."""

    sha256: str
    provenance: Provenance


@dataclass(frozen=True, kw_only=True, slots=True)
class NoteInside:
    """What is read of the note that the worker writes into the archive."""

    torch: str
    from_digest: str
    model: str = ""
    rules: Mapping[str, Any]
    before: "NoteInside | str | None" = None


def write_provenance(path: Path, provenance: Provenance) -> None:
    """Write what is known of the rewritten archive at ``path`` beside it."""
    with files.opened(str(path)) as source:
        note = NoteBeside(sha256=digest_of(source), provenance=provenance)
    path.with_suffix(BESIDE).write_bytes(codec.pretty(note))


def read_provenance(path: str, given: str, sha256: str) -> Provenance | None:
    """Return what the archive at ``path`` was rewritten from; None where no note says so that can be read.

    ``given``: the file that ``path`` is a copy of, beside which the other note may lie; ``sha256``: of its bytes.
    """
    try:
        with files.opened(path) as source:
            directory = read_directory(source, LIMITS)
            inside = from_json(read_member(source, directory.inside[INSIDE], MOST_BYTES, LIMITS), NoteInside)
    except (CannotRead, KeyError, JsonError):
        return None
    try:
        beside = from_json(plain_bytes(Path(given).with_suffix(BESIDE)), NoteBeside)
    except (OSError, JsonError):
        pass
    else:
        if beside.sha256 == sha256:
            return beside.provenance
    rules, first = dict(inside.rules), inside
    while isinstance(first.before, NoteInside):  # in several steps, or rewritten again
        first = first.before
        rules |= first.rules
    fix = Fix(name=" + ".join(rules) or PRUNING, rewrites=True)
    return Provenance(
        origin=first.model, from_digest=first.from_digest, old=f"torch {inside.torch.partition('+')[0]}", fix=fix
    )
