"""Finds the artifacts that ``--artifacts`` means, and the requests next to them."""

import contextlib
import difflib
import glob
import hashlib
import itertools
import json
import os
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final, NamedTuple

from harness.artifacts import names
from harness.artifacts.archive.formats import FORMATS, MAY_LOAD
from harness.artifacts.archive.limits import CannotRead
from harness.artifacts.bundles import bundle_declaration
from harness.artifacts.declarations import merge_catalogue
from harness.artifacts.files import (
    REQUEST_SUFFIXES,
    REQUESTS,
    SUFFIXES,
    FoundFile,
    find_files,
    format_of,
    is_in_place_of_a_model,
    is_request_file,
    kind_of,
    leads_out,
    models_beside,
    opened,
)
from harness.artifacts.manifest import MANIFEST, MOST_BYTES, line_of, read_manifest, where
from harness.core import golden
from harness.core.archive import ArchiveFormat
from harness.core.errors import ConfigError, FixtureError, GoldenError, SelectionError
from harness.core.models import GivenArtifact, ModelDeclaration, UnjudgedFile
from harness.core.text import first_few
from harness.worker import wire


def finished(model: ModelDeclaration) -> ModelDeclaration:
    """Return the model with its kind, a tag, its digest and, unless it has requests, those beside its file."""
    given = model.given
    assert given is not None
    given = replace(given, kind=kind_of(given.path, given.within))
    if not (given.inputs or given.requests):
        given = replace(given, inputs=requests_beside(given.path))
    model = replace(model, given=given, tags=model.tags or (names.tag_of(given.path),))
    return replace(model, source_digest=source_digest(model))


def source_digest(model: ModelDeclaration) -> str:
    """Return what the model's files are by now: a sha256 for each, of its content where that is cheap to read."""
    return " ".join(digest for _, digest in _digests(model))


def changed_files(model: ModelDeclaration) -> list[str]:
    """Return the files of a given model that are no longer what its ``source_digest`` says."""
    assert model.given is not None
    if not model.given.bundle:
        return [path for path, digest in _digests(model) if digest not in model.source_digest.split()]
    try:
        unchanged = bundle_declaration(Path(model.given.path)).source_digest == model.source_digest
    except ConfigError:
        unchanged = False
    return [] if unchanged else [model.given.path]


def _digests(model: ModelDeclaration) -> list[tuple[str, str]]:
    assert model.given is not None
    paths = {model.given.path: model.given.within, model.given.inputs: ""}
    if model.source.endswith(".toml"):
        paths[str(Path(model.package_root) / model.source)] = ""
    looked = {path: _content_or_time(path, within) for path, within in paths.items() if path}
    return [(path, hashlib.sha256(json.dumps([path, *look]).encode()).hexdigest()) for path, look in looked.items()]


def requests_beside(path: str) -> str:
    """Return the file with an artifact's requests, empty without. Raises ``ConfigError``: there are two."""
    stem = Path(path).with_suffix("")
    there = [name for name in (f"{stem}{REQUESTS}{suffix}" for suffix in REQUEST_SUFFIXES) if os.path.lexists(name)]
    if len(there) > 1:
        raise ConfigError(
            f"{path}: its requests are in two files, {there[0]} and {there[1]}",
            "keep one: your own, not that of a rewrite",
        )
    return there[0] if there else ""


def what_else(path: str) -> str:
    """Return what a file is if surely no TorchScript or .pt2, and what to do; else empty. Its code is not read."""
    try:
        path.encode()
    except UnicodeEncodeError:
        return "has a name that is no UTF-8: rename it"
    if path.endswith(golden.SUFFIX):
        return ""
    recognised = format_of(path)
    if recognised is None or recognised in MAY_LOAD:
        return ""
    return f"is no TorchScript: {'; '.join(filter(None, FORMATS[recognised]))}"


def why_unreadable(path: str) -> str:
    try:
        with opened(path):
            return ""
    except CannotRead as error:
        return error.text


CHEAP_BYTES: Final = 4 << 20
"""Of a file whose content is read to know whether it has changed; of a larger one size and time count."""


def _content_or_time(path: str, within: str) -> tuple[int, int | str]:
    try:
        status = os.stat(path)  # noqa: PTH116
    except OSError:  # gone: that is a change too
        return -1, 0
    if status.st_size <= CHEAP_BYTES:
        with contextlib.suppress(CannotRead), opened(path, within) as source:
            return source.size, hashlib.sha256(source.read(0, source.size)).hexdigest()
    return status.st_size, status.st_mtime_ns


def shown(path: str) -> str:
    return path if path.isprintable() else ascii(path)


