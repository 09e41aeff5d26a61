"""Reads a store without torch: which artifacts it has, what each is, and what both releases will do with it."""

import hashlib
import json
import zipfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path, PurePosixPath
from typing import Any

from harness.archive.code import CodeMemory
from harness.archive.formats import FORMATS
from harness.archive.identity import identity_of
from harness.archive.limits import CannotRead
from harness.domain.archive import ArchiveFormat, OperatorRegistry
from harness.domain.fleet import FleetArtifact, Serving, StoreKind
from harness.domain.models import PROGRAM_SUFFIX
from harness.domain.prediction import InspectedFile, Weight
from harness.domain.text import first_few
from harness.errors import ConfigError, SelectionError
from harness.fleet.stores.sources import Listed, SourceFault, Store, listed_files
from harness.fleet.stores.triton import CONFIG, WARMUP_FOLDER, models_in, read_config, served_versions
from harness.models import files, names
from harness.models.artifacts import MOST_MORE_BYTES, MOST_TIMES
from harness.models.file_copies import digest_of
from harness.models.given import MAY_LOAD, REQUEST_SUFFIXES, REQUESTS, is_request_file
from harness.models.owners import MANIFEST, FleetManifest
from harness.static.check import inspect_file
from harness.static.judging import changed_semantics, deciding
from harness.store.codec import digest
from harness.system.files import ZIP_DAMAGE
from harness.system.progress import Progress

SUFFIXES = files.SUFFIXES - {".gate", PROGRAM_SUFFIX}
MAR = ".mar"
MAR_MANIFEST = "MAR-INF/MANIFEST.json"
CONFIG_BYTES = 1 << 20
WARMUP_BYTES = 64 << 10
NO_TORCHSCRIPT = "is no TorchScript"
MOST_NAMED = 3


