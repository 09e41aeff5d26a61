"""Decisions about golden records: accepted, rejected, removed; each moves files and adds a line to the journal."""

import shutil
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from harness.domain.golden import Action, GoldenRecord, IndexEntry, JournalEntry, Origin
from harness.errors import GoldenError
from harness.golden.files import (
    PROPOSED,
    RECORD,
    RECORDS,
    accepted_record,
    content_digest,
    own_record,
    run_of,
    sha256_of,
)
from harness.golden.journal import Ledger, extended, first_schema, read_ledger
from harness.golden.pending import decide, locked
from harness.golden.store import GoldenStore


@dataclass(frozen=True, kw_only=True)
class Why:
    """Who decides, when (UTC), and for which reason."""

    reason: str
    by: str
    at: datetime


@dataclass(frozen=True, kw_only=True)
class Compared:
    """A proposal that was compared: the sha256 of its ``record.json``, and what it changes in numbers, in words."""

    record: str
    change: str


def accept(store: GoldenStore, models: Sequence[str], why: Why, compared: Mapping[str, Compared] | None = None) -> None:
    """Move proposals into the records, and say so in journal and index.

    Raises:
        GoldenError: there is no such proposal, its files are not those that were proposed, or it is another one than
            was compared; then nothing changed.
    """
    with locked(store.folder):
        ledger = store.ledger()
        decisions = _of_proposals(store, Action.ACCEPTED, models, why, compared or {})

        def lay_out(records: Path) -> None:
            for decision in decisions:
                copied = records / decision.model
                shutil.copytree(store.folder / PROPOSED / decision.model, copied, symlinks=True)
                accepted_record(copied, decision.record)  # what was decided about, and nothing that came meanwhile

        decide(store.folder, extended(ledger, decisions), lay_out)


def accept_in_place(store: GoldenStore, models: Sequence[str], why: Why) -> tuple[str, ...]:
    """Accept what lies in the records already, and is not what the journal says; return the models.

    For records that another branch accepted, and for those of an index from before there was a journal, which must
    still be what that index says.

    Args:
        models: names, or ``all``.

    Raises:
        GoldenError: a record is not whole, or none differs from what the journal says.
    """
    with locked(store.folder):
        first = first_schema(store.folder)
        ledger = Ledger() if first else read_ledger(store.folder)
        lying = sorted(path.parent.name for path in (store.folder / RECORDS).glob(f"*/{RECORD}"))
        everything = list(models) == ["all"]
        names = _not_accepted(lying, store.folder, ledger) if everything else tuple(dict.fromkeys(models))
        if not names:
            raise GoldenError("every record is what was accepted", "there is nothing to accept in place")
        if first and set(names) != set(first):
            raise GoldenError("the records of an older index are taken over all at once", "name all")
        decisions = []
        for model in names:
            if model not in lying:
                raise GoldenError(f"no record of {model} lies in {store.folder / RECORDS}", "name what lies there")
            record, sha256 = _lying(store.record_folder(model), first.get(model))
            if model in ledger.records and ledger.records[model].sha256 == sha256:
                raise GoldenError(f"the record of {model} is what was accepted", "leave it out")
            decisions.append(_entry(Action.ACCEPTED, record, sha256, why, origin=Origin.IN_PLACE))
        decide(store.folder, extended(ledger, decisions))
        return names


def reject(store: GoldenStore, models: Sequence[str], why: Why, compared: Mapping[str, Compared] | None = None) -> None:
    """Remove proposals, and say in the journal why.

    Raises:
        GoldenError: as ``accept``.
    """
    with locked(store.folder):
        ledger = store.ledger()
        decisions = _of_proposals(store, Action.REJECTED, models, why, compared or {})
        decide(store.folder, extended(ledger, decisions))


def remove(store: GoldenStore, models: Sequence[str], why: Why) -> None:
    """Remove accepted records, and say so in journal and index."""
    with locked(store.folder):
        ledger = store.ledger()
        decisions = [
            JournalEntry(
                number=0,
                previous="",
                action=Action.REMOVED,
                model=model,
                record=ledger.records[model].sha256,
                replaces="",
                release=ledger.records[model].release,
                reason=why.reason,
                by=why.by,
                at=_stamp(why.at),
                run=ledger.records[model].run,
            )
            for model in models
        ]
        decide(store.folder, extended(ledger, decisions))


def _of_proposals(
    store: GoldenStore, action: Action, models: Sequence[str], why: Why, compared: Mapping[str, Compared]
) -> list[JournalEntry]:
    decisions = []
    for model in models:
        record, sha256, _ = store.proposal(model)
        looked_at = compared.get(model, Compared(record=sha256, change=""))
        if looked_at.record != sha256:
            raise GoldenError(f"the proposal for {model} is another one by now", "python -m harness golden diff")
        decisions.append(_entry(action, record, sha256, why, change=looked_at.change))
    return decisions


def _entry(
    action: Action, record: GoldenRecord, sha256: str, why: Why, *, change: str = "", origin: Origin = Origin.PROPOSAL
) -> JournalEntry:
    """Return a decision; its place in the chain is filled in where it is appended."""
    return JournalEntry(
        number=0,
        previous="",
        action=action,
        model=record.model,
        record=sha256,
        replaces="",
        release=record.producer.torch,
        reason=why.reason,
        by=why.by,
        at=_stamp(why.at),
        content=content_digest(record),
        run=run_of(record),
        change=change,
        origin=origin,
    )


def _stamp(at: datetime) -> str:
    return at.strftime("%Y-%m-%dT%H:%M:%SZ")


def _lying(folder: Path, entry: IndexEntry | None) -> tuple[GoldenRecord, str]:
    """Return a record as it lies there; by the entry of an older index where there is one."""
    if entry is not None:
        return accepted_record(folder, entry.sha256), entry.sha256
    return own_record(folder, since="recorded")


def _not_accepted(lying: Sequence[str], folder: Path, ledger: Ledger) -> tuple[str, ...]:
    return tuple(
        name
        for name in lying
        if name not in ledger.records or ledger.records[name].sha256 != sha256_of(folder / RECORDS / name / RECORD)
    )
