"""Reads a store without torch: which artifacts it has, what each is, and what both releases will do with it.

Whatever the store holds is an artifact, or is counted with the reason why no verdict speaks of it.
"""

from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path, PurePosixPath
from typing import Any, TypeVar

from harness.apps.fleet.stores import torchserve
from harness.apps.fleet.stores.sources import Link, Listed, SourceFault, Store, listed_files
from harness.apps.fleet.stores.triton import (
    CONFIG,
    DEFAULT_FILE,
    WARMUP_FOLDER,
    models_in,
    read_config,
    served_versions,
)
from harness.artifacts import files, names
from harness.artifacts.archive.code import CodeMemory
from harness.artifacts.archive.formats import FORMATS, MAY_LOAD
from harness.artifacts.archive.identity import Identity, identity_of
from harness.artifacts.archive.limits import CannotRead
from harness.artifacts.file_copies import digest_of
from harness.artifacts.files import REQUEST_SUFFIXES, REQUESTS, is_request_file
from harness.artifacts.owners import MANIFEST, MANIFESTS, FleetManifest
from harness.checks.prediction.check import inspect_file
from harness.core.archive import OperatorRegistry
from harness.core.errors import ConfigError, SelectionError
from harness.core.fleet import FleetArtifact, Serving, StoreKind, Unjudged
from harness.core.models import ArtifactKind
from harness.core.prediction import InspectedFile, Weight
from harness.core.text import counted, first_few
from harness.machine.progress import Progress
from harness.store.codec import digest
from harness.verdict.prediction import changed_semantics, deciding

SUFFIXES = files.SUFFIXES - {".gate"}
CONFIG_BYTES = 1 << 20
WARMUP_BYTES = 64 << 10
NO_TORCHSCRIPT = "is no TorchScript"
MOST_NAMED = 3
RUNS = "fleet run --trust runs it"


@dataclass(frozen=True, kw_only=True)
class Found:
    """An artifact that a store lists, before it is read.

    Attributes:
        called: the path that it is named after, in place of its own.
        loads: what its server loads there; None where nothing tells.
        unjudged: why no verdict will speak of it, where it is none to doubt an upgrade; else empty.
    """

    path: str
    kind: StoreKind = StoreKind.FILE
    member: str = ""
    called: str = ""
    serving: Serving = field(default_factory=Serving)
    assignments: tuple[str, ...] = ()
    left_out: str = ""
    left_out_for: str = ""
    loads: ArtifactKind | None = None
    unjudged: str = ""
    notes: tuple[str, ...] = ()

    @property
    def place(self) -> str:
        """Which of the store's artifacts it is; no two have the same."""
        return f"/{self.path}\0{self.member}"


@dataclass(frozen=True, kw_only=True)
class ReadStore:
    """What a store holds: its artifacts, by name, what else there is, and the serving profiles that artifacts name."""

    artifacts: tuple[FleetArtifact, ...]
    profiles: Mapping[str, tuple[str, ...]]
    unjudged: tuple[Unjudged, ...] = ()
    notes: tuple[str, ...] = ()


def read_store(
    store: Store,
    manifest: FleetManifest,
    registries: Mapping[str, OperatorRegistry],
    *,
    scratch: Path,
    progress: Progress,
) -> ReadStore:
    """Return what the store holds, each artifact read within limits and predicted.

    ``scratch``: where artifacts are unpacked that lie in archives of a server. Raises ``SelectionError``: it cannot be
    listed, or holds no artifact; ``EnvironmentUnavailable``: reading what it holds needs a package that is not
    installed.
    """
    progress.stage(f"list {store.name}")
    listed = {item.path: item for item in listed_files(store)}
    seen = [_as_manifest_says(item, manifest) for item in _found(store, listed)]
    listed_artifacts = [item for item in seen if not item.unjudged]
    unjudged = [Unjudged(path=item.path, member=item.member, reason=item.unjudged) for item in seen if item.unjudged]
    called = names.names_of(
        [item.place for item in listed_artifacts],
        called={item.place: f"/{item.called or item.path}" for item in listed_artifacts},
    )
    profiles: dict[str, tuple[str, ...]] = {"": ()}
    progress.stage("read artifacts", len(listed_artifacts))
    memory, reader = CodeMemory(), _Reader(store, listed, registries, scratch)
    artifacts: list[FleetArtifact] = []
    for item in listed_artifacts:
        name = called[item.place]
        profile = f"triton_{digest(item.assignments)[:12]}" if item.assignments else ""
        profiles.setdefault(profile, item.assignments)
        entry = manifest.of(*_matched(item))
        serving = _serving(item.serving, entry, profile)
        artifact = FleetArtifact(
            name=name,
            path=item.path,
            kind=item.kind,
            member=item.member,
            serving=serving,
            owner=entry.get("owner", ""),
            tier=entry.get("tier", ""),
            tags=tuple(entry.get("tags", ())) or (names.tag_of(f"/{item.path}"),),
            left_out=item.left_out,
            left_out_for=item.left_out_for,
            notes=item.notes,
        )
        read = reader.read(artifact, memory, item.loads, is_named=manifest.names(*_matched(item)))
        if isinstance(read, Unjudged):
            unjudged.append(read)
        else:
            artifacts.append(read)
        progress.step(name)
    progress.finish()
    if not artifacts:
        expected = f"{', '.join(sorted(SUFFIXES))}, {', '.join(torchserve.SUFFIXES)}, or a Triton model repository"
        others = first_few([f"{item.path} {item.reason}" for item in unjudged], MOST_NAMED, "; ")
        raise SelectionError(f"{store.name} holds no artifact" + (f": {others}" if others else ""), expected)
    unread = [
        f"{path}: fleet does not read it: {MANIFEST} in the store's root, or else this file there, says what it says"
        for path in listed
        if PurePosixPath(path).name in MANIFESTS and path != manifest.file
    ]
    unseen = _others_words(listed, {item.path for item in seen})
    notes = (*manifest.idle(_matched(item) for item in seen), *unread[:1], *unseen)
    return ReadStore(
        artifacts=tuple(sorted(artifacts, key=lambda item: item.name)),
        profiles=profiles,
        unjudged=tuple(sorted(unjudged, key=lambda item: (item.path, item.member))),
        notes=notes,
    )