@dataclass(frozen=True, kw_only=True)
class Found:
    """An artifact that a store lists, before it is read."""

    path: str
    kind: StoreKind = StoreKind.FILE
    called: str = ""
    serving: Serving = field(default_factory=Serving)
    assignments: tuple[str, ...] = ()
    left_out: str = ""
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True)
class ReadStore:
    """What a store holds: its artifacts, by name, and the serving profiles that they name."""

    artifacts: tuple[FleetArtifact, ...]
    profiles: Mapping[str, tuple[str, ...]]
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

    Args:
        scratch: where artifacts are unpacked that lie in archives of a server.

    Raises:
        SelectionError: it cannot be listed, or holds no artifact.
        ConfigError: an artifact has requests in two files.
    """
    progress.stage(f"list {store.name}")
    listed = {item.path: item for item in listed_files(store)}
    found = list(_found(store, listed))
    if not found:
        raise SelectionError(
            f"{store.name} holds no artifact", f"{', '.join(sorted(SUFFIXES))}, {MAR}, or a Triton model repository"
        )
    called = names.names_of([f"/{item.called or item.path}" for item in found])
    profiles: dict[str, tuple[str, ...]] = {"": ()}
    progress.stage("read artifacts", len(found))
    memory, reader = CodeMemory(), _Reader(store, listed, registries, scratch)
    artifacts: list[FleetArtifact] = []
    others: list[str] = []
    for item in found:
        name = called[f"/{item.called or item.path}"]
        profile = f"triton_{digest(item.assignments)[:6]}" if item.assignments else ""
        profiles.setdefault(profile, item.assignments)
        said = manifest.of(item.path)
        serving = _serving(item.serving, said, profile)
        artifact = FleetArtifact(
            name=name,
            path=item.path,
            kind=item.kind,
            serving=serving,
            owner=said.get("owner", ""),
            tier=said.get("tier", ""),
            tags=tuple(said.get("tags", ())) or (names.tag_of(f"/{item.path}"),),
            left_out=item.left_out,
            notes=item.notes,
        )
        artifact = reader.read(artifact, memory)
        if artifact.left_out.startswith(NO_TORCHSCRIPT) and item.kind is StoreKind.FILE:
            others.append(f"{artifact.path} {artifact.left_out}")
        else:
            artifacts.append(artifact)
        progress.step(name)
    progress.finish()
    if not artifacts:
        raise SelectionError(f"{store.name} holds no artifact: {first_few(others, 3, '; ')}", "name another store")
    unread = [f"{path}: fleet does not read it; write {MANIFEST}" for path in listed if path.endswith("models.toml")]
    left = [f"left out: {first_few(others, MOST_NAMED, '; ')}"] if others else []
    notes = (*manifest.idle(item.path for item in found), *unread[:1], *left)
    return ReadStore(artifacts=tuple(sorted(artifacts, key=lambda item: item.name)), profiles=profiles, notes=notes)


def _serving(served: Serving, said: Mapping[str, Any], profile: str) -> Serving:
    """Return how an artifact is asked: what the manifest says wins over what its store says."""
    asked = {key: said[key] for key in said if key not in ("owner", "tier", "tags")}
    if "inputs" in asked or "requests" in asked:
        served = replace(served, inputs="", requests=())
    return replace(served, profile=profile, **asked)


def _found(store: Store, listed: Mapping[str, Listed]) -> Iterator[Found]:
    """Yield the artifacts of a store by path: models of Triton by what it serves, all others by their suffix."""
    triton = {folder: versions for folder, versions in models_in(list(listed)).items() if versions}
    taken: set[str] = set()
    for folder, versions in triton.items():
        taken |= {path for paths in versions.values() for path in paths}
        yield from _of_triton(store, listed, folder, versions)
    for path in listed:
        name = PurePosixPath(path)
        if path in taken or is_request_file(path) or any(part.startswith(".") for part in name.parts):
            continue
        if name.suffix.lower() == MAR:
            yield Found(path=path, kind=StoreKind.TORCHSERVE)
        elif name.suffix.lower() in SUFFIXES:
            yield Found(path=path, serving=Serving(inputs=_requests_beside(path, listed)))


def _requests_beside(path: str, listed: Mapping[str, Listed]) -> str:
    stem = str(PurePosixPath(path).with_suffix(""))
    there = [name for suffix in REQUEST_SUFFIXES if (name := f"{stem}{REQUESTS}{suffix}") in listed]
    if len(there) > 1:
        raise ConfigError(f"{path}: its requests are in two files, {there[0]} and {there[1]}", "keep one of them")
    return there[0] if there else ""


def _of_triton(
    store: Store, listed: Mapping[str, Listed], folder: str, versions: Mapping[int, Sequence[str]]
) -> Iterator[Found]:
    """Yield the versions of one model that Triton serves; one row where its configuration cannot be read."""
    place = f"{folder}/{CONFIG}" if folder != "." else CONFIG
    name = PurePosixPath(folder).name or "model"
    try:
        path = store.local(listed[place])
        if listed[place].size > CONFIG_BYTES:
            raise ConfigError(f"{place}: is no configuration: {listed[place].size:,} bytes", "mend the file")
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
        yield Found(path=place, kind=StoreKind.TRITON, called=name, left_out=str(error))
        return
    if not config.is_pytorch:
        return
    for version in served:
        file = f"{PurePosixPath(place).parent!s}/{version}/{config.file}".removeprefix("./")
        there = file in listed
        yield Found(
            path=file,
            kind=StoreKind.TRITON,
            called=f"{name}_{version}.pt",
            serving=Serving(requests=config.requests),
            assignments=config.assignments,
            left_out="" if there else f"{file} is not there, which {place} names",
            notes=config.notes,
        )


def _warmup_file(store: Store, listed: Mapping[str, Listed], folder: str, name: str) -> bytes | None:
    """Return what a file in a model's folder of warm-up data holds; None where it is not there, or large."""
    found = listed.get(f"{folder}/{WARMUP_FOLDER}/{name}".removeprefix("./"))
    if found is None:
        return None
    path = store.local(found)
    return path.read_bytes() if path.stat().st_size <= WARMUP_BYTES else None


