"""The journal of golden records: a chain of decisions, and the index that must be what the chain gives.

Every line of ``golden/journal.jsonl`` is canonical JSON with the sha256 of the line before and its own, and
``golden/index.json`` ends the chain. So any edited field, any line removed, moved or added, and an index that differs
are detected. A chain rewritten from its first line is detected by ``follows``, with an older journal beside it.

A decision is one step: a kill at any moment leaves it not begun, or to be finished. Journal, index and new records are
laid out beside the old ones, and become a decision by one rename; every later ``golden`` command finishes it first:

    golden/proposed/.deciding/journal.jsonl  as it will be; moved last, so it is there until everything is done
    golden/proposed/.deciding/index.json     as it will be
    golden/proposed/.deciding/records/MODEL  records that will be accepted
"""

import fcntl
import hashlib
import os
import shutil
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from datetime import date
from pathlib import Path

from harness.domain.golden import GENESIS, SCHEMA_VERSION, Action, Head, Index, IndexEntry, JournalEntry, Origin
from harness.errors import GoldenError, RunDirError
from harness.golden.files import PROPOSED, RECORD, RECORDS, accepted_record, can_have_folder, sha256_of
from harness.store import codec
from harness.store.json import JsonError, from_json
from harness.system.files import refusal, remove

INDEX = "index.json"
JOURNAL = "journal.jsonl"
CONFLICT = (b"<<<<<<< ", b">>>>>>> ")
MERGED = (
    "where two branches both accepted records, take one side of both files "
    "(git checkout --ours golden/index.json golden/journal.jsonl), then golden accept all --in-place "
    "--reason TEXT"
)


@dataclass(frozen=True)
class Ledger:
    """What the journal says: all entries, and the records that are accepted at its end."""

    entries: tuple[JournalEntry, ...] = ()
    records: Mapping[str, IndexEntry] = field(default_factory=dict)

    @property
    def head(self) -> Head:
        """The end of the chain."""
        return Head(entries=len(self.entries), sha256=self.entries[-1].sha256 if self.entries else GENESIS)

    @property
    def index(self) -> Index:
        """What ``index.json`` must say."""
        return Index(journal=self.head, records=self.records)

    def rejection(self, model: str, content: str) -> JournalEntry | None:
        """Return the last rejection of a record of the same content, None if there is none."""
        found = (item for item in reversed(self.entries) if (item.model, item.content) == (model, content))
        return next((item for item in found if item.action is Action.REJECTED), None)


def read_ledger(folder: Path) -> Ledger:
    """Return what the journal under ``folder`` says, every line of it and the index verified.

    Raises:
        GoldenError: one of them was changed, is damaged, missing, or of another schema.
    """
    journal, index = _content(folder / JOURNAL), _content(folder / INDEX)
    schema = SCHEMA_VERSION if index is None else _parsed(index, folder).schema_version
    if schema != SCHEMA_VERSION:
        when = "a later" if schema > SCHEMA_VERSION else "an earlier"
        raise GoldenError(f"{folder / INDEX} is of schema {schema}, from {when} version", "use a gate of that version")
    if journal is None and index is None:
        return Ledger()
    if journal is None or index is None:
        name, other = (JOURNAL, INDEX) if journal is None else (INDEX, JOURNAL)
        raise GoldenError(f"{folder / name} is missing, and {other} beside it is not", _restore(folder, name))
    ledger = replay(journal, folder / JOURNAL)
    _check_index(index, ledger, folder)
    return ledger


def replay(journal: bytes, path: Path) -> Ledger:
    """Return what a journal says; errors name it by ``path``.

    Raises:
        GoldenError: a line was changed, or does not follow the one before it.
    """
    hint = _restore(path.parent, JOURNAL)
    if journal and not journal.endswith(b"\n"):
        raise GoldenError(f"{path} ends in the midst of a line", hint)
    entries: list[JournalEntry] = []
    records: dict[str, IndexEntry] = {}
    for number, line in enumerate(journal.split(b"\n")[:-1], start=1):
        entry = _entry(line, f"{path} line {number}", hint)
        previous = entries[-1].sha256 if entries else GENESIS
        if (entry.number, entry.previous) != (number, previous):
            raise GoldenError(
                f"{path} line {number} ({entry.model} {entry.action}) does not follow the line before it: "
                "lines were taken out, added or moved",
                f"{hint}; {MERGED}",
            )
        if entry.replaces != _sha256_of(records, entry.model):
            raise GoldenError(
                f"{path} line {number} replaces another record of {entry.model} than the one accepted before", hint
            )
        _apply(entry, records)
        entries.append(entry)
    return Ledger(entries=tuple(entries), records=dict(sorted(records.items())))