def foreign_code(store: Store, artifact: FleetArtifact) -> str:
    """Return what a run of an artifact runs that came from outside of this machine, in words; empty where nothing."""
    if store.is_here or artifact.left_out:
        return ""
    codes = []
    if artifact.serving.inputs.lower().endswith(".py"):
        codes.append(f"its requests, {artifact.serving.inputs}, are a program")
    if artifact.loaded_as is not ArtifactKind.TORCHSCRIPT:
        codes.append(f"it is {artifact.loaded_as.words}, which runs code when it is loaded")
    return f"{' and '.join(codes)}, from outside of this machine" if codes else ""


def _matched(item: Found) -> tuple[str, ...]:
    return (item.path, f"{item.path}/{item.member}") if item.member else (item.path,)


def _as_manifest_says(item: Found, manifest: FleetManifest) -> Found:
    why = manifest.of(*_matched(item)).get("leave_out", "")
    return replace(item, unjudged=f"{MANIFEST} leaves it out: {why}") if why and not item.unjudged else item


def _others_words(listed: Mapping[str, Listed], seen: Collection[str]) -> tuple[str, ...]:
    """Return how many files nobody looked at, by their suffixes; none where there are none."""
    others = [
        PurePosixPath(path).suffix or "without a suffix"
        for path in listed
        if path not in seen and not is_request_file(path) and PurePosixPath(path).name not in (CONFIG, *MANIFESTS)
    ]
    kinds = [f"{suffix} {count}" for suffix, count in sorted(Counter(others).items(), key=lambda pair: -pair[1])]
    return (f"not looked at: {counted(len(others), 'other file')} ({first_few(kinds, 5)})",) if others else ()


def _serving(served: Serving, entry: Mapping[str, Any], profile: str) -> Serving:
    """Return how an artifact is asked: what the manifest says wins over what its store says."""
    overrides = {key: entry[key] for key in entry if key not in ("owner", "tier", "tags", "leave_out")}
    if "inputs" in overrides or "requests" in overrides:
        served = replace(served, inputs="", requests=())
    return replace(served, profile=profile, **overrides)


def _found(store: Store, listed: Mapping[str, Listed]) -> Iterator[Found]:
    """Yield what a store holds, by path: models of Triton by what it serves, all others by their suffix."""
    served: set[str] = set()
    for folder, versions in models_in([path for path in listed if _is_plain(path)]).items():
        models = list(_of_triton(store, listed, folder, versions))
        yield from models
        served |= {model.path for model in models}
        if any(model.left_out and PurePosixPath(model.path).name == CONFIG for model in models):
            served |= {path for paths in versions.values() for path in paths}  # nobody knows which of these it serves
    for path, item in listed.items():
        if path in served or is_request_file(path) or PurePosixPath(path).name.startswith("."):
            continue
        if item.link is Link.AGAIN:
            yield Found(path=path, unjudged="is a link to a folder above it, or below another link: not followed")
        elif item.link is Link.SHUT:
            yield Found(path=path, left_out="is a folder that cannot be listed: what it holds is not known")
        elif torchserve.is_archive(path):
            yield from _of_torchserve(store, listed, path)
        elif item.link is Link.OUT or PurePosixPath(path).suffix.lower() in SUFFIXES:
            yield _with_requests(Found(path=path), listed)


