"""Golden bundles: written, read, and used in place of the old environment.

A bundle may come from anywhere, so nothing in it is trusted before it was checked. It is a zip of exactly six members,
none of them packed, so that no member can unpack to more than the file holds:

    artifact.pt             the artifact, byte for byte, of whatever kind
    inputs/tensors.bin      its recorded inputs, as a worker reads them; .jsonl is their index
    outputs/tensors.bin     golden outputs, repeats, float64 reference; .jsonl is their index
    bundle.json             what it is (``harness/domain/golden.py``), and the sha256 of the other five
"""

import contextlib
import hashlib
import os
import struct
import zipfile
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final

import msgspec

from harness.archive.limits import LIMITS, CannotRead
from harness.archive.members import ENCRYPTED, LOCAL, LOCAL_BYTES, STORED, Member, read_directory, read_member
from harness.config.schema import DEVICE, DTYPES, Kind, choice
from harness.domain.golden import ARTIFACT, BUNDLE_SCHEMA_VERSION, DESCRIPTION, SUFFIX, Bundle, Trust
from harness.domain.models import Artifact, ArtifactKind, GivenArtifact, ModelDeclaration
from harness.errors import ConfigError, GoldenError, RunDirError
from harness.models import files, names
from harness.models.artifacts import has_digest, inputs_digest
from harness.models.declarations import DEVICES, NAME, PATHS, TOLERANCE, WORDS
from harness.models.old_outputs import Remembered
from harness.store import codec
from harness.store.json import JsonError, from_json
from harness.system.files import new_zip
from harness.tensors.decode import Buffer, DecodeError, plain_number, verify
from harness.tensors.outputs import CallKey, Outputs, SideEffects
from harness.tensors.recorded import bytes_of
from harness.tensors.trees import PLAIN_KINDS, Tree, walk_trees
from harness.worker import wire

LONGEST_NAME: Final = 200
"""A name is part of file names."""
COMPUTES_IN: Final = choice(*DTYPES)
ABSENT: Final = ("artifact.reset", "tolerance", "computes_in")
"""These may be null in a description."""
INPUTS, OUTPUTS = "inputs", "outputs"
INPUTS_BIN, INPUTS_INDEX = f"{INPUTS}/{wire.TENSORS_BIN}", f"{INPUTS}/{wire.TENSORS_INDEX}"
OUTPUTS_BIN, OUTPUTS_INDEX = f"{OUTPUTS}/{wire.TENSORS_BIN}", f"{OUTPUTS}/{wire.TENSORS_INDEX}"
FILES = (ARTIFACT, INPUTS_BIN, INPUTS_INDEX, OUTPUTS_BIN, OUTPUTS_INDEX)
# Far above what real bundles have; what is not listed may be as large as the file.
LARGEST = {DESCRIPTION: 4 << 20, INPUTS_INDEX: 32 << 20, OUTPUTS_INDEX: 32 << 20}
CHUNK_BYTES = 1 << 20
AGAIN = "copy it again, or have it made again: pack"
EPOCH = (1980, 1, 1, 0, 0, 0)  # the earliest date that a zip can hold
MODE = 0o100644 << 16
GOLDEN, REPEAT, THREADS, REFERENCE = RUNS = ("golden", "repeat", "threads", "reference")
# How deep values may nest; real outputs have a handful of levels.
DEEPEST = 100
# How many runs and calls may point to the same bytes, which are stored once.
MOST_TIMES = 512

Spec = dict[str, Any]


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
        source=path.name,
        source_digest=digest,
        how="file",
        tags=bundle.tags,
        seed=bundle.artifact.seed,
        reset=bundle.artifact.reset,
        devices=bundle.devices,
        unordered=bundle.unordered,
        tolerance=bundle.tolerance,
        given=GivenArtifact(path=str(path), bundle=True, kind=bundle.artifact.kind),
    )


def read_bundle(path: Path) -> Bundle:
    """Return what a bundle says of itself; raises as ``bundle_declaration``."""
    return _described(path)[0]


