"""Golden records: what an old release answered, kept in git, verified on every read.

    golden/index.json     accepted records, and where the journal ends; see ``journal.py``
    golden/journal.jsonl  every decision about a record, in a chain
    golden/records/MODEL  accepted records; see ``files.py``
    golden/proposed/MODEL the same, waiting for ``golden accept``

A run never writes here; ``propose`` does, and its decisions, on purpose and with a reason.
"""

import os
import shutil
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from pathlib import Path

from harness.domain.environment import Fingerprint
from harness.domain.golden import Action, GoldenRecord, IndexEntry, JournalEntry, Origin, Source, Trust
from harness.domain.models import Artifact
from harness.errors import GoldenError, RunDirError
from harness.golden.files import (
    ARTIFACT,
    IGNORED,
    INPUTS,
    PROPOSED,
    RECORD,
    RECORDS,
    accepted_record,
    can_have_folder,
    content_digest,
    outputs_of,
    own_record,
    run_of,
    same_content,
    sha256_of,
    unpacked,
    write_record,
)
from harness.golden.journal import (
    INDEX,
    JOURNAL,
    PART,
    Ledger,
    decide,
    extended,
    locked,
    read_ledger,
    unfinished,
)
from harness.models.artifacts import has_changed, inputs_digest
from harness.models.old_outputs import Remembered
from harness.store import codec
from harness.system.files import emptied, refusal, remove
from harness.tensors.outputs import Outputs
from harness.worker import wire


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