def _is_plain(path: str) -> bool:
    """Whether a path names a file as a folder does; keys of an object store may hold ``//``, or begin with ``/``."""
    return all(part not in ("", ".", "..") for part in path.split("/"))


def _with_requests(artifact: Found, listed: Mapping[str, Listed]) -> Found:
    stem = artifact.path.removesuffix(PurePosixPath(artifact.path).suffix)
    there = [name for suffix in REQUEST_SUFFIXES if (name := f"{stem}{REQUESTS}{suffix}") in listed]
    if len(there) > 1:
        return replace(artifact, left_out=f"has requests in two files, {there[0]} and {there[1]}: keep one of them")
    return replace(artifact, serving=Serving(inputs=there[0])) if there else artifact


def _of_triton(
    store: Store, listed: Mapping[str, Listed], folder: str, versions: Mapping[int, Sequence[str]]
) -> Iterator[Found]:
    """Yield one model's versions as Triton serves them, or one row of it where its configuration cannot be read."""
    above = f"{folder}/" if folder != "." else ""
    place, name = f"{above}{CONFIG}", PurePosixPath(folder).name or "model"
    row = Found(path=place, kind=StoreKind.TRITON, called=f"{PurePosixPath(folder).parent}/{name}.pt")
    try:
        path = store.local(listed[place])
        if path.stat().st_size > CONFIG_BYTES:
            raise ConfigError(f"{place}: is no configuration: {path.stat().st_size:,} bytes", "mend the file")
        text = path.read_text(encoding="utf-8")
        beside = versions[min(versions, key=str)] if versions else ()
        config = read_config(
            text,
            file=place,
            beside=[PurePosixPath(item).name for item in beside],
            warmup_file=lambda name: _warmup_file(store, listed, folder, name),
        )
        served = served_versions(text, list(versions), file=place)
    except (SourceFault, ConfigError, OSError, UnicodeDecodeError) as error:
        yield replace(row, left_out=str(error))
        return
    files_of = {version: f"{above}{version}/{config.file}" for version in versions}
    is_default = config.file == DEFAULT_FILE and any(file in listed for file in files_of.values())
    if not config.is_pytorch or not (config.backend or is_default):
        what = (
            f"is served by {config.backend}, not by PyTorch"
            if config.backend
            else f"names no backend, and is no {DEFAULT_FILE}"
        )
        yield replace(row, unjudged=f"a model of Triton that {what}")
        return
    if not served:
        yield replace(row, unjudged="a model of Triton without a version that it serves")
    for version, file in files_of.items():
        if version not in served:
            if file in listed:
                yield Found(path=file, unjudged="a version that Triton does not serve, by its version_policy")
            continue
        yield Found(
            path=file,
            kind=StoreKind.TRITON,
            called=f"{PurePosixPath(folder).parent}/{name}_{version}.pt",
            serving=Serving(requests=config.requests),
            assignments=config.assignments,
            left_out="" if file in listed else f"{file} is not there, which {place} names",
            loads=config.loads,
            notes=config.notes,
        )


def _warmup_file(store: Store, listed: Mapping[str, Listed], folder: str, name: str) -> bytes | None:
    file = listed.get(f"{folder}/{WARMUP_FOLDER}/{name}".removeprefix("./"))
    if file is None:
        return None
    path = store.local(file)
    return path.read_bytes() if path.stat().st_size <= WARMUP_BYTES else None


def _of_torchserve(store: Store, listed: Mapping[str, Listed], path: str) -> Iterator[Found]:
    row = Found(path=path, kind=StoreKind.TORCHSERVE, called=f"{torchserve.stem_of(path)}.pt")
    try:
        archive = torchserve.read_archive(store.local(listed[path]))
    except SourceFault as fault:
        yield _left_out(row, fault.label, fault.text)
        return
    except CannotRead as error:
        yield _left_out(row, error.kind, error.text)
        return
    if not archive.is_served:
        why = f"an archive without {torchserve.MANIFEST}"
        yield replace(row, left_out=why) if path.lower().endswith(torchserve.MAR) else replace(row, unjudged=why)
    elif not archive.models:
        yield replace(row, unjudged="a TorchServe archive that names no serialized file and holds no artifact")
    for member in archive.models if archive.is_served else ():
        called = (
            f"{torchserve.stem_of(path)}_{PurePosixPath(member).stem}.pt" if member != archive.served else row.called
        )
        yield replace(row, member=member, called=row.called if member == archive.served else called)