def contradiction(bundle: Bundle) -> str:
    """Return what in a description no gate would have written; empty if there is nothing."""
    checks: tuple[tuple[str, Kind, object], ...] = (
        ("model", NAME, bundle.model),
        ("tags", WORDS, bundle.tags),
        ("devices", DEVICES, bundle.devices),
        ("device", DEVICE, bundle.device),
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


def unpack_bundle(path: Path, folder: Path) -> Bundle:
    """Write the five files of a bundle under ``folder``, by our own names for them, each checked against its digest.

    Raises:
        GoldenError: it is no bundle, damaged, hostile, or of a later version.
        RunDirError: ``folder`` cannot be written.
    """
    with _opened(path) as found:
        bundle = _decoded(path, found.description())
        artifact = folder / unpacked_name(bundle.artifact.kind)
        for name in FILES:
            _write(found, name, bundle.files[name], artifact if name == ARTIFACT else folder / name)
        _require_its_artifact(bundle, artifact)
    return bundle


def unpacked_name(kind: ArtifactKind) -> str:
    """Return what the artifact of a bundle is called where it is unpacked."""
    return f"artifact{kind.suffix}"


def artifact_window(source: files.FileSource) -> "Window":
    """Return the artifact in a bundle, to be read in place.

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
        version = from_json(data, _Version).schema_version
        if version > BUNDLE_SCHEMA_VERSION:
            raise GoldenError(
                f"{path}: {DESCRIPTION} is of version {version}, "
                f"and this gate reads versions up to {BUNDLE_SCHEMA_VERSION}",
                "use a gate as new as the one that packed it",
            )
        bundle = from_json(data, Bundle)
    except JsonError as error:
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
            for chunk in found.chunks(name):
                digest.update(chunk)
                stream.write(chunk)
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
    with path.open("rb") as content:
        if not has_digest(bundle.artifact.digest, content, size, path):
            raise CannotRead("damaged", f"{ARTIFACT} is another than {DESCRIPTION} promises")


def _refused(path: Path, why: str) -> GoldenError:
    return GoldenError(f"{path}: {why}", AGAIN)


def lines_of(remembered: Remembered, add: Callable[[bytes], int]) -> Iterator[bytes]:
    """Yield a line per call of ``remembered``; ``add`` keeps the bytes of a tensor and returns where they lie.

    ``{"run": "golden", "index": 0, "set": "example", "call": 0, "tree": [...], "effects": {"changed": {...}, ...}}``
    """
    for run, index, outputs in _runs(remembered):
        for key, tree in outputs.calls.items():
            line = {"run": run, "index": index, "set": key[0], "call": key[1], "tree": _moved(tree, outputs, add)}
            if outputs.effects is not None:
                effects = outputs.effects[key]
                changed = {path: _moved(value, outputs, add) for path, value in effects.changed.items()}
                line["effects"] = {"changed": changed, "shared": effects.shared}
            yield codec.canonical(line) + b"\n"


def read_remembered(folder: Path) -> Remembered:
    """Return what the files in ``folder`` hold; every tensor can be decoded and has the digest that it says.

    Raises:
        DecodeError: they hold something else.
    """
    buffer = bytes_of(folder / wire.TENSORS_BIN)
    found: dict[tuple[str, int], tuple[dict[CallKey, Tree], dict[CallKey, SideEffects]]] = {}
    digests = _Digests(buffer)

    def check(spec: Spec) -> None:
        check_spec(spec, buffer)
        digests.check(spec)

    for number, line in enumerate(_lines(folder / wire.TENSORS_INDEX), start=1):
        try:
            calls, effects = found.setdefault((line.run, line.index), ({}, {}))
            key = (line.set, line.call)
            if line.run not in RUNS or key in calls:
                raise DecodeError(f"{line.run!a:.50} has call {line.call} of {line.set!a:.50} already, or is no run")
            calls[key] = checked_tree(line.tree, check)
            if line.effects is not None:
                changed = {path: checked_tree(tree, check) for path, tree in line.effects.changed.items()}
                effects[key] = SideEffects(changed=changed, shared=line.effects.shared)
        except (DecodeError, TypeError, ValueError, KeyError, OverflowError, RecursionError) as error:
            raise DecodeError(f"line {number}: {error}") from None
    outputs = {
        run: Outputs(calls=calls, buffer=buffer, effects=effects if len(effects) == len(calls) else None)
        for run, (calls, effects) in sorted(found.items())
    }
    if (GOLDEN, 0) not in outputs:
        raise DecodeError("no golden outputs")
    return Remembered(
        golden=outputs[GOLDEN, 0],
        repeats=tuple(value for (run, _), value in outputs.items() if run == REPEAT),
        other_threads=tuple(value for (run, _), value in outputs.items() if run == THREADS),
        reference=outputs.get((REFERENCE, 0)),
    )


def calls_made(outputs: Outputs) -> Counter[str]:
    """Return how many calls each input set has."""
    return Counter(input_set for input_set, _ in outputs.calls)


def mapped(tree: Tree, function: Callable[[Spec], Spec], depth: int = 0) -> Tree:
    """Return ``tree`` with ``function`` of every tensor's spec in its place.

    Raises:
        DecodeError: it is no tree, or deeper than any real one.
    """
    if depth > DEEPEST:
        raise DecodeError(f"values within values, more than {DEEPEST} of them")
    if not isinstance(tree, list) or len(tree) != 2:
        raise DecodeError("not a tree of values")
    kind, content = tree

    def each(items: Any) -> list[Any]:
        return [mapped(item, function, depth + 1) for item in items]

    if kind == "tensor" and isinstance(content, dict):
        return [kind, function(content)]
    if kind in ("tuple", "list") and isinstance(content, list):
        return [kind, each(content)]
    if kind == "dict" and isinstance(content, list):
        return [kind, [each((key, item)) for key, item in content]]
    if kind == "namedtuple" and isinstance(content, list):
        name, fields = content
        return [kind, [str(name), [[str(field), *each((item,))] for field, item in fields]]]
    if kind in ("float", "complex"):
        plain_number(kind, content)
        return tree
    if kind in PLAIN_KINDS and (content is None or isinstance(content, bool | int | str)):
        return tree
    raise DecodeError(f"{kind!a:.50} is no kind of value")


class _Effects(msgspec.Struct):
    changed: dict[str, Any] = {}
    shared: tuple[tuple[str, ...], ...] = ()


class _Line(msgspec.Struct):
    run: str
    index: int
    set: str
    call: int
    tree: Any
    effects: _Effects | None = None


def _runs(remembered: Remembered) -> Iterator[tuple[str, int, Outputs]]:
    reference = () if remembered.reference is None else (remembered.reference,)
    kinds: Iterable[tuple[str, tuple[Outputs, ...]]] = (
        (GOLDEN, (remembered.golden,)),
        (REPEAT, remembered.repeats),
        (THREADS, remembered.other_threads),
        (REFERENCE, reference),
    )
    for run, many in kinds:
        yield from ((run, index, outputs) for index, outputs in enumerate(many))


def _moved(tree: Tree, outputs: Outputs, add: Callable[[bytes], int]) -> Tree:
    def moved(spec: Spec) -> Spec:
        data = bytes(memoryview(outputs.buffer)[spec["offset"] : spec["offset"] + spec["nbytes"]])
        return {**spec, "offset": add(data), "sha256": hashlib.sha256(data).hexdigest()}

    return mapped(tree, moved)


def checked_tree(tree: Tree, check: Callable[[Spec], None]) -> Tree:
    """Return ``tree``, every tensor's spec looked at by ``check``: nothing that reads or compares it will raise.

    Raises:
        DecodeError: it is no tree, or deeper than any real one; also what ``check`` and comparing raise (``DAMAGE``).
    """

    def checked(spec: Spec) -> Spec:
        check(spec)
        return spec

    tree = mapped(tree, checked)
    walk_trees(tree, tree)  # whatever a comparison may raise is raised here
    return tree


def check_spec(spec: Spec, buffer: Buffer) -> None:
    """Raise ``DecodeError`` unless ``spec`` describes a whole tensor that can be decoded and compared."""
    if "full" in spec or "plain" in spec:
        raise DecodeError("only whole tensors are recorded")
    stride = spec.get("stride", [])
    if not isinstance(stride, list) or not all(type(step) is int for step in stride):
        raise DecodeError("a stride is a list of numbers")
    if not all(isinstance(spec.get(name, ""), str) for name in ("device", "layout", "sha256")):
        raise DecodeError("a tensor's device, layout and digest are texts")
    verify(spec, buffer)


class _Digests:
    """Hashes every place of the buffer at most once: overlapping tensors could take forever."""

    def __init__(self, buffer: Buffer) -> None:
        self._buffer = buffer
        with memoryview(buffer) as view:
            self._left = view.nbytes
        self._named_left = MOST_TIMES * self._left
        self._known: set[tuple[int, int, str]] = set()

    def check(self, spec: Spec) -> None:
        self._named_left -= spec["nbytes"]
        if self._named_left < 0:
            raise DecodeError(f"its tensors are more than {MOST_TIMES} times what its file holds")
        offset, nbytes, sha256 = place = (spec["offset"], spec["nbytes"], spec.get("sha256", ""))
        if place in self._known:
            return
        self._left -= nbytes
        if self._left < 0:
            raise DecodeError("its tensors lie over each other")
        with memoryview(self._buffer) as view, view[offset : offset + nbytes] as data:
            if hashlib.sha256(data).hexdigest() != sha256:
                raise DecodeError("a tensor is not what its digest promises")
        self._known.add(place)


def _lines(path: Path) -> Iterator[_Line]:
    with path.open("rb") as stream:
        for number, line in enumerate(stream, start=1):
            try:
                yield from_json(line, _Line)
            except JsonError as error:
                raise DecodeError(f"line {number}: {str(error)[:200]}") from None


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
        part.unlink(missing_ok=True)  # of a process that was killed, or a link that somebody else has made
        with new_zip(part, zipfile.ZIP_STORED) as archive:
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
    """Yield the bytes of the tensors, equal ones once; append the lines that point to them to ``lines``."""
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
    entry.create_system = 3  # Unix, on whatever system it is written
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


class BundleStore:
    """The bundles among some models, read in place."""

    def __init__(self, models: Iterable[ModelDeclaration]) -> None:
        bundles = [(model, model.given) for model in models if model.given is not None and model.given.bundle]
        self._paths = {model.name: Path(given.path) for model, given in bundles}
        self._planned = {model.name: model.source_digest for model, _ in bundles}
        self._read: dict[str, Bundle] = {}

    def title(self) -> str:
        """Return what made the bundles and when: ``golden bundle made by torch 2.1.2 on 2026-11-21``."""
        made = sorted({self.record(name).made_by for name in self._paths})
        some = f"{made[0]} and {len(made) - 1} more" if len(made) > 2 else " and ".join(made)
        return f"golden bundle{'s' if len(self._paths) > 1 else ''} made by {some}"

    def names(self) -> tuple[str, ...]:
        """Return the models that are bundles."""
        return tuple(sorted(self._paths))

    def record(self, model: str) -> Bundle:
        """Return what the bundle of ``model`` says of itself; it is read once.

        Raises:
            GoldenError: there is none, it is damaged, or another one than when the run was planned.
        """
        if model not in self._read:
            path = self._path(model)
            bundle, digest = _described(path)
            if digest != self._planned[model]:
                raise GoldenError(f"{path} is another bundle than when this run was planned", "start a new run")
            self._read[model] = bundle
        return self._read[model]

    def trust(self, models: Sequence[str]) -> tuple[Trust, ...]:
        """Return nothing: bundles are not accepted by anybody here; each says what made it."""
        del models
        return ()

    def unpack(self, model: str, destination: Path) -> Artifact:
        """Write the bundle's files under ``destination``, all verified; return the artifact.

        Raises:
            GoldenError: it is damaged, or its outputs are none.
        """
        path = self._path(model)
        bundle = unpack_bundle(path, destination)
        if bundle != self.record(model):
            raise GoldenError(f"{path} is another bundle than when this run was planned", "start a new run")
        golden = self.remembered(model, destination).golden
        made = calls_made(golden)
        promised = {(item.name, call) for item in bundle.artifact.input_sets for call in range(made[item.name] or 1)}
        if golden.calls.keys() != promised:
            raise GoldenError(f"{path}: its golden outputs are not of the calls 0, 1, ... of its input sets", AGAIN)
        inputs = destination / INPUTS
        return replace(
            bundle.artifact,
            path=str(destination / unpacked_name(bundle.artifact.kind)),
            inputs_dir=str(inputs),
            inputs_digest=inputs_digest(inputs),
            schedule=tuple((item.name, made[item.name]) for item in bundle.artifact.input_sets),
        )

    def remembered(self, model: str, folder: Path) -> Remembered:
        """Return what the old release answered, from where ``unpack`` wrote it; raises as ``unpack``."""
        try:
            found = read_remembered(folder / OUTPUTS)
        except DecodeError as error:
            raise GoldenError(f"{self._path(model)}: its golden outputs cannot be read: {error}", AGAIN) from None
        return replace(found, numerics=self.record(model).numerics)

    def _path(self, model: str) -> Path:
        if model not in self._paths:
            raise GoldenError(f"there is no golden bundle of {model}", "name it with --artifacts")
        return self._paths[model]
