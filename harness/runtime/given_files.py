"""Finds artifacts that exist already, and the requests beside them: what ``--artifacts`` means."""

import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final, NamedTuple

from harness.archive.limits import CannotRead
from harness.domain import bundle
from harness.domain.fixture import GivenArtifact, ModelDeclaration
from harness.domain.plain_text import first_few
from harness.errors import FixtureError, GoldenError, SelectionError
from harness.planning import given_names
from harness.planning.catalogue import merge_catalogue
from harness.planning.manifest import MANIFEST, MOST_BYTES, line_of, read_manifest, where
from harness.runtime import artifact_files
from harness.runtime.artifact_files import SUFFIXES, find_files
from harness.runtime.bundle_file import bundle_declaration
from harness.runtime.given_sources import (
    REQUEST_SUFFIXES,
    finished,
    is_request_file,
    shown,
    what_else,
    why_unreadable,
)
from harness.runtime.orphan_requests import orphan_notes
from harness.worker import wire

INSPECT: Final = "python -m harness inspect says more"
NOT_THERE: Final = "paths are relative to the manifest"


@dataclass(frozen=True, kw_only=True)
class GivenModels:
    """Models that are files, and what was left out, for a reader of the report."""

    models: tuple[ModelDeclaration, ...]
    notes: tuple[str, ...] = ()


class Found(NamedTuple):
    """A file, by its absolute path, and whether the user named it, rather than a folder or a pattern."""

    path: str
    named: bool


def given_models(names: Sequence[str], *, base: Path | None = None) -> GivenModels:
    """Return the models that ``names`` mean: files, folders, patterns, golden bundles and manifests.

    What cannot be read in a folder, or is damaged, is a model as well: its row tells. Of a damaged bundle there nobody
    knows which model it is: a note tells.

    Args:
        names: as typed; a folder with a ``models.toml`` directly in it means that manifest.
        base: what relative names are relative to, if not the working directory.

    Raises:
        SelectionError: a name means nothing, or no TorchScript.
        FixtureError: a manifest is wrong, or what it names is not there.
        GoldenError: a bundle that was named itself is damaged.
        ConfigError: requests lie beside an artifact twice.
    """
    declared: list[ModelDeclaration] = []
    files: dict[str, Found] = {}
    manifests: dict[str, str] = {}
    for name in names:
        path = name if base is None else str(base / name)
        manifest = _manifest(path)
        if manifest is not None:
            manifests[os.path.realpath(manifest)] = path
            continue
        for found in _files(path):
            if found.named or found.path not in files:
                files[found.path] = found
    notes: list[str] = []
    for manifest, path in manifests.items():
        models = _read(manifest)
        notes += _unmentioned(manifest, path, models)
        declared += models
    taken = {model.given.path for model in declared if model.given is not None}
    usable = []
    for found in files.values():
        wrong = what_else(found.path)
        if wrong and found.named:
            raise SelectionError(f"{shown(found.path)} {wrong}", INSPECT)
        if not wrong and not found.named and found.path.endswith(bundle.SUFFIX):
            wrong = _why_no_bundle(found.path)
        if wrong:
            notes.append(f"{shown(found.path)} {wrong} (left out)")
        elif found.path not in taken:
            usable.append(found)
    if not usable and not declared:
        raise SelectionError(f"{', '.join(names)}: no TorchScript there: {first_few(notes, 3, '; ')}", INSPECT)
    models = _merged(declared, usable)
    walked = [name if base is None else str(base / name) for name in names]
    return GivenModels(models=models, notes=(*notes, *orphan_notes(models, walked)))


def _manifest(path: str) -> str | None:
    inside = os.path.join(path, MANIFEST)  # noqa: PTH118  Path raises where a name is too long
    if os.path.lexists(inside):
        return inside
    toml = path.endswith(".toml") and os.path.lexists(path) and not os.path.isdir(path)  # noqa: PTH112
    return path if toml else None


