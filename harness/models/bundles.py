"""Reads a golden bundle: one file from anywhere, so nothing in it is trusted before it was checked.

A bundle is a zip of exactly six members, none of them packed, so that no member can unpack to more than the file holds:

    artifact.pt             the artifact, byte for byte
    inputs/tensors.bin      its recorded inputs, as a worker reads them; .jsonl is their index
    outputs/tensors.bin     golden outputs, repeats, float64 reference; .jsonl is their index
    bundle.json             what it is (``harness/domain/golden.py``), and the sha256 of the other five
"""

import hashlib
import struct
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO, Final

import msgspec

from harness.archive.limits import LIMITS, CannotRead
from harness.archive.members import ENCRYPTED, LOCAL, LOCAL_BYTES, STORED, Member, read_directory, read_member
from harness.config.schema import DTYPES, Kind, choice
from harness.domain.golden import ARTIFACT, BUNDLE_SCHEMA_VERSION, DESCRIPTION, Bundle
from harness.domain.models import GivenArtifact, ModelDeclaration
from harness.errors import ConfigError, GoldenError, RunDirError
from harness.models import files, names
from harness.models.artifacts import archive_identity
from harness.models.declarations import DEVICES, NAME, PATHS, TOLERANCE, WORDS
from harness.worker import wire

LONGEST_NAME: Final = 200
"""A name is part of file names."""
COMPUTES_IN: Final = choice(*DTYPES)
ABSENT: Final = ("artifact.reset", "tolerance", "computes_in")
"""What a description may leave out."""