def extended(ledger: Ledger, decisions: Sequence[JournalEntry]) -> Ledger:
    """Return the ledger with decisions at its end; their numbers and hashes are filled in here."""
    entries, records = list(ledger.entries), dict(ledger.records)
    for decision in decisions:
        entry = replace(
            decision,
            number=len(entries) + 1,
            previous=entries[-1].sha256 if entries else GENESIS,
            replaces=_sha256_of(records, decision.model),
        )
        entry = replace(entry, sha256=_digest(entry))
        entries.append(entry)
        _apply(entry, records)
    return Ledger(entries=tuple(entries), records=dict(sorted(records.items())))


def write_ledger(folder: Path, ledger: Ledger) -> None:
    """Write journal and index under ``folder``, each whole or not at all."""
    folder.mkdir(parents=True, exist_ok=True)
    codec.write_atomically(folder / JOURNAL, b"".join(codec.canonical(entry) + b"\n" for entry in ledger.entries))
    codec.write_atomically(folder / INDEX, codec.pretty(ledger.index))


def follows(ledger: Ledger, before: Ledger) -> int | None:
    """Return the number of the first entry of an older journal that differs here; None if this one continues it."""
    for index, entry in enumerate(before.entries):
        if index >= len(ledger.entries) or ledger.entries[index] != entry:
            return entry.number
    return None


def _entry(line: bytes, place: str, hint: str) -> JournalEntry:
    try:
        entry = from_json(line, JournalEntry)
        date.fromisoformat(entry.at[:10])
    except ValueError as error:
        raise GoldenError(f"{place} is damaged: {error}", hint) from error
    # The bytes, not the fields: an added field that nobody reads is a change too.
    if _digest(entry) != entry.sha256 or codec.canonical(entry) != line:
        raise GoldenError(f"{place} ({entry.model} {entry.action}) was changed after it was written", hint)
    if not can_have_folder(entry.model):
        raise GoldenError(f"{place} names a model that can have no folder: {entry.model!r}", hint)
    return entry


def _digest(entry: JournalEntry) -> str:
    return hashlib.sha256(codec.canonical(replace(entry, sha256=""))).hexdigest()


def _sha256_of(records: Mapping[str, IndexEntry], model: str) -> str:
    return records[model].sha256 if model in records else ""


def _apply(entry: JournalEntry, records: dict[str, IndexEntry]) -> None:
    """Change ``records`` as the entry says; a rejection changes nothing."""
    if entry.action is Action.ACCEPTED:
        records[entry.model] = IndexEntry(
            sha256=entry.record,
            release=entry.release,
            reason=entry.reason,
            accepted=date.fromisoformat(entry.at[:10]),
            by=entry.by,
            run=entry.run,
            entry=entry.number,
        )
    elif entry.action is Action.REMOVED:
        records.pop(entry.model, None)


def _check_index(index: bytes, ledger: Ledger, folder: Path) -> None:
    """Raise ``GoldenError`` unless the index is byte for byte what the journal gives."""
    if index == codec.pretty(ledger.index):
        return
    path, hint = folder / INDEX, _restore(folder, INDEX)
    said = _parsed(index, folder)
    if said.journal != ledger.head:
        raise GoldenError(
            f"{path} ends the journal at entry {said.journal.entries} ({said.journal.sha256[:12]}), and it ends at "
            f"{ledger.head.entries} ({ledger.head.sha256[:12]}): one of the two was changed or cut",
            f"git checkout {folder}, or a copy of both files from before",
        )
    for model in sorted({*said.records, *ledger.records}):
        ours, theirs = ledger.records.get(model), said.records.get(model)
        if ours is None or theirs is None:
            what = "names" if ours is None else "lacks"
            raise GoldenError(f"{path} {what} a record of {model}, and the journal says otherwise", hint)
        for name in ours.__dataclass_fields__:
            if getattr(ours, name) != getattr(theirs, name):
                raise GoldenError(f"{path}: {name} of {model} is not what the journal says: it was changed", hint)
    raise GoldenError(f"{path} is not as it was written: something was added to it or laid out anew", hint)


def _parsed(index: bytes, folder: Path) -> Index:
    try:
        return from_json(index, Index)
    except JsonError as error:
        raise GoldenError(f"{folder / INDEX} is damaged: {error}", _restore(folder, INDEX)) from error


def _content(path: Path) -> bytes | None:
    try:
        content = path.read_bytes()
    except FileNotFoundError:
        return None
    except OSError as error:
        raise RunDirError(f"{path} cannot be read: {refusal(error)}", "make it readable") from error
    if any(line.startswith(CONFLICT) for line in content.splitlines()):
        raise GoldenError(f"{path} holds the marks of a merge conflict", MERGED)
    return content


def _restore(folder: Path, name: str) -> str:
    return f"restore it: git checkout {folder / name} (git log -p {folder / name} shows who changed it)"