class _Reader:
    def __init__(
        self, store: Store, listed: Mapping[str, Listed], registries: Mapping[str, OperatorRegistry], scratch: Path
    ) -> None:
        self._store, self._listed, self._registries, self._scratch = store, listed, registries, scratch

    def read(self, artifact: FleetArtifact, memory: CodeMemory) -> FleetArtifact:
        """Return the artifact with what its bytes say; where they say nothing usable, why it is left out."""
        if artifact.left_out:
            return artifact
        if not artifact.path.isprintable():
            return replace(artifact, left_out="has a name that is no plain text: rename it")
        try:
            path = self._store.local(self._listed[artifact.path])
            if artifact.kind is StoreKind.TORCHSERVE:
                artifact = replace(artifact, member=served_member(path))
                path = unpacked(path, artifact.member, self._scratch)
            inputs = artifact.serving.inputs
            if inputs and inputs not in self._listed:
                return replace(artifact, left_out=f"its requests, {inputs}, are not in the store")
            inputs_sha256 = sha256_of(self._store.local(self._listed[inputs])) if inputs else ""
            sha256 = sha256_of(path)
            looked = inspect_file(str(path), self._registries, memory)
            artifact = replace(artifact, size_bytes=path.stat().st_size, sha256=sha256, inputs_sha256=inputs_sha256)
            if looked.facts is None or not looked.facts.has_code:
                return replace(artifact, left_out=_why_left_out(looked))
            with files.opened(str(path)) as source:
                identity = identity_of(source)
        except SourceFault as fault:
            return replace(artifact, left_out=f"{fault.label}: {fault.text}")
        except CannotRead as error:
            return replace(artifact, left_out=f"{error.kind}: {error.text}")
        except OSError as error:
            return replace(artifact, left_out=f"cannot be read: {error.strerror or error}")
        return replace(
            artifact,
            program=identity.program,
            weights=identity.weights,
            predictions={side: verdict.prediction for side, verdict in looked.verdicts.items()},
            why=_why(looked),
        )


def _why_left_out(looked: InspectedFile) -> str:
    if looked.failure is not None:
        return f"{looked.failure.kind}: {looked.failure.text}"
    assert looked.facts is not None
    planned = MAY_LOAD - {ArchiveFormat.EXPORTED_PROGRAM}  # a fleet is planned by TorchScript's code
    what = "cannot be judged" if looked.facts.format in planned else NO_TORCHSCRIPT
    return f"{what}: {'; '.join(FORMATS[looked.facts.format])}"


def _why(looked: InspectedFile) -> str:
    """Return the gravest reason for a closer look at the upgrade, in words; empty where reading gives none."""
    verdict = looked.verdicts.get("new")
    if verdict is None:
        return ""
    telling = [*deciding(verdict), *changed_semantics(verdict)]
    telling += [item for item in verdict.findings if item.weight is Weight.DOUBT]
    return f"{telling[0].subject}: {telling[0].text}" if telling else ""


def sha256_of(path: Path) -> str:
    """Return the sha256 of a file.

    Raises:
        CannotRead: it cannot be read.
    """
    with files.opened(str(path)) as source:
        return digest_of(source)


def served_member(archive: Path) -> str:
    """Return which file of a TorchServe archive its handler loads as TorchScript.

    Raises:
        CannotRead: it is damaged, or its manifest names none.
    """
    try:
        with zipfile.ZipFile(archive) as opened:
            info = opened.getinfo(MAR_MANIFEST)
            if info.file_size > CONFIG_BYTES:
                raise CannotRead("too_large", f"{MAR_MANIFEST} has {info.file_size:,} bytes")
            said = json.loads(opened.read(info))
            member = said["model"]["serializedFile"]
            if not isinstance(member, str) or member not in opened.namelist():
                raise CannotRead("member_missing", f"{MAR_MANIFEST} names {member!r}, which is not in the archive")
            return member
    except KeyError as error:
        raise CannotRead("member_missing", f"a TorchServe archive without {error}") from None
    except (OSError, ValueError, TypeError, *ZIP_DAMAGE) as error:
        raise CannotRead("damaged", f"no readable TorchServe archive: {error}") from None


def unpacked(archive: Path, member: str, scratch: Path) -> Path:
    """Return the artifact of a TorchServe archive as a file by itself, under a name that follows from its content.

    Raises:
        CannotRead: it is damaged.
        OSError: there is no room for it.
    """
    scratch.mkdir(parents=True, exist_ok=True)
    part = scratch / f".{archive.name}.part"
    made = hashlib.sha256()
    try:
        with zipfile.ZipFile(archive) as opened, opened.open(member) as source, part.open("wb") as target:
            if opened.getinfo(member).file_size > MOST_TIMES * archive.stat().st_size + MOST_MORE_BYTES:
                raise CannotRead("zip_bomb", f"{member} unpacks to far more than the archive is")
            while chunk := source.read(1 << 20):
                made.update(chunk)
                target.write(chunk)
        path = scratch / f"{made.hexdigest()[:32]}.pt"
        part.replace(path)
    except (ValueError, KeyError, *ZIP_DAMAGE) as error:
        raise CannotRead("damaged", f"{member} of a TorchServe archive: {error}") from None
    finally:
        part.unlink(missing_ok=True)
    return path