def contradiction(bundle: Bundle) -> str:
    """Return what a description says that no gate would have written; empty if there is nothing."""
    checks: tuple[tuple[str, Kind, object], ...] = (
        ("model", NAME, bundle.model),
        ("tags", WORDS, bundle.tags),
        ("devices", DEVICES, bundle.devices),
        ("device", DEVICES, (bundle.device,)),
        ("unordered", PATHS, bundle.unordered),
        ("artifact.reset", NAME, bundle.artifact.reset),
        ("tolerance", TOLERANCE, bundle.tolerance),
        ("computes_in", COMPUTES_IN, bundle.computes_in),
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
    if names.PLANTED_DEFECT in bundle.tags:
        return f"tags: {names.PLANTED_DEFECT} is the gate's own"
    if bundle.artifact.model != bundle.model:
        return f"it is of {bundle.model}, and its artifact of {bundle.artifact.model!a:.100}"
    if not bundle.artifact.input_sets:
        return "artifact.input_sets: there is none, so nothing was called"
    return ""


INPUTS, OUTPUTS = "inputs", "outputs"
INPUTS_BIN, INPUTS_INDEX = f"{INPUTS}/{wire.TENSORS_BIN}", f"{INPUTS}/{wire.TENSORS_INDEX}"
OUTPUTS_BIN, OUTPUTS_INDEX = f"{OUTPUTS}/{wire.TENSORS_BIN}", f"{OUTPUTS}/{wire.TENSORS_INDEX}"
FILES = (ARTIFACT, INPUTS_BIN, INPUTS_INDEX, OUTPUTS_BIN, OUTPUTS_INDEX)
# Far above what real bundles have; what is not listed may be as large as the file.
LARGEST = {DESCRIPTION: 4 << 20, INPUTS_INDEX: 32 << 20, OUTPUTS_INDEX: 32 << 20}
CHUNK_BYTES = 1 << 20
AGAIN = "copy it again, or have it made again: python -m harness pack"


def bundle_declaration(path: Path) -> ModelDeclaration:
    """Return the model that a bundle holds; only its description is read.

    Raises:
        GoldenError: it is no bundle, damaged, hostile, or of a later version.
    """
    path = path.absolute()
    bundle, digest = _described(path)
    return ModelDeclaration(
        name=bundle.model,
        package_root=str(path.parent),
        module="",
        factory="",
        source=path.name,
        line=0,
        source_digest=digest,
        how="file",
        tags=bundle.tags,
        seed=bundle.artifact.seed,
        reset=bundle.artifact.reset,
        devices=bundle.devices,
        unordered=bundle.unordered,
        tolerance=bundle.tolerance,
        given=GivenArtifact(path=str(path), bundle=True),
    )


def read_bundle(path: Path) -> Bundle:
    """Return what a bundle says of itself; raises as ``bundle_declaration``."""
    return _described(path)[0]


def unpack_bundle(path: Path, folder: Path) -> Bundle:
    """Write the five files of a bundle under ``folder``, by our own names for them, each as its digest promises.

    Raises:
        GoldenError: it is no bundle, damaged, hostile, or of a later version.
        RunDirError: ``folder`` cannot be written.
    """
    with _opened(path) as found:
        bundle = _decoded(path, found.description())
        for name in FILES:
            _write(found, name, bundle.files[name], folder / name)
        _require_its_artifact(bundle, folder / ARTIFACT)
    return bundle


def artifact_window(source: files.FileSource) -> "Window":
    """Return the artifact in a bundle, to be read where it lies.

    Raises:
        CannotRead: the bundle is damaged.
    """
    found = _OpenBundle(source, _members(source))
    begin, size = found.place(ARTIFACT)
    return Window(source, begin, size)


@dataclass(frozen=True, slots=True)
class Window:
    """A part of an open file, read as if it were a file."""

    source: files.FileSource
    begin: int
    size: int

    def read(self, offset: int, length: int) -> bytes:
        """Return up to ``length`` bytes from ``offset``."""
        return self.source.read(self.begin + offset, max(0, min(length, self.size - offset)))


@dataclass(frozen=True, slots=True)
class _OpenBundle:
    source: files.FileSource
    members: Mapping[str, Member]

    def description(self) -> bytes:
        return read_member(self.source, self.members[DESCRIPTION], LARGEST[DESCRIPTION], LIMITS)

    def place(self, name: str) -> tuple[int, int]:
        """Return where the bytes of a member begin, and how many they are."""
        member = self.members[name]
        head = self.source.read(member.offset, LOCAL_BYTES)
        if len(head) < LOCAL_BYTES or head[:4] != LOCAL:
            raise CannotRead("damaged", f"{name} is not where the directory says")
        return member.offset + LOCAL_BYTES + sum(struct.unpack("<HH", head[26:30])), member.size

    def chunks(self, name: str) -> Iterator[bytes]:
        begin, size = self.place(name)
        for offset in range(0, size, CHUNK_BYTES):
            length = min(CHUNK_BYTES, size - offset)
            chunk = self.source.read(begin + offset, length)
            if len(chunk) != length:
                raise CannotRead("damaged", f"{name} ends beyond the file: truncated, or changed while it was read?")
            yield chunk


@contextmanager
def _opened(path: Path) -> Iterator[_OpenBundle]:
    try:
        with files.opened(str(path)) as source:
            yield _OpenBundle(source, _members(source))
    except CannotRead as error:
        raise _refused(path, error.text) from None


def _members(source: files.FileSource) -> Mapping[str, Member]:
    if source.read(0, len(LOCAL)) != LOCAL:
        raise CannotRead("damaged", "is no golden bundle")
    directory = read_directory(source, LIMITS)
    wanted = {*FILES, DESCRIPTION}
    if DESCRIPTION not in directory.inside:
        raise CannotRead("damaged", f"is no golden bundle: it has no {DESCRIPTION}")
    for problem in directory.problems:
        raise CannotRead("damaged", f"is no golden bundle as the gate writes them: {problem.text}")
    odd = sorted(wanted ^ directory.inside.keys())
    if odd:
        what = "has no" if odd[0] in wanted else "has a member that is none of a bundle's:"
        raise CannotRead("damaged", f"{what} {odd[0]!a:.100}")
    for name, member in directory.inside.items():
        if member.method != STORED or member.flags & ENCRYPTED:
            raise CannotRead("unsupported", f"{name} is packed or encrypted; the members of a bundle are stored as is")
        if member.size > LARGEST.get(name, member.size):
            raise CannotRead("too_large", f"{name} has {member.size} bytes; at most {LARGEST[name]} are read")
    if sum(member.size for member in directory.inside.values()) > source.size:
        raise CannotRead("zip_bomb", "its members lie over each other")
    return directory.inside


def _described(path: Path) -> tuple[Bundle, str]:
    with _opened(path) as found:
        data = found.description()
    return _decoded(path, data), hashlib.sha256(data).hexdigest()


class _Version(msgspec.Struct):
    schema_version: int


def _decoded(path: Path, data: bytes) -> Bundle:
    try:
        version = msgspec.json.decode(data, type=_Version).schema_version
        if version > BUNDLE_SCHEMA_VERSION:
            raise GoldenError(
                f"{path}: {DESCRIPTION} is of version {version}, "
                f"and this gate reads versions up to {BUNDLE_SCHEMA_VERSION}",
                "use a gate as new as the one that packed it",
            )
        bundle = msgspec.json.decode(data, type=Bundle)
    except (msgspec.DecodeError, RecursionError, ValueError) as error:
        raise _refused(path, f"{DESCRIPTION} is not what a bundle holds: {str(error)[:200]}") from None
    complete = set(bundle.files) == set(FILES)
    wrong = contradiction(bundle) if complete else "it does not have the digest of each member"
    if wrong:
        raise _refused(path, f"{DESCRIPTION}: {wrong}")
    return bundle


def _write(found: _OpenBundle, name: str, sha256: str, target: Path) -> None:
    digest = hashlib.sha256()
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        with target.open("wb") as stream:
            _copy(found, name, stream, digest)
    except OSError as error:
        raise RunDirError(
            f"{target} cannot be written: {error.strerror or error}", "free space, or name another folder with --out"
        ) from error
    if digest.hexdigest() != sha256:
        raise CannotRead("damaged", f"{name} is not what its digest promises")


def _require_its_artifact(bundle: Bundle, path: Path) -> None:
    size = path.stat().st_size
    if size != bundle.artifact.size_bytes:
        raise CannotRead(
            "damaged", f"{ARTIFACT} has {size} bytes, and {DESCRIPTION} promises {bundle.artifact.size_bytes}"
        )
    if bundle.artifact.digest != bundle.files[ARTIFACT] and bundle.artifact.digest != _identity(path):
        raise CannotRead("damaged", f"{ARTIFACT} is another than {DESCRIPTION} promises")


def _identity(path: Path) -> str:
    """Return what an exported artifact is known by; empty where the file is none."""
    try:
        return archive_identity(path)[0]
    except ValueError:
        return ""


def _copy(found: _OpenBundle, name: str, stream: BinaryIO, digest: "hashlib._Hash") -> None:
    for chunk in found.chunks(name):
        digest.update(chunk)
        stream.write(chunk)


def _refused(path: Path, why: str) -> GoldenError:
    return GoldenError(f"{path}: {why}", AGAIN)