DECIDING = ".deciding"
PART = ".part"
"""In ``PROPOSED``: where a proposal is written before it takes its place."""
WITHIN = (RECORDS, *(f"{PROPOSED}{name}" for name in ("", f"/{PART}", f"/{DECIDING}", f"/{DECIDING}.part")))
"""The folders that commands write into and tidy up."""


def unfinished(folder: Path) -> bool:
    """Whether a decision was interrupted after it was made."""
    return (folder / PROPOSED / DECIDING / JOURNAL).exists()


@contextmanager
def locked(folder: Path) -> Iterator[None]:
    """Hold the folder for this process, so that two commands never write one journal at once.

    An interrupted decision is finished first.

    Raises:
        GoldenError: another command holds it, or a folder in it is a link.
        RunDirError: it cannot be written.
    """
    _refuse_links(folder)
    try:
        folder.mkdir(parents=True, exist_ok=True)
        handle = os.open(folder, os.O_RDONLY)
    except OSError as error:
        raise RunDirError(f"{folder} cannot be written: {refusal(error)}", "make it writable") from error
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        _finish(folder)
        yield
    except BlockingIOError as error:
        raise GoldenError(f"another command is changing {folder}", "wait for it") from error
    finally:
        os.close(handle)


def settle(folder: Path) -> None:
    """Finish an interrupted decision, if there is one.

    Raises:
        GoldenError: as ``locked``.
    """
    _refuse_links(folder)
    if unfinished(folder):
        with locked(folder):
            pass


def _refuse_links(folder: Path) -> None:
    """Raise ``GoldenError`` where a command would write, or remove, in a folder that a link leads to."""
    for path in (folder / name for name in WITHIN):
        if path.is_symlink():
            raise GoldenError(f"{path} is a link: records and proposals lie in folders of their own", "remove the link")


def decide(folder: Path, ledger: Ledger, lay_out: Callable[[Path], None] | None = None) -> None:
    """Make ``ledger`` the folder's own and carry out its new entries; the folder is locked.

    Args:
        lay_out: writes the records to be accepted into the folder that it is given, one folder per model.

    Raises:
        RunDirError: something cannot be written: then nothing changed, or any later command finishes it.
    """
    pending = folder / PROPOSED / DECIDING
    part = pending.with_name(f"{DECIDING}.part")
    try:
        shutil.rmtree(part, ignore_errors=True)
        (part / RECORDS).mkdir(parents=True)
        if lay_out is not None:
            lay_out(part / RECORDS)
        write_ledger(part, ledger)
        part.rename(pending)
    except OSError as error:
        raise RunDirError(f"{part} cannot be written: {refusal(error)}", "free space in it") from error
    finally:
        shutil.rmtree(part, ignore_errors=True)
    _finish(folder)


def _finish(folder: Path) -> None:
    """Carry out a decision that was made, except for what is done already."""
    pending = folder / PROPOSED / DECIDING
    try:
        if unfinished(folder):
            for entry in _undone(folder, pending):
                _carry_out(folder, pending, entry)
            for name in (INDEX, JOURNAL):
                if (pending / name).exists():
                    (pending / name).replace(folder / name)
        if pending.exists():
            shutil.rmtree(pending)
    except GoldenError as error:  # not written by this program
        hint = f"look at {pending}; without it, and after git checkout {folder}, nothing was decided"
        raise GoldenError(error.message, hint) from error
    except OSError as error:
        hint = "make it writable; golden status finishes the decision then"
        raise RunDirError(f"{folder} cannot be written: {refusal(error)}", hint) from error


def _undone(folder: Path, pending: Path) -> tuple[JournalEntry, ...]:
    """Return the entries that the journal lacks.

    Raises:
        GoldenError: the waiting journal does not continue the present one.
    """
    now = (folder / JOURNAL).read_bytes() if (folder / JOURNAL).exists() else b""
    then = (pending / JOURNAL).read_bytes()
    if not then.startswith(now):
        raise GoldenError(f"{pending}: expected what goes on from {folder / JOURNAL}", "look at both")
    return replay(then, pending / JOURNAL).entries[now.count(b"\n") :]


def _carry_out(folder: Path, pending: Path, entry: JournalEntry) -> None:
    record, proposal = folder / RECORDS / entry.model, folder / PROPOSED / entry.model
    laid_out = pending / RECORDS / entry.model
    if laid_out.exists():  # whoever wrote it: only that very record is moved into place
        accepted_record(laid_out, entry.record)
    if (entry.action is Action.REMOVED or laid_out.exists()) and os.path.lexists(record):
        remove(record)
    if laid_out.exists():
        record.parent.mkdir(parents=True, exist_ok=True)
        laid_out.rename(record)
    decided = entry.action is not Action.REMOVED and entry.origin is Origin.PROPOSAL
    if decided and (proposal / RECORD).is_file() and sha256_of(proposal / RECORD) == entry.record:
        remove(proposal)
