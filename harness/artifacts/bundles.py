"""Golden bundles: a golden record in one file, used in place of the old environment wherever it came from.

``NAME.gate`` is a zip of the files of a record (``records.py``). Nothing in it is trusted before it was checked. None
of its members is packed, so no member can unpack to more than the file holds, and the artifact is read in place.
"""

import contextlib
import hashlib
import os
import zipfile
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from harness.artifacts import files, names
from harness.artifacts.archive.limits import CannotRead
from harness.artifacts.bundle_members import OpenBundle, members_of
from harness.artifacts.declarations import DEVICES, NAME, PATHS, TOLERANCE, WORDS
from harness.artifacts.old_outputs import Remembered
from harness.artifacts.records import (
    lay_out,
    parsed_record,
    remembered_of,
    verify_artifact,
    verify_values,
    write_record,
)
from harness.artifacts.tensors.decode import DecodeError
from harness.artifacts.tensors.recorded import bytes_of
from harness.config.schema import DEVICE, DTYPES, Kind, choice
from harness.core.errors import ConfigError, GoldenError
from harness.core.golden import FILES, RECORD, SUFFIX, VALUES, GoldenRecord, Trust
from harness.core.models import Artifact, GivenArtifact, ModelDeclaration
from harness.machine.files import new_zip, unwritable
from harness.worker import wire

LONGEST_NAME: Final = 200
"""A name is part of file names."""
COMPUTES_IN: Final = choice(*DTYPES)
ABSENT: Final = ("artifact.reset", "tolerance", "computes_in")
"""These may be null in a record."""
AGAIN = "copy it again, or have it made again: pack"
EPOCH = (1980, 1, 1, 0, 0, 0)  # the earliest date that a zip can hold
MODE = 0o100644 << 16


def bundle_declaration(path: Path) -> ModelDeclaration:
    """Return the model in a bundle, by its ``record.json``. Raises ``GoldenError``: damaged, or a later version."""
    path = path.absolute()
    bundle, digest = _read(path)
    return ModelDeclaration(
        name=bundle.model,
        package_root=str(path.parent),
        source=path.name,
        source_digest=digest,
        how="file",
        tags=bundle.declared.tags,
        seed=bundle.artifact.seed,
        reset=bundle.artifact.reset,
        devices=bundle.declared.devices,
        unordered=bundle.declared.unordered,
        tolerance=bundle.declared.tolerance,
        given=GivenArtifact(path=str(path), bundle=True, kind=bundle.artifact.kind),
    )


def contradiction(bundle: GoldenRecord) -> str:
    """Return what of a model no gate would have written into a bundle; empty if there is nothing."""
    declared = bundle.declared
    checks: tuple[tuple[str, Kind, object], ...] = (
        ("model", NAME, bundle.model),
        ("tags", WORDS, declared.tags),
        ("devices", DEVICES, declared.devices),
        ("device", DEVICE, bundle.device),
        ("unordered", PATHS, declared.unordered),
        ("artifact.reset", NAME, bundle.artifact.reset),
        ("tolerance", TOLERANCE, declared.tolerance),
        ("computes_in", COMPUTES_IN, declared.computes_in),
    )
    for name, kind, value in checks:
        if value is None and name in ABSENT:
            continue
        try:
            kind.read(value, name)
        except ConfigError as error:
            return error.message
    if len(bundle.model) > LONGEST_NAME or names.is_reserved(bundle.model):
        return f"model: {bundle.model:.100} is too long, or the gate's own"
    if names.PLANTED_DEFECT in declared.tags:
        return f"tags: {names.PLANTED_DEFECT} is the gate's own"
    if bundle.files.keys() != set(FILES):
        return "it does not have the digest of each member"
    if bundle.artifact.model != bundle.model:
        return f"it is of {bundle.model}, and its artifact of {bundle.artifact.model!a:.100}"
    if not bundle.artifact.input_sets:
        return "artifact.input_sets: there is none, so nothing was called"
    return ""


@contextmanager
def _opened(path: Path) -> Iterator[OpenBundle]:
    try:
        with files.opened(str(path)) as source:
            yield OpenBundle(source, members_of(source))
    except CannotRead as error:
        raise GoldenError(f"{path}: {error.text}", AGAIN) from None


