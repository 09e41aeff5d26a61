"""Golden records: what an old release answered, kept in git, verified on every read.

    golden/index.json            which records are accepted, and why; see ``golden_index.py``
    golden/records/MODEL/DIGEST  records; see ``harness/artifacts/records.py``
    golden/proposed/MODEL        the same, waiting for ``golden accept``

A run never writes here; ``propose``, ``accept`` and ``gc`` do, on purpose.
"""

import contextlib
import os
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from pathlib import Path

from harness.artifacts.adopted import has_changed
from harness.artifacts.golden_index import (
    INDEX,
    PART,
    PROPOSED,
    RECORDS,
    IndexEntry,
    can_have_folder,
    index_bytes,
    locked,
    parsed_index,
    refuse_links,
    write_index,
)
from harness.artifacts.old_outputs import Remembered
from harness.artifacts.records import (
    accepted_record,
    laid_out_chunks,
    lay_out,
    outputs_of,
    own_record,
    remembered_of,
    run_of,
    same_content,
    write_file,
    write_record,
)
from harness.artifacts.tensors.outputs import Outputs
from harness.artifacts.tensors.samples import sampled
from harness.core.environment import Fingerprint
from harness.core.errors import GoldenError
from harness.core.golden import RECORD, VALUES, GoldenRecord, Source, Trust
from harness.core.models import Artifact
from harness.machine.files import emptied, moved, remove, unwritable
from harness.store import codec

IGNORED = ".gitignore"
"""Written into ``PROPOSED``, so that proposals are never committed."""
ATTRIBUTES = ".gitattributes"
"""Written into ``RECORDS``, so that git changes no byte that it takes for the end of a line."""
MAX_ARTIFACT_BYTES = 256 * 1024
DIGITS = 12
"""Of its digest, in the name of a record's folder; as many as ``golden diff`` shows."""


@dataclass(frozen=True, kw_only=True)
class Why:
    """Who decides, on which day (UTC), and for which reason."""

    reason: str
    by: str
    on: date