def _read(path: str) -> tuple[ModelDeclaration, ...]:
    try:
        with artifact_files.opened(path) as source:
            if source.size > MOST_BYTES:
                raise CannotRead("too_large", f"is no manifest: {source.size:,} bytes")
            text = source.read(0, source.size).decode()
    except CannotRead as error:
        raise FixtureError(f"{path} {error.text}", "name a manifest that this user may read") from None
    except UnicodeDecodeError as error:
        raise FixtureError(f"{path} cannot be read: {error}", "save it as UTF-8 text") from None
    models = read_manifest(text, file=path, folder=os.path.dirname(os.path.abspath(path)))  # noqa: PTH100, PTH120
    for model in models:
        _check(model, path, text)
    return models


def _check(model: ModelDeclaration, manifest: str, text: str) -> None:
    """Refuse a model of a manifest whose files are not there or are no TorchScript."""
    assert model.given is not None
    path, inputs_path = (
        where(f"{manifest}:{line_of(text, model.line, key)}" if model.line else manifest, model.name, key)
        for key in ("path", "inputs")
    )
    wrong = why_unreadable(model.given.path)
    if wrong:
        raise FixtureError(f"{path}: {shown(model.given.path)} {wrong}", NOT_THERE)
    wrong = what_else(model.given.path)
    if wrong:
        raise FixtureError(f"{path}: {shown(model.given.path)} {wrong}", INSPECT)
    inputs = model.given.inputs
    if inputs and Path(inputs).suffix not in REQUEST_SUFFIXES and Path(inputs).name != wire.TENSORS_INDEX:
        raise FixtureError(f"{inputs_path}: expected a file {', '.join(REQUEST_SUFFIXES)}, got {inputs}")
    wrong = why_unreadable(inputs) if inputs else ""
    if wrong:
        raise FixtureError(f"{inputs_path}: {shown(inputs)} {wrong}", NOT_THERE)


def _unmentioned(manifest: str, path: str, models: Sequence[ModelDeclaration]) -> Iterator[str]:
    """Yield a note if a folder with a manifest holds artifacts that it does not name."""
    if not os.path.isdir(path):  # noqa: PTH112
        return
    named = {os.path.realpath(model.given.path) for model in models if model.given is not None}
    try:
        left = [found.path for found in _files(path) if os.path.realpath(found.path) not in named]
    except SelectionError:  # its artifacts lie elsewhere
        return
    if left:
        yield f"{first_few([shown(path) for path in left], 1)}: not tested, {manifest} does not name them"


def _why_no_bundle(path: str) -> str:
    """Return why a file that is called like a golden bundle cannot stand in for a release; empty if it can."""
    try:
        bundle_declaration(Path(path))
    except GoldenError as error:
        return error.message.removeprefix(f"{path}: ")
    return ""


def _files(name: str) -> Iterator[Found]:
    """Yield the artifacts that one name means; links are not resolved: their names are what they are called by."""
    for path in find_files([name], suffixes=SUFFIXES):
        if not is_request_file(path):
            yield Found(os.path.abspath(path), named=path == name)  # noqa: PTH100
        elif path == name:
            raise SelectionError(f"{shown(path)} holds requests", "name the artifact: they are found beside it")


def _merged(declared: Sequence[ModelDeclaration], files: Sequence[Found]) -> tuple[ModelDeclaration, ...]:
    for found in files:
        wrong = why_unreadable(found.path) if found.named else ""
        if wrong:
            raise SelectionError(f"{shown(found.path)} {wrong}", "name files that this user may read")
    bundles = [bundle_declaration(Path(found.path)) for found in files if found.path.endswith(bundle.SUFFIX)]
    paths = [found.path for found in files if not found.path.endswith(bundle.SUFFIX)]
    called = given_names.names_of(paths, [model.name for model in (*declared, *bundles)])
    return merge_catalogue([*map(finished, declared), *bundles, *(_model(path, called[path]) for path in paths)])


def _model(path: str, name: str) -> ModelDeclaration:
    return finished(
        ModelDeclaration(
            name=name,
            package_root=str(Path(path).parent),
            module="",
            factory="",
            source=Path(path).name,
            line=0,
            source_digest="",
            how="file",
            given=GivenArtifact(path=path),
        )
    )