MOST_NOTES: Final = 20
ALIKE: Final = 0.8
NAMED: Final = 3
NEAR: Final = 0.5
"""How alike two names must be (0 to 1) for one to be suggested in place of the other."""


def orphan_notes(models: Sequence[ModelDeclaration], names: Sequence[str]) -> tuple[str, ...]:
    """Return a note for each file that is named like requests and belongs to no artifact.

    ``models``: given models; the folders of their files are searched; ``names``: what the user named; folders among
    these are searched with everything below them.
    """
    given = [model.given for model in models if model.given is not None]
    used = {os.path.realpath(item.inputs) for item in given if item.inputs}
    idle = [item.path for item in given if not (item.inputs or item.requests or item.bundle)]
    orphans = [
        path for path in _request_files([item.path for item in given], names) if os.path.realpath(path) not in used
    ]
    notes = [f"{shown(path)}: requests of no artifact{_meant(path, idle)}" for path in orphans[:MOST_NOTES]]
    more = len(orphans) - MOST_NOTES
    notes += [f"and {more} more files with requests of no artifact"] if more > 0 else []
    return (*notes, *itertools.islice(_misspelt(idle), MOST_NOTES))


def _misspelt(idle: Sequence[str]) -> Iterator[str]:
    """Yield a note on each file beside an artifact without requests that is named almost like these: ``m.input.py``."""
    for path in map(Path, idle):
        for suffix in REQUEST_SUFFIXES:
            beside = (other for other in path.parent.glob(f"{glob.escape(path.stem)}*{suffix}") if other != path)
            for other in beside:
                if difflib.get_close_matches(other.stem.removeprefix(path.stem), [REQUESTS], cutoff=ALIKE):
                    meant = shown(f"{path.stem}{REQUESTS}{suffix}")
                    yield f"{shown(str(other))}: did you mean {meant}? requests of {shown(path.name)} are called that"


def _meant(path: str, idle: Sequence[str]) -> str:
    """Return which artifact without requests may be meant, in words; empty if none has a similar name."""
    beside = [item for item in idle if Path(item).parent == Path(path).parent] or list(idle)
    stems = {Path(item).stem: item for item in beside}
    near = difflib.get_close_matches(Path(path).stem.removesuffix(REQUESTS), stems, n=1, cutoff=NEAR)
    if not near:
        return ""
    file = Path(stems[near[0]])
    where = "" if file.parent == Path(path).parent else f", beside {shown(str(file))}"
    return f"; those of {shown(file.name)} are called {shown(f'{file.stem}{REQUESTS}{Path(path).suffix}')}{where}"


def _request_files(paths: Sequence[str], names: Sequence[str]) -> Iterator[str]:
    """Yield, each once, the request files beside artifacts and below folders that no neighbour's name explains."""
    seen: set[str] = set()
    for folder, files in _listed(paths, names):
        if folder in seen:
            continue
        seen.add(folder)
        requests = [name for name in files if is_request_file(name)]
        stems = {Path(name).stem for name in files if not is_request_file(name)} if requests else set()
        for name in sorted(requests):
            if Path(name).stem.removesuffix(REQUESTS) not in stems:
                yield str(Path(folder) / name)


def _listed(paths: Sequence[str], names: Sequence[str]) -> Iterator[tuple[str, list[str]]]:
    for name in names:
        for root, _, files in os.walk(os.path.abspath(name)):  # noqa: PTH100  nothing where it is no folder
            yield root, files
    for folder in dict.fromkeys(os.path.dirname(path) for path in paths):  # noqa: PTH120
        for root, _, files in itertools.islice(os.walk(folder), 1):
            yield root, files


INSPECT: Final = "inspect says more"
LEFT_OUT, NO_RESULT = " (left out)", " (a row without a result)"
NOT_THERE: Final = "paths are relative to the manifest"


class LeftOut(NamedTuple):
    """A file that is something else than a model, as the model that it may have been before.

    ``note`` is on it as it is; ``as_row`` is the one where it has a row.
    """

    note: str
    as_row: str
    model: ModelDeclaration
    unjudged: UnjudgedFile


