"""A decision about golden records as one step: a kill at any moment leaves it not begun, or to be finished.

Journal, index and new records are laid out beside the old ones, and become a decision by one rename. From then on the
folder is what the decision says as soon as somebody finishes it, which every later ``golden`` command does first:

    golden/proposed/.deciding/journal.jsonl  as it will be; moved last, so it is there until everything is done
    golden/proposed/.deciding/index.json     as it will be
    golden/proposed/.deciding/records/MODEL  records that will be accepted
"""

import fcntl
import os
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from harness.domain.golden import Action, JournalEntry, Origin
from harness.errors import GoldenError, RunDirError
from harness.golden.files import PROPOSED, RECORD, RECORDS, accepted_record, sha256_of
from harness.golden.journal import INDEX, JOURNAL, Ledger, replay, write_ledger
from harness.system.files import remove

DECIDING = ".deciding"


def unfinished(folder: Path) -> bool:
    """Whether a decision was cut off after it was made."""
    return (folder / PROPOSED / DECIDING / JOURNAL).exists()


@contextmanager
def locked(folder: Path) -> Iterator[None]:
    """Hold the folder for this process, so that two commands never write one journal at once.

    A decision that was cut off is finished first.

    Raises:
        GoldenError: another command holds it.
        RunDirError: it cannot be written.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
        handle = os.open(folder, os.O_RDONLY)
    except OSError as error:
        raise RunDirError(f"{folder} cannot be written: {error.strerror or error}", "make it writable") from error
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        _finish(folder)
        yield
    except BlockingIOError as error:
        raise GoldenError(f"another command is changing {folder}", "wait for it") from error
    finally:
        os.close(handle)


def settle(folder: Path) -> None:
    """Finish a decision that was cut off; without one, nothing is touched."""
    if unfinished(folder):
        with locked(folder):
            pass


def decide(folder: Path, ledger: Ledger, lay_out: Callable[[Path], None] | None = None) -> None:
    """Make ``ledger`` that of the folder, with everything that its new entries say; the folder is locked.

    Args:
        lay_out: puts the records that will be accepted, by model, into the folder that it is given.

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
        raise RunDirError(f"{part} cannot be written: {error.strerror or error}", "free space in it") from error
    finally:
        shutil.rmtree(part, ignore_errors=True)
    _finish(folder)


def _finish(folder: Path) -> None:
    """Do what a decision says that was made; whatever of it is done already is left alone."""
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
    except GoldenError as error:  # nobody of this program wrote it so
        hint = f"look at {pending}; without it, and after git checkout {folder}, nothing was decided"
        raise GoldenError(error.message, hint) from error
    except OSError as error:
        hint = "make it writable; python -m harness golden status finishes the decision then"
        raise RunDirError(f"{folder} cannot be written: {error.strerror or error}", hint) from error


def _undone(folder: Path, pending: Path) -> tuple[JournalEntry, ...]:
    """Return the entries that the journal lacks.

    Raises:
        GoldenError: what waits does not go on from the journal.
    """
    now = (folder / JOURNAL).read_bytes() if (folder / JOURNAL).exists() else b""
    then = (pending / JOURNAL).read_bytes()
    if not then.startswith(now):
        raise GoldenError(f"{pending}: expected what goes on from {folder / JOURNAL}", "look at both")
    return replay(then, pending / JOURNAL).entries[now.count(b"\n") :]


def _carry_out(folder: Path, pending: Path, entry: JournalEntry) -> None:
    record, proposal = folder / RECORDS / entry.model, folder / PROPOSED / entry.model
    laid_out = pending / RECORDS / entry.model
    if laid_out.exists():  # whoever wrote it: nothing is moved here that is not that record
        accepted_record(laid_out, entry.record)
    if (entry.action is Action.REMOVED or laid_out.exists()) and os.path.lexists(record):
        remove(record)
    if laid_out.exists():
        record.parent.mkdir(parents=True, exist_ok=True)
        laid_out.rename(record)
    decided = entry.action is not Action.REMOVED and entry.origin is Origin.PROPOSAL
    if decided and (proposal / RECORD).is_file() and sha256_of(proposal / RECORD) == entry.record:
        remove(proposal)