class _Reader:
    def __init__(
        self, store: Store, listed: Mapping[str, Listed], registries: Mapping[str, OperatorRegistry], scratch: Path
    ) -> None:
        self._store, self._listed, self._registries, self._scratch = store, listed, registries, scratch

    def read(
        self, artifact: FleetArtifact, memory: CodeMemory, loads: ArtifactKind | None, *, is_named: bool
    ) -> FleetArtifact | Unjudged:
        """Return the artifact with what its bytes say, or why it is left out.

        ``loads``: as of ``Found``; ``is_named``: whether the manifest knows it as an artifact, whatever it is by now.
        """
        read = artifact if artifact.left_out else self._read(artifact, memory, loads)
        if isinstance(read, Unjudged) and is_named:
            return _left_out(artifact, "cannot be judged", read.reason)
        if not isinstance(read, FleetArtifact):
            return read
        code = foreign_code(self._store, read)
        return replace(read, notes=(*read.notes, f"{code}: {RUNS}")) if code else read

    def _read(
        self, artifact: FleetArtifact, memory: CodeMemory, loads: ArtifactKind | None
    ) -> FleetArtifact | Unjudged:
        if not (artifact.path + artifact.member).isprintable():
            return replace(artifact, left_out="has a name that is no plain text: rename it")
        try:
            path = self._store.local(self._listed[artifact.path])
            if artifact.kind is StoreKind.TORCHSERVE:
                path = torchserve.unpacked(path, artifact.member, self._scratch)
            inputs = artifact.serving.inputs
            if inputs and inputs not in self._listed:
                return replace(artifact, left_out=f"its requests, {inputs}, are not in the store")
            inputs_sha256 = sha256_of(self._store.local(self._listed[inputs])) if inputs else ""
            sha256 = sha256_of(path)
            looked = inspect_file(str(path), self._registries, memory)
            artifact = replace(artifact, size_bytes=path.stat().st_size, sha256=sha256, inputs_sha256=inputs_sha256)
            if looked.facts is None or not looked.facts.is_judged:
                return _without_code(artifact, looked)
            artifact = replace(artifact, loaded_as=looked.facts.kind)
            if artifact.kind is StoreKind.TRITON and (why_not := _why_not_served(artifact.loaded_as, loads)):
                return replace(artifact, left_out=why_not)
            with files.opened(str(path)) as source:
                is_torchscript = artifact.loaded_as is ArtifactKind.TORCHSCRIPT
                identity = identity_of(source) if is_torchscript else Identity(program=sha256, weights="")
        except SourceFault as fault:
            return _left_out(artifact, fault.label, fault.text)
        except CannotRead as error:
            return _left_out(artifact, error.kind, error.text)
        except OSError as error:
            return _left_out(artifact, "cannot be read", error.strerror or str(error))
        return replace(
            artifact,
            program=identity.program,
            weights=identity.weights,
            predictions={side: verdict.prediction for side, verdict in looked.verdicts.items()},
            why=_why(looked),
        )


T = TypeVar("T", Found, FleetArtifact)


def _left_out(artifact: T, reason: str, details: str) -> T:
    return replace(artifact, left_out=f"{reason}: {details}", left_out_for=reason)


def _why_not_served(kind: ArtifactKind, loads: ArtifactKind | None) -> str:
    """Return why Triton does not load what it finds there, in words; empty where it does."""
    if kind is ArtifactKind.PROGRAM:
        return f"is {kind.words}, and Triton's PyTorch backend loads archives and packages: compile it with AOTInductor"
    if loads not in (None, kind):
        return f"is {kind.words}, and Triton loads {loads.words} there, by its platform"
    return ""


def _without_code(artifact: FleetArtifact, looked: InspectedFile) -> FleetArtifact | Unjudged:
    """Return what has no TorchScript that can be read: a row where it may be an artifact all the same, or is served."""
    if looked.failure is not None:
        return _left_out(artifact, looked.failure.kind, looked.failure.text)
    assert looked.facts is not None
    recognised = looked.facts.format
    what = "; ".join(filter(None, FORMATS[recognised]))
    if recognised in MAY_LOAD or files.is_in_place_of_a_model(artifact.member or artifact.path, recognised):
        return _left_out(artifact, "cannot be judged", what)
    if artifact.kind is StoreKind.TRITON:
        return _left_out(artifact, f"{NO_TORCHSCRIPT}, which PyTorch's backend loads", what)
    return Unjudged(path=artifact.path, member=artifact.member, reason=f"{NO_TORCHSCRIPT}: {FORMATS[recognised][0]}")


def _why(looked: InspectedFile) -> str:
    """Return the gravest reason for a closer look at the upgrade, in words; empty where reading gives none."""
    verdict = looked.verdicts.get("new")
    if verdict is None:
        return ""
    telling = [*deciding(verdict), *changed_semantics(verdict)]
    telling += [item for item in verdict.findings if item.weight is Weight.DOUBT]
    return f"{telling[0].subject}: {telling[0].text}" if telling else ""


def sha256_of(path: Path) -> str:
    """Return the sha256 of a file. Raises ``CannotRead``: it cannot be read."""
    with files.opened(str(path)) as source:
        return digest_of(source)