@dataclass(frozen=True, kw_only=True)
class GivenModels:
    """Models that are files, notes on what was left out, and of that what may have been a model before.

    ``unjudged``: all that lies in the folders that were named and looks like a model, and is left out.
    """

    models: tuple[ModelDeclaration, ...]
    notes: tuple[str, ...] = ()
    left_out: tuple[LeftOut, ...] = ()
    unjudged: tuple[UnjudgedFile, ...] = ()

    def with_known(self, known: Collection[str]) -> "GivenModels":
        """Return them with those left out whose names are ``known`` as models: these get a row that says so."""
        again = [item for item in self.left_out if item.model.name in known]
        notes = {item.note: item.as_row for item in again}
        return replace(
            self,
            models=merge_catalogue((*self.models, *(item.model for item in again))),
            notes=tuple(notes.get(note, note) for note in self.notes),
            left_out=tuple(item for item in self.left_out if item not in again),
            unjudged=tuple(item for item in self.unjudged if item not in [left.unjudged for left in again]),
        )


def given_models(names: Sequence[str], *, base: Path | None = None) -> GivenModels:
    """Return the models that ``names`` mean: files, folders, patterns, golden bundles and manifests.

    A file of a folder that is damaged, cannot be read, or is what a checkout or a download leaves in place of a model
    is a model too, so that its row says so. A damaged bundle there becomes a note: nobody knows which model it was.

    Args:
        names: as typed; a folder with a ``models.toml`` directly in it means that manifest.
        base: what relative names are relative to, if not the working directory.

    Raises:
        SelectionError: a name matches nothing, or no artifact.
        FixtureError: a manifest is wrong, or what it names is not there.
        GoldenError: a bundle that was named itself is damaged.
        ConfigError: two files of requests are beside one artifact.
    """
    declared: list[ModelDeclaration] = []
    files: dict[str, FoundFile] = {}
    manifests: dict[str, str] = {}
    for name in names:
        path = name if base is None else str(base / name)
        manifest = _manifest(path)
        if manifest is not None:
            if manifest != path and leads_out(manifest, os.path.realpath(path)):
                raise FixtureError(f"{shown(manifest)} is a link that leads out of {path}", "name the manifest itself")
            manifests[os.path.realpath(manifest)] = path
            continue
        for file in _files(path):
            if file.named or file.path not in files:
                files[file.path] = file
    notes: list[str] = []
    walked = [os.path.abspath(name if base is None else base / name) for name in names]  # noqa: PTH100
    unjudged: list[UnjudgedFile] = []

    def unjudged_file(path: str, what: str) -> UnjudgedFile:
        folder = next((item for item in walked if Path(path).is_relative_to(item)), os.path.dirname(path))  # noqa: PTH120
        return UnjudgedFile(path=shown(os.path.relpath(path, folder)), what=what)

    for manifest, path in manifests.items():
        models = _read(manifest)
        forgotten = [*_unmentioned(path, models)]
        unjudged += [unjudged_file(item, f"not in {os.path.basename(manifest)}") for item in forgotten]  # noqa: PTH119
        if forgotten:
            notes.append(f"{first_few([*map(shown, forgotten)], 1)}: not tested, {manifest} does not name them")
        declared += models
    declared_paths = {model.given.path for model in declared if model.given is not None}
    usable: list[FoundFile] = []
    left_out: dict[str, tuple[FoundFile, UnjudgedFile]] = {}
    for file in files.values():
        outside = leads_out(file.path, file.within)  # so it is not opened, and has a row that says so
        wrong = "" if outside else what_else(file.path)
        if wrong and file.named:
            raise SelectionError(f"{shown(file.path)} {wrong}", INSPECT)
        is_bundle = not file.named and file.path.endswith(golden.SUFFIX)
        if is_bundle and outside:
            wrong = f"is a link that leads out of {file.within}"
        is_replaced = bool(wrong) and is_in_place_of_a_model(file.path, format_of(file.path))
        if wrong:
            notes.append(f"{shown(file.path)} {wrong}{NO_RESULT if is_replaced else LEFT_OUT}")
        if wrong and not is_replaced:
            recognised = format_of(file.path)
            item = unjudged_file(file.path, FORMATS[recognised][0] if recognised is not None else wrong)
            left_out[f"{shown(file.path)} {wrong}"] = file, item
            if recognised is not ArchiveFormat.TEXT:  # else it is named like a model by chance
                unjudged.append(item)
        elif is_bundle and (why_not := _why_no_bundle(file.path)):
            notes.append(f"{why_not}{LEFT_OUT}")
            unjudged.append(unjudged_file(file.path, "a golden bundle that cannot be read"))
        elif file.path not in declared_paths:
            usable.append(file)
    if not usable and not declared:
        raise SelectionError(f"{', '.join(names)}: no TorchScript there: {first_few(notes, 3, '; ')}", INSPECT)
    models = _merged(declared, usable)
    known = len(unjudged)
    judged = {os.path.realpath(model.given.path) for model in models if model.given is not None}
    for file_path, what in (item for folder in walked if os.path.isdir(folder) for item in models_beside(folder)):  # noqa: PTH112
        if os.path.realpath(file_path) not in judged:
            unjudged.append(unjudged_file(file_path, what))
            notes.append(f"{shown(file_path)}: {what}{LEFT_OUT}")
    return GivenModels(
        models=models,
        notes=(*notes, *orphan_notes(models, walked)),
        left_out=tuple(_before(left_out, usable, [model.name for model in declared])),
        unjudged=tuple(dict.fromkeys((*unjudged[known:], *unjudged[:known]))),  # first what could have been judged
    )