class GoldenStore:
    """The ``golden/`` folder: reads records, takes proposals, decides about them."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._verified: tuple[object, Ledger] | None = None

    def exists(self) -> bool:
        """Whether the folder is there, with or without records in it."""
        return self.folder.is_dir()

    def title(self) -> str:
        """Return what the report calls them."""
        return "golden records"

    def ledger(self) -> Ledger:
        """Return what the journal says, verified; it is read again only if a byte changed.

        Raises:
            GoldenError: journal or index is not what was written, or a decision was interrupted.
        """
        if unfinished(self.folder):
            raise GoldenError(
                f"a decision about {self.folder} was cut off, or is being made",
                "finish it: golden status",
            )
        files = [self.folder / name for name in (JOURNAL, INDEX)]
        now = [path.read_bytes() if path.is_file() else None for path in files]
        if self._verified is None or self._verified[0] != now:
            self._verified = (now, read_ledger(self.folder))
        return self._verified[1]

    def names(self) -> tuple[str, ...]:
        """Return the models that have an accepted record."""
        return tuple(self.ledger().records)

    def entries(self) -> Mapping[str, IndexEntry]:
        """Return the accepted records with their reasons."""
        return self.ledger().records

    def trust(self, models: Sequence[str]) -> tuple[Trust, ...]:
        """Return why the records of ``models`` are trusted, for those that have one."""
        found = self.entries()
        return tuple(_trust(name, found[name]) for name in models if name in found)

    def proposed(self) -> tuple[str, ...]:
        """Return the models whose proposal waits to be accepted."""
        return tuple(sorted(path.parent.name for path in (self.folder / PROPOSED).glob(f"*/{RECORD}")))

    def record_folder(self, model: str) -> Path:
        """Return the folder of the accepted record of ``model``."""
        return self.folder / RECORDS / model

    def record(self, model: str) -> GoldenRecord:
        """Return an accepted record, every byte of it verified against the index and the journal.

        Raises:
            GoldenError: there is none, or it is not what was accepted.
        """
        entry = self.entries().get(model)
        if entry is None:
            raise GoldenError(f"there is no golden record of {model}", "propose one: golden propose RUN")
        folder = self.record_folder(model)
        record = accepted_record(folder, entry.sha256)
        made = (record.producer.torch, run_of(record))
        if made != (entry.release, entry.run):
            raise GoldenError(
                f"{folder / RECORD} is of torch {made[0]} and run {made[1] or 'unknown'}, and entry {entry.entry} "
                f"of the journal says torch {entry.release} and run {entry.run or 'unknown'}",
                f"see who wrote that entry: git log -p {self.folder / JOURNAL}",
            )
        return record

    def outputs(self, model: str) -> Outputs:
        """Return the golden outputs of ``model``; large tensors are samples."""
        return outputs_of(self.record_folder(model), self.record(model))

    def remembered(self, model: str, folder: Path) -> Remembered:
        """Return the golden outputs: a record keeps nothing else, and ``folder`` is not needed."""
        del folder
        return Remembered(golden=self.outputs(model))

    def unpack(self, model: str, destination: Path) -> Artifact:
        """Write the record's artifact and inputs where a worker can read them; return the artifact.

        Its path is empty if it was too large to keep (over 256 KiB).
        """
        record = self.record(model)
        folder = self.record_folder(model)
        inputs = destination / "inputs"
        inputs.mkdir(parents=True, exist_ok=True)
        path = ""
        if ARTIFACT in record.files:
            path = str(destination / f"{model}{record.artifact.kind.suffix}")
            Path(path).write_bytes(unpacked(folder, record, ARTIFACT))
        (inputs / wire.TENSORS_BIN).write_bytes(unpacked(folder, record, INPUTS))
        lines = b"".join(codec.canonical(entry) + b"\n" for entry in record.inputs)
        (inputs / wire.TENSORS_INDEX).write_bytes(lines)
        made = Counter(input_set for input_set, _, _ in record.calls)
        schedule = tuple((input_set.name, made[input_set.name]) for input_set in record.artifact.input_sets)
        return replace(
            record.artifact, path=path, inputs_dir=str(inputs), inputs_digest=inputs_digest(inputs), schedule=schedule
        )

    def proposal(self, model: str) -> tuple[GoldenRecord, str, Outputs]:
        """Return a waiting proposal, the sha256 of its ``record.json``, and its outputs; its files are verified.

        Raises:
            GoldenError: there is none, or its files are not those that were proposed.
        """
        folder = self.folder / PROPOSED / model
        if model not in self.proposed():
            waiting = ", ".join(self.proposed()) or "none"
            raise GoldenError(f"there is no proposal for {model}", f"proposals waiting: {waiting}")
        record, sha256 = own_record(folder)
        return record, sha256, outputs_of(folder, record)

    def propose(
        self, artifact: Artifact, outputs: Outputs, producer: Fingerprint, device: str, source: Source | None = None
    ) -> Path | None:
        """Write a proposal from an artifact with its recorded inputs and its golden outputs; return its folder.

        None if the accepted record says the same already: then nothing waits. It takes the place of an earlier proposal
        once it is whole and verified; one that is refused leaves nothing.

        Raises:
            GoldenError: artifact or inputs are other ones by now than gave the outputs, or it has no proper name.
            RunDirError: it cannot be written.
        """
        if not can_have_folder(artifact.model):
            raise GoldenError(f"{artifact.model!a:.100} is no name of a model", "name it as the project declares it")
        folder = self.folder / PROPOSED / artifact.model
        if has_changed(artifact):
            message = f"{artifact.path} or its inputs are other ones by now than gave the outputs"
            raise GoldenError(message, "run it again, and propose from that run")
        with locked(self.folder):
            known = self._intact(artifact.model)
            part = self.folder / PROPOSED / PART / artifact.model
            try:
                emptied(part)
                codec.write_atomically(self.folder / PROPOSED / IGNORED, b"*\n")
                proposal = write_record(part, artifact, outputs, producer=producer, device=device, source=source)
                own_record(part)
                if os.path.lexists(folder):
                    remove(folder)
                if known is not None and same_content(known, proposal):
                    return None
                part.rename(folder)
            except OSError as error:
                raise RunDirError(f"{folder} cannot be written: {refusal(error)}", "make it writable") from error
            finally:
                shutil.rmtree(part.parent, ignore_errors=True)
        return folder

    def _intact(self, model: str) -> GoldenRecord | None:
        """Return the accepted record; None if there is none, or it is damaged and should be replaced."""
        if model not in self.entries():
            return None
        try:
            return self.record(model)
        except GoldenError:
            return None

    def accept(self, models: Sequence[str], why: Why, compared: Mapping[str, Compared] | None = None) -> None:
        """Move proposals into the records, and say so in journal and index.

        Raises:
            GoldenError: there is no such proposal, its files are not those that were proposed, or it is another one
                than was compared; then nothing changed.
        """
        with locked(self.folder):
            ledger = self.ledger()
            decisions = self._of_proposals(Action.ACCEPTED, models, why, compared or {})

            def lay_out(records: Path) -> None:
                for decision in decisions:
                    copied = records / decision.model
                    shutil.copytree(self.folder / PROPOSED / decision.model, copied, symlinks=True)
                    accepted_record(copied, decision.record)  # what was decided about, and nothing that came meanwhile

            decide(self.folder, extended(ledger, decisions), lay_out)

    def accept_in_place(self, models: Sequence[str], why: Why) -> tuple[str, ...]:
        """Accept records that are in place already and differ from the journal; return the models.

        For records that another branch accepted.

        Args:
            models: names, or ``all``.

        Raises:
            GoldenError: a record is incomplete, or none differs from the journal.
        """
        with locked(self.folder):
            ledger = read_ledger(self.folder)
            lying = sorted(path.parent.name for path in (self.folder / RECORDS).glob(f"*/{RECORD}"))
            everything = list(models) == ["all"]
            names = _not_accepted(lying, self.folder, ledger) if everything else tuple(dict.fromkeys(models))
            if not names:
                raise GoldenError("every record is what was accepted", "there is nothing to accept in place")
            decisions = []
            for model in names:
                if model not in lying:
                    raise GoldenError(f"no record of {model} lies in {self.folder / RECORDS}", "name what lies there")
                record, sha256 = own_record(self.record_folder(model), since="recorded")
                if model in ledger.records and ledger.records[model].sha256 == sha256:
                    raise GoldenError(f"the record of {model} is what was accepted", "leave it out")
                decisions.append(_entry(Action.ACCEPTED, record, sha256, why, origin=Origin.IN_PLACE))
            decide(self.folder, extended(ledger, decisions))
            return names

    def reject(self, models: Sequence[str], why: Why, compared: Mapping[str, Compared] | None = None) -> None:
        """Remove proposals, and say in the journal why.

        Raises:
            GoldenError: as ``accept``.
        """
        with locked(self.folder):
            ledger = self.ledger()
            decisions = self._of_proposals(Action.REJECTED, models, why, compared or {})
            decide(self.folder, extended(ledger, decisions))

    def remove(self, models: Sequence[str], why: Why) -> None:
        """Remove accepted records, and say so in journal and index."""
        with locked(self.folder):
            ledger = self.ledger()
            decisions = [
                JournalEntry(
                    action=Action.REMOVED,
                    model=model,
                    record=ledger.records[model].sha256,
                    release=ledger.records[model].release,
                    reason=why.reason,
                    by=why.by,
                    at=_stamp(why.at),
                    run=ledger.records[model].run,
                )
                for model in models
            ]
            decide(self.folder, extended(ledger, decisions))

    def _of_proposals(
        self, action: Action, models: Sequence[str], why: Why, compared: Mapping[str, Compared]
    ) -> list[JournalEntry]:
        decisions = []
        for model in models:
            record, sha256, _ = self.proposal(model)
            looked_at = compared.get(model, Compared(record=sha256, change=""))
            if looked_at.record != sha256:
                raise GoldenError(f"the proposal for {model} is another one by now", "look at it: golden diff")
            decisions.append(_entry(action, record, sha256, why, change=looked_at.change))
        return decisions


def _trust(model: str, entry: IndexEntry) -> Trust:
    return Trust(
        model=model,
        record=entry.sha256,
        release=entry.release,
        reason=entry.reason,
        accepted=entry.accepted,
        by=entry.by,
        run=entry.run,
    )


def _entry(
    action: Action, record: GoldenRecord, sha256: str, why: Why, *, change: str = "", origin: Origin = Origin.PROPOSAL
) -> JournalEntry:
    """Return a decision; its place in the chain is filled in when it is appended."""
    return JournalEntry(
        action=action,
        model=record.model,
        record=sha256,
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


def _not_accepted(lying: Sequence[str], folder: Path, ledger: Ledger) -> tuple[str, ...]:
    return tuple(
        name
        for name in lying
        if name not in ledger.records or ledger.records[name].sha256 != sha256_of(folder / RECORDS / name / RECORD)
    )