def _read(path: Path) -> tuple[GoldenRecord, str]:
    """Return the record of a bundle, and the sha256 of its ``record.json``."""
    with _opened(path) as bundle:
        data = bundle.record()
    record = parsed_record(data, f"{path}: {RECORD}", AGAIN)
    if wrong := contradiction(record):
        raise GoldenError(f"{path}: {RECORD}: {wrong}", AGAIN)
    return record, hashlib.sha256(data).hexdigest()


def write_bundle(folder: Path, record: GoldenRecord, artifact: Artifact, remembered: Remembered) -> Path:
    """Write ``folder/NAME.gate`` and return its path; raises as ``write_record``, and if the folder cannot be written.

    Raises ``GoldenError``: no gate would read it, as its record is beyond ``LARGEST_RECORD``.
    """
    path = folder / f"{record.model}{SUFFIX}"
    part = folder / f".{path.name}.{os.getpid()}.part"
    try:
        folder.mkdir(parents=True, exist_ok=True)
        part.unlink(missing_ok=True)  # of a process that was killed, or a link that somebody else has made
        with new_zip(part, zipfile.ZIP_STORED) as archive:
            write_record(record, artifact, remembered, lambda name, chunks: _add(archive, name, chunks))
        bundle_declaration(part)
        part.replace(path)
    except OSError as error:
        hint = "free space, or name another folder with --into"
        raise unwritable(f"{path} cannot be written", error, hint) from error
    finally:
        with contextlib.suppress(OSError):
            part.unlink()
    return path


def _add(archive: zipfile.ZipFile, name: str, chunks: Iterable[bytes]) -> str:
    """Add one member, stored, and return its sha256; equal content gives equal bytes."""
    entry = zipfile.ZipInfo(name, EPOCH)
    entry.create_system = 3  # Unix, on whatever system it is written
    entry.external_attr = MODE
    digest = hashlib.sha256()
    with archive.open(entry, "w", force_zip64=True) as stream:
        for chunk in chunks:
            digest.update(chunk)
            stream.write(chunk)
    return digest.hexdigest()


class BundleStore:
    def __init__(self, models: Iterable[ModelDeclaration]) -> None:
        bundles = [(model, model.given) for model in models if model.given is not None and model.given.bundle]
        self._paths = {model.name: Path(given.path) for model, given in bundles}
        self._planned = {model.name: model.source_digest for model, _ in bundles}
        self._read: dict[str, GoldenRecord] = {}

    def title(self) -> str:
        made = sorted({f"torch {self.record(name).producer.torch}" for name in self._paths})
        some = f"{made[0]} and {len(made) - 1} more" if len(made) > 2 else " and ".join(made)
        return f"golden bundle{'s' if len(self._paths) > 1 else ''} made by {some}"

    def names(self) -> tuple[str, ...]:
        return tuple(sorted(self._paths))

    def record(self, model: str) -> GoldenRecord:
        """Return what the bundle says of itself, read once. Raises ``GoldenError``: damaged, or not as planned."""
        if model not in self._read:
            path = self._path(model)
            bundle, digest = _read(path)
            if digest != self._planned[model]:
                raise GoldenError(f"{path} is another bundle than when this run was planned", "start a new run")
            self._read[model] = bundle
        return self._read[model]

    def trust(self, models: Sequence[str]) -> tuple[Trust, ...]:
        """Return nothing: nobody has accepted a bundle here; each says what made it."""
        del models
        return ()

    def unpack(self, model: str, destination: Path) -> Artifact:
        """Write the bundle's files, all verified; return the artifact. Raises ``GoldenError``: damaged."""
        path, record = self._path(model), self.record(model)
        try:
            with _opened(path) as bundle:
                if hashlib.sha256(bundle.record()).hexdigest() != self._planned[model]:
                    raise GoldenError(f"{path} is another bundle than when this run was planned", "start a new run")
                artifact = lay_out(record, destination, bundle.chunks)
            with Path(artifact.path).open("rb") as content:
                verify_artifact(record, content, Path(artifact.path).stat().st_size)
            inputs = bytes_of(Path(artifact.inputs_dir) / wire.TENSORS_BIN)
            verify_values(record, inputs, bytes_of(destination / VALUES))
        except DecodeError as error:
            raise GoldenError(f"{path}: {error}", AGAIN) from None
        return artifact

    def remembered(self, model: str, folder: Path) -> Remembered:
        return remembered_of(self.record(model), folder / VALUES)

    def _path(self, model: str) -> Path:
        if model not in self._paths:
            raise GoldenError(f"there is no golden bundle of {model}", "name it with --artifacts")
        return self._paths[model]