def renamed_notes(models: Sequence[ModelDeclaration], known: Collection[str]) -> list[str]:
    """Return a note on each of the names ``known`` to waivers or a baseline that files of one stem do not have now."""
    stems: dict[str, list[str]] = {}
    for model in models:
        if model.given is not None:
            stems.setdefault(names.word_of(model.given.path), []).append(model.name)
    there = {model.name for model in models}
    return [
        f"{stem} is known to a waiver or the baseline, and no model has that name: {len(called)} files have that stem, "
        f"and are called {first_few(called, NAMED)}; models.toml fixes names"
        for stem, called in stems.items()
        if stem in known and stem not in there
    ]


def _before(
    left_out: Mapping[str, tuple[FoundFile, UnjudgedFile]], usable: Sequence[FoundFile], declared: Sequence[str]
) -> Iterator[LeftOut]:
    """Yield each file, by what is wrong with it, as the model that it was in an earlier run, by its name then."""
    called = names.names_of([file.path for file in (*usable, *(file for file, _ in left_out.values()))], declared)
    for wrong, (file, unjudged) in left_out.items():
        if _is_model_file(file):
            yield LeftOut(f"{wrong}{LEFT_OUT}", f"{wrong}{NO_RESULT}", _model(file, called[file.path]), unjudged)


def _is_model_file(file: FoundFile) -> bool:
    return Path(file.path).suffix.lower() in SUFFIXES and not file.path.endswith(golden.SUFFIX)


def _manifest(path: str) -> str | None:
    inside = os.path.join(path, MANIFEST)  # noqa: PTH118  Path raises where a name is too long
    if os.path.lexists(inside):
        return inside
    toml = path.endswith(".toml") and os.path.lexists(path) and not os.path.isdir(path)  # noqa: PTH112
    return path if toml else None


def _read(path: str) -> tuple[ModelDeclaration, ...]:
    try:
        with opened(path) as source:
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


def _unmentioned(path: str, models: Sequence[ModelDeclaration]) -> Iterator[str]:
    """Yield the files of a folder with a manifest that it does not name."""
    if not os.path.isdir(path):  # noqa: PTH112
        return
    named = {os.path.realpath(model.given.path) for model in models if model.given is not None}
    with contextlib.suppress(SelectionError):  # its artifacts are elsewhere
        yield from (file.path for file in _files(path) if os.path.realpath(file.path) not in named)


def _why_no_bundle(path: str) -> str:
    """Return why a file named like a golden bundle cannot replace a release; empty if it can."""
    try:
        bundle_declaration(Path(path))
    except GoldenError as error:
        return error.message
    return ""


def _files(name: str) -> Iterator[FoundFile]:
    """Yield the artifacts that one name means; links are not resolved: a model is named after the link."""
    for file in find_files([name]):
        if not is_request_file(file.path):
            yield file._replace(path=os.path.abspath(file.path))  # noqa: PTH100
        elif file.named:
            raise SelectionError(f"{shown(file.path)} holds requests", "name the artifact: they are found beside it")


def _merged(declared: Sequence[ModelDeclaration], files: Sequence[FoundFile]) -> tuple[ModelDeclaration, ...]:
    for file in files:
        wrong = why_unreadable(file.path) if file.named else ""
        if wrong:
            raise SelectionError(f"{shown(file.path)} {wrong}", "name files that this user may read")
    bundles = [bundle_declaration(Path(file.path)) for file in files if file.path.endswith(golden.SUFFIX)]
    plain = [file for file in files if not file.path.endswith(golden.SUFFIX)]
    called = names.names_of([file.path for file in plain], [model.name for model in (*declared, *bundles)])
    return merge_catalogue([*map(finished, declared), *bundles, *(_model(file, called[file.path]) for file in plain)])


def _model(file: FoundFile, name: str) -> ModelDeclaration:
    return finished(
        ModelDeclaration(
            name=name,
            package_root=str(Path(file.path).parent),
            source=Path(file.path).name,
            how="file",
            given=GivenArtifact(path=file.path, within=file.within),
        )
    )
