"""Golden records: what an old release answered, kept in git, verified on every read.

    golden/index.json                 accepted records: digest of record.json, release, reason, date
    golden/records/MODEL/record.json  specs, provenance, digests of the files beside it
    golden/records/MODEL/*.gz         artifact, inputs and output values
    golden/proposed/MODEL/...         the same, waiting for ``golden accept``

A run never writes here; ``propose`` and ``accept`` do, on purpose and with a reason.
"""

import gzip
import hashlib
import json
import shutil
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import date
from pathlib import Path
from typing import Any

from harness.domain.artifact import Artifact
from harness.domain.environment import Fingerprint
from harness.errors import GoldenError, RunDirError
from harness.numerics.outputs import Outputs
from harness.numerics.sampling import sampled
from harness.runtime import codec
from harness.runtime.remembered import Remembered
from harness.worker import wire

INDEX = "index.json"
RECORD = "record.json"
ARTIFACT = "artifact.pt.gz"
INPUTS = "inputs.bin.gz"
VALUES = "values.bin.gz"
MAX_ARTIFACT_BYTES = 256 * 1024


@dataclass(frozen=True, kw_only=True)
class GoldenRecord:
    """One model's record; ``calls`` are (input set, call, tree), ``inputs`` the lines of the inputs' index."""

    model: str
    device: str
    producer: Fingerprint
    artifact: Artifact
    inputs: list[Any]
    calls: list[tuple[str, int, Any]]
    files: dict[str, str]


@dataclass(frozen=True, kw_only=True)
class IndexEntry:
    """Why a record is trusted."""

    sha256: str
    release: str
    reason: str
    accepted: date


@dataclass(frozen=True, kw_only=True)
class Index:
    """``golden/index.json``."""

    schema_version: int = 1
    records: dict[str, IndexEntry] = field(default_factory=dict)


