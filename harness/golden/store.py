"""Golden records: what an old release answered, kept in git, verified on every read.

    golden/index.json     accepted records, and where the journal ends; see ``journal.py``
    golden/journal.jsonl  every decision about a record, in a chain
    golden/records/MODEL  accepted records; see ``files.py``
    golden/proposed/MODEL the same, waiting for ``golden accept``

A run never writes here; ``propose`` does, and the decisions of ``decisions.py``, on purpose and with a reason.
"""

import os
import shutil
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from harness.domain.environment import Fingerprint
from harness.domain.golden import GoldenRecord, IndexEntry, Source, Trust
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
    outputs_of,
    own_record,
    run_of,
    same_content,
    unpacked,
    write_record,
)
from harness.golden.journal import INDEX, JOURNAL, Ledger, read_ledger
from harness.golden.pending import locked, unfinished
from harness.models.old_outputs import Remembered
from harness.store import codec
from harness.system.files import remove
from harness.tensors.outputs import Outputs
from harness.worker import wire


class GoldenStore:
    """The ``golden/`` folder, to be read and proposed to."""

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
        """Return what the journal says, verified; read again only where a byte of it changed.

        Raises:
            GoldenError: journal or index is not what was written, or a decision was cut off.
        """
        if unfinished(self.folder):
            raise GoldenError(
                f"a decision about {self.folder} was cut off, or is being made",
                "finish it: python -m harness golden status",
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
        """Return why the records of ``models`` are trusted; of those that have one."""
        found = self.entries()
        return tuple(_trust(name, found[name]) for name in models if name in found)

    def proposed(self) -> tuple[str, ...]:
        """Return the models whose proposal waits to be accepted."""
        return tuple(sorted(path.parent.name for path in (self.folder / PROPOSED).glob(f"*/{RECORD}")))

    def record_folder(self, model: str) -> Path:
        """Return where the accepted record of ``model`` lies."""
        return self.folder / RECORDS / model

    def record(self, model: str) -> GoldenRecord:
        """Return an accepted record, every byte of it verified against the index and the journal.

        Raises:
            GoldenError: there is none, or it is not what was accepted.
        """
        entry = self.entries().get(model)
        if entry is None:
            raise GoldenError(
                f"there is no golden record of {model}", "propose one: python -m harness golden propose RUN"
            )
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
        """Return the golden outputs alone: a record keeps nothing else; ``folder`` is not needed."""
        del folder
        return Remembered(golden=self.outputs(model))

    def unpack(self, model: str, destination: Path) -> Artifact | None:
        """Write the record's artifact and inputs where a worker can read them; return the artifact.

        None where the record holds no artifact because it was over 256 KiB.
        """
        record = self.record(model)
        folder = self.record_folder(model)
        if ARTIFACT not in record.files:
            return None
        inputs = destination / "inputs"
        inputs.mkdir(parents=True, exist_ok=True)
        path = destination / f"{model}.pt"
        path.write_bytes(unpacked(folder, record, ARTIFACT))
        (inputs / wire.TENSORS_BIN).write_bytes(unpacked(folder, record, INPUTS))
        lines = b"".join(codec.canonical(entry) + b"\n" for entry in record.inputs)
        (inputs / wire.TENSORS_INDEX).write_bytes(lines)
        made = Counter(input_set for input_set, _, _ in record.calls)
        schedule = tuple((input_set.name, made[input_set.name]) for input_set in record.artifact.input_sets)
        return replace(record.artifact, path=str(path), inputs_dir=str(inputs), schedule=schedule)

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

        None where the accepted record says the same already: then nothing waits.

        Raises:
            RunDirError: it cannot be written.
        """
        folder = self.folder / PROPOSED / artifact.model
        with locked(self.folder):
            known = self._intact(artifact.model)
            try:
                if os.path.lexists(folder):
                    remove(folder)
                folder.mkdir(parents=True)
            except OSError as error:
                raise RunDirError(
                    f"{folder} cannot be written: {error.strerror or error}", "make it writable"
                ) from error
            codec.write_atomically(self.folder / PROPOSED / IGNORED, b"*\n")
            proposal = write_record(folder, artifact, outputs, producer=producer, device=device, source=source)
            if known is not None and same_content(known, proposal):
                shutil.rmtree(folder)
                return None
        return folder

    def _intact(self, model: str) -> GoldenRecord | None:
        """Return the accepted record; None where there is none, or it is damaged and wants to be replaced."""
        if model not in self.entries():
            return None
        try:
            return self.record(model)
        except GoldenError:
            return None


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
