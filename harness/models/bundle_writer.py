"""Writes a golden bundle: the same bytes for the same content, atomically."""

import contextlib
import hashlib
import os
import zipfile
from collections.abc import Iterable, Iterator
from dataclasses import replace
from pathlib import Path

from harness.domain.golden import ARTIFACT, DESCRIPTION, SUFFIX, Bundle
from harness.domain.models import Artifact
from harness.errors import RunDirError
from harness.models.bundle_outputs import lines_of
from harness.models.bundles import CHUNK_BYTES, INPUTS_BIN, INPUTS_INDEX, OUTPUTS_BIN, OUTPUTS_INDEX, read_bundle
from harness.models.old_outputs import Remembered
from harness.store import codec
from harness.worker import wire

EPOCH = (1980, 1, 1, 0, 0, 0)  # the first that a zip can tell
MODE = 0o100644 << 16


def write_bundle(folder: Path, bundle: Bundle, artifact: Artifact, remembered: Remembered) -> Path:
    """Write ``folder/NAME.gate`` and return its path.

    Args:
        bundle: what the bundle says of itself; digests and paths are filled in here.
        artifact: with the paths of the file and of its recorded inputs.

    Raises:
        RunDirError: the folder cannot be written, or the disk is full.
        GoldenError: no gate would read it: an index beyond the limits of ``harness/models/bundles.py``.
    """
    path = folder / f"{bundle.model}{SUFFIX}"
    part = folder / f".{path.name}.{os.getpid()}.part"
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with zipfile.ZipFile(part, "w", zipfile.ZIP_STORED) as archive:
            _fill(archive, bundle, artifact, remembered)
        read_bundle(part)
        part.replace(path)
    except OSError as error:
        raise RunDirError(
            f"{path} cannot be written: {error.strerror or error}", "free space, or name another folder with --into"
        ) from error
    finally:
        with contextlib.suppress(OSError):
            part.unlink()
    return path


def _fill(archive: zipfile.ZipFile, bundle: Bundle, artifact: Artifact, remembered: Remembered) -> None:
    inputs = Path(artifact.inputs_dir)
    lines: list[bytes] = []
    files = {
        ARTIFACT: _add(archive, ARTIFACT, _chunks(Path(artifact.path))),
        INPUTS_BIN: _add(archive, INPUTS_BIN, _chunks(inputs / wire.TENSORS_BIN)),
        INPUTS_INDEX: _add(archive, INPUTS_INDEX, _chunks(inputs / wire.TENSORS_INDEX)),
        OUTPUTS_BIN: _add(archive, OUTPUTS_BIN, _values(remembered, lines)),
        OUTPUTS_INDEX: _add(archive, OUTPUTS_INDEX, lines),
    }
    described = replace(
        bundle,
        files=files,
        producer=replace(bundle.producer, env_vars={}),
        profile=replace(bundle.profile, env={}),
        artifact=replace(artifact, path="", inputs_dir="", schedule=()),
    )
    _add(archive, DESCRIPTION, [codec.pretty(described)])


def _values(remembered: Remembered, lines: list[bytes]) -> Iterator[bytes]:
    """Yield the bytes of the tensors, equal ones once, and put the lines that point to them into ``lines``."""
    known: dict[bytes, int] = {}
    fresh: list[bytes] = []
    end = 0

    def add(data: bytes) -> int:
        nonlocal end
        digest = hashlib.sha256(data).digest()
        if digest not in known:
            known[digest] = end
            end += len(data)
            fresh.append(data)
        return known[digest]

    for line in lines_of(remembered, add):
        lines.append(line)
        yield from fresh
        fresh.clear()


def _add(archive: zipfile.ZipFile, name: str, chunks: Iterable[bytes]) -> str:
    """Add one member, stored, and return its sha256."""
    entry = zipfile.ZipInfo(name, EPOCH)
    entry.create_system = 3  # Unix, wherever it is written
    entry.external_attr = MODE
    digest = hashlib.sha256()
    with archive.open(entry, "w", force_zip64=True) as stream:
        for chunk in chunks:
            digest.update(chunk)
            stream.write(chunk)
    return digest.hexdigest()


def _chunks(path: Path) -> Iterator[bytes]:
    with path.open("rb") as stream:
        while chunk := stream.read(CHUNK_BYTES):
            yield chunk