class GoldenStore:
    """The ``golden/`` folder."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def exists(self) -> bool:
        """Whether the folder is there, with or without records in it."""
        return self._folder.is_dir()

    def title(self) -> str:
        """Return what the report calls them."""
        return "golden records"

    def names(self) -> tuple[str, ...]:
        """Return the models that have an accepted record."""
        return tuple(sorted(self._index().records))

    def entries(self) -> Mapping[str, IndexEntry]:
        """Return the accepted records with their reasons."""
        return self._index().records

    def proposed(self) -> tuple[str, ...]:
        """Return the models whose proposal waits to be accepted."""
        return tuple(sorted(path.parent.name for path in (self._folder / "proposed").glob(f"*/{RECORD}")))

    def record(self, model: str) -> GoldenRecord:
        """Return an accepted record, every byte of it verified against the index.

        Raises:
            GoldenError: there is none, or it is not what was accepted.
        """
        entry = self._index().records.get(model)
        if entry is None:
            raise GoldenError(
                f"there is no golden record of {model}", "propose one: python -m harness golden propose RUN"
            )
        folder = self._folder / "records" / model
        _verify(folder / RECORD, entry.sha256)
        record = _read_record(folder / RECORD)
        for name, sha256 in record.files.items():
            _verify(folder / name, sha256)
        return record

    def outputs(self, model: str) -> Outputs:
        """Return the golden outputs of ``model``; large tensors are samples."""
        record = self.record(model)
        values = gzip.decompress((self._folder / "records" / model / VALUES).read_bytes())
        return Outputs(calls={(input_set, call): tree for input_set, call, tree in record.calls}, buffer=values)

    def remembered(self, model: str, folder: Path) -> Remembered:
        """Return the golden outputs alone: a record keeps nothing else; ``folder`` is not needed."""
        del folder
        return Remembered(golden=self.outputs(model))

    def unpack(self, model: str, destination: Path) -> Artifact | None:
        """Write the record's artifact and inputs where a worker can read them; return the artifact.

        None where the record holds no artifact because it was over 256 KiB.
        """
        record = self.record(model)
        source = self._folder / "records" / model
        if ARTIFACT not in record.files:
            return None
        inputs = destination / "inputs"
        inputs.mkdir(parents=True, exist_ok=True)
        path = destination / f"{model}.pt"
        path.write_bytes(gzip.decompress((source / ARTIFACT).read_bytes()))
        (inputs / wire.TENSORS_BIN).write_bytes(gzip.decompress((source / INPUTS).read_bytes()))
        lines = b"".join(codec.canonical(entry) + b"\n" for entry in record.inputs)
        (inputs / wire.TENSORS_INDEX).write_bytes(lines)
        made = Counter(input_set for input_set, _, _ in record.calls)
        schedule = tuple((input_set.name, made[input_set.name]) for input_set in record.artifact.input_sets)
        return replace(record.artifact, path=str(path), inputs_dir=str(inputs), schedule=schedule)

    def propose(self, artifact: Artifact, outputs: Outputs, producer: Fingerprint, device: str) -> Path:
        """Write a proposal from an artifact with its recorded inputs and its golden outputs; return its folder."""
        folder = self._folder / "proposed" / artifact.model
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        small = sampled(outputs)
        index = Path(artifact.inputs_dir) / wire.TENSORS_INDEX
        content = {
            INPUTS: (Path(artifact.inputs_dir) / wire.TENSORS_BIN).read_bytes(),
            VALUES: bytes(small.buffer),
        }
        if artifact.size_bytes <= MAX_ARTIFACT_BYTES:
            content[ARTIFACT] = Path(artifact.path).read_bytes()
        for name, data in content.items():
            codec.write_atomically(folder / name, gzip.compress(data, 9, mtime=0))
        record = GoldenRecord(
            model=artifact.model,
            device=device,
            producer=replace(producer, env_vars={}),
            artifact=replace(artifact, path="", inputs_dir=""),
            inputs=[json.loads(line) for line in index.read_text().splitlines()],
            calls=[(input_set, call, tree) for (input_set, call), tree in sorted(small.calls.items())],
            files={name: _sha256(folder / name) for name in sorted(content)},
        )
        codec.write_atomically(folder / RECORD, codec.canonical(record))
        return folder

    def accept(self, model: str, reason: str, today: date) -> None:
        """Move a proposal into the records and the index.

        Raises:
            GoldenError: there is no such proposal, or its files are not those that were proposed.
        """
        source = self._folder / "proposed" / model
        if not (source / RECORD).is_file():
            waiting = ", ".join(self.proposed()) or "none"
            raise GoldenError(f"there is no proposal for {model}", f"proposals waiting: {waiting}")
        record = _read_record(source / RECORD)
        for name, sha256 in record.files.items():
            _verify(source / name, sha256, since="proposed")
        destination = self._folder / "records" / model
        shutil.rmtree(destination, ignore_errors=True)
        destination.parent.mkdir(parents=True, exist_ok=True)
        source.rename(destination)
        entry = IndexEntry(
            sha256=_sha256(destination / RECORD), release=record.producer.torch, reason=reason, accepted=today
        )
        index = Index(records={**self._index().records, model: entry})
        codec.write_atomically(self._folder / INDEX, codec.pretty(index))

    def _index(self) -> Index:
        path = self._folder / INDEX
        if not path.exists():
            return Index()
        try:
            return codec.read_json(path, Index)
        except RunDirError as error:
            raise GoldenError(error.message, "restore it: git checkout golden/index.json") from error


def _read_record(path: Path) -> GoldenRecord:
    try:
        return codec.read_json(path, GoldenRecord)
    except RunDirError as error:
        raise GoldenError(error.message, "propose and accept it again") from error


def _sha256(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


def _verify(path: Path, sha256: str, *, since: str = "accepted") -> None:
    try:
        actual = _sha256(path)
    except OSError as error:
        raise GoldenError(f"{path} cannot be read: {error.strerror or error}", f"git checkout {path}") from error
    if actual != sha256:
        raise GoldenError(
            f"{path} was changed after it was {since} (sha256 {actual[:12]}, {since} was {sha256[:12]})",
            f"restore it (git checkout {path}) or propose and accept it again with a reason",
        )