class GoldenStore:
    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._read: tuple[bytes | None, Mapping[str, IndexEntry]] | None = None

    def exists(self) -> bool:
        return self.folder.is_dir()

    def title(self) -> str:
        return "golden records"

    def names(self) -> tuple[str, ...]:
        return tuple(self.entries())

    def entries(self) -> Mapping[str, IndexEntry]:
        """Return the accepted records with reasons; parsed again only if a byte changed. Raises ``GoldenError``."""
        now = index_bytes(self.folder)
        if self._read is None or self._read[0] != now:
            self._read = (now, parsed_index(now, self.folder))
        return self._read[1]

    def trust(self, models: Sequence[str]) -> tuple[Trust, ...]:
        entries = self.entries()
        return tuple(_trust(name, entries[name]) for name in models if name in entries)

    def proposed(self) -> tuple[str, ...]:
        return tuple(sorted(path.parent.name for path in (self.folder / PROPOSED).glob(f"*/{RECORD}")))

    def record_folder(self, model: str) -> Path:
        """Return the folder of the accepted record of ``model``. Raises ``GoldenError``: there is none."""
        entry = self.entries().get(model)
        if entry is None:
            raise GoldenError(f"there is no golden record of {model}", "propose one: golden propose RUN")
        return self._place(model, entry.sha256)

    def _place(self, model: str, sha256: str) -> Path:
        return self.folder / RECORDS / model / sha256[:DIGITS]

    def record(self, model: str) -> GoldenRecord:
        """Return an accepted record, every byte verified. Raises ``GoldenError``: there is none, or another one."""
        folder, entry = self.record_folder(model), self.entries()[model]
        refuse_links([folder.parent])
        record = accepted_record(folder, model, entry.sha256)
        made = (record.producer.torch, run_of(record))
        if made != (entry.release, entry.run):
            raise GoldenError(
                f"{folder / RECORD} is of torch {made[0]} and run {made[1] or 'unknown'}, and {INDEX} says torch "
                f"{entry.release} and run {entry.run or 'unknown'}",
                f"see who wrote that: git log -p {self.folder / INDEX}",
            )
        return record

    def outputs(self, model: str) -> Outputs:
        return outputs_of(self.record_folder(model), self.record(model))

    def unpack(self, model: str, destination: Path) -> Artifact:
        """Write artifact and inputs for a worker; return the artifact, without a path if over 256 KiB and not kept."""
        record = self.record(model)
        return lay_out(record, destination, laid_out_chunks(self.record_folder(model), record))

    def remembered(self, model: str, folder: Path) -> Remembered:
        return remembered_of(self.record(model), folder / VALUES)

    def proposal(self, model: str) -> tuple[GoldenRecord, str, Outputs]:
        """Return a verified proposal: record, sha256 of ``record.json``, outputs. Raises ``GoldenError``."""
        folder = self.folder / PROPOSED / model
        if model not in self.proposed():
            waiting = ", ".join(self.proposed()) or "none"
            raise GoldenError(f"there is no proposal for {model}", f"proposals waiting: {waiting}")
        record, sha256 = own_record(folder, model)
        return record, sha256, outputs_of(folder, record)

    def propose(
        self, artifact: Artifact, outputs: Outputs, producer: Fingerprint, device: str, source: Source | None = None
    ) -> Path | None:
        """Write a proposal from an artifact with its recorded inputs and its golden outputs; return its folder.

        None if the accepted record says the same already. The proposal replaces an earlier one once it is whole and
        verified; one that is refused leaves nothing. Raises ``GoldenError``: artifact or inputs changed since they gave
        the outputs, or the name cannot be a folder's; ``RunDirError``: it cannot be written.
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
                proposal = write_record(
                    GoldenRecord(
                        model=artifact.model,
                        device=device,
                        producer=producer,
                        artifact=artifact,
                        inputs=[],
                        answers=[],
                        files={},
                        source=source,
                    ),
                    artifact,
                    Remembered(golden=sampled(outputs)),
                    lambda name, chunks: write_file(part / name, chunks),
                    keep_artifact=artifact.size_bytes <= MAX_ARTIFACT_BYTES,
                )
                own_record(part, artifact.model)
                if os.path.lexists(folder):
                    remove(folder)
                if known is not None and same_content(known, proposal):
                    return None
                part.rename(folder)
            except OSError as error:
                raise unwritable(f"{folder} cannot be written", error, "make it writable") from error
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

    def accept(self, models: Sequence[str], why: Why, compared: Mapping[str, str] | None = None) -> None:
        """Make proposals the records of their models, all of them by one write of the index.

        ``compared``: sha256 of the ``record.json`` of those that somebody looked at. Raises ``GoldenError``: there is
        no such proposal, its files are not those that were proposed, or it is not the one that was compared; then
        nothing changed. ``RunDirError``: something cannot be written.
        """
        with locked(self.folder):
            before = self.entries()
            accepted = {}
            for model in models:
                record, sha256, _ = self.proposal(model)
                if (compared or {}).get(model, sha256) != sha256:
                    raise GoldenError(f"the proposal for {model} is another one by now", "look at it: golden diff")
                accepted[model] = _entry(record, sha256, why)
            for model, entry in accepted.items():
                self._keep(model, entry.sha256)
            write_index(self.folder, {**before, **accepted})
            for model, entry in accepted.items():
                if model in before and before[model].sha256 != entry.sha256:
                    self._drop(self._place(model, before[model].sha256))
                self._drop(self.folder / PROPOSED / model)

    def _keep(self, model: str, sha256: str) -> None:
        """Write what is proposed for ``model`` to the place of its record, whole and verified, unless it lies there."""
        place, part = self._place(model, sha256), self.folder / PROPOSED / PART / model
        with contextlib.suppress(GoldenError):  # missing, or damaged: written anew
            accepted_record(place, model, sha256)
            return
        try:
            shutil.copytree(self.folder / PROPOSED / model, emptied(part), symlinks=True, dirs_exist_ok=True)
            accepted_record(part, model, sha256)  # what was decided about, and nothing that came meanwhile
            place.parent.mkdir(parents=True, exist_ok=True)
            codec.write_atomically(self.folder / RECORDS / ATTRIBUTES, b"* -text\n")
            moved(part, place)
        except OSError as error:
            raise unwritable(f"{place} cannot be written", error, "make it writable") from error
        finally:
            shutil.rmtree(part.parent, ignore_errors=True)

    def remove(self, models: Sequence[str]) -> None:
        """Remove accepted records, from the index first."""
        with locked(self.folder):
            before = self.entries()
            write_index(self.folder, {name: entry for name, entry in before.items() if name not in models})
            for model in models:
                self._drop(self.folder / RECORDS / model)

    def _drop(self, path: Path) -> None:
        if os.path.lexists(path):
            remove(path)


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


def _entry(record: GoldenRecord, sha256: str, why: Why) -> IndexEntry:
    return IndexEntry(
        sha256=sha256,
        release=record.producer.torch,
        reason=why.reason,
        accepted=why.on,
        by=why.by,
        run=run_of(record),
    )
