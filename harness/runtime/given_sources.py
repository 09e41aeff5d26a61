"""The files of one given model: what its artifact is, where its requests are, and whether they changed."""

import hashlib
import json
import os
from dataclasses import replace
from pathlib import Path
from typing import Final

from harness.archive.limits import CannotRead
from harness.domain import bundle
from harness.domain.archive import ArchiveFormat
from harness.domain.fixture import ModelDeclaration
from harness.errors import ConfigError
from harness.planning import given_names
from harness.policy.file_formats import FORMATS
from harness.runtime import artifact_files
from harness.runtime.bundle_file import bundle_declaration
from harness.runtime.static_check import format_of

REQUESTS: Final = ".inputs"
"""What stands between the artifact's stem and the suffix in the name of its requests."""
REQUEST_SUFFIXES: Final = (".pt", ".safetensors", ".npz", ".py")
# What may load, or what a row should tell of: an empty file was an artifact once.
MAY_LOAD: Final = frozenset(
    {
        ArchiveFormat.TORCHSCRIPT,
        ArchiveFormat.MOBILE,
        ArchiveFormat.LEGACY_TORCHSCRIPT,
        ArchiveFormat.GOLDEN_BUNDLE,
        ArchiveFormat.EMPTY,
        ArchiveFormat.UNKNOWN,
    }
)


def finished(model: ModelDeclaration) -> ModelDeclaration:
    """Return the model with the requests beside it, where it has no others, a tag, and its digest."""
    given = model.given
    assert given is not None
    if not (given.inputs or given.requests):
        given = replace(given, inputs=requests_beside(given.path))
    model = replace(model, given=given, tags=model.tags or (given_names.tag_of(given.path),))
    return replace(model, source_digest=source_digest(model))


def source_digest(model: ModelDeclaration) -> str:
    """Return what stands for the content of a given model's files: their paths, sizes and times of change."""
    assert model.given is not None
    paths = [model.given.path, model.given.inputs]
    if model.source.endswith(".toml"):
        paths.append(str(Path(model.package_root) / model.source))
    looked = [(path, *_size_and_time(path)) for path in paths if path]
    return hashlib.sha256(json.dumps(looked).encode()).hexdigest()


def is_unchanged(model: ModelDeclaration) -> bool:
    """Return whether the files of a given model are those that it was planned with."""
    assert model.given is not None
    if not model.given.bundle:
        return source_digest(model) == model.source_digest
    try:
        return bundle_declaration(Path(model.given.path)).source_digest == model.source_digest
    except ConfigError:
        return False


def requests_beside(path: str) -> str:
    """Return the file with the requests of the artifact at ``path``; empty where there is none.

    Raises:
        ConfigError: there are two.
    """
    stem = Path(path).with_suffix("")
    there = [name for name in (f"{stem}{REQUESTS}{suffix}" for suffix in REQUEST_SUFFIXES) if os.path.lexists(name)]
    if len(there) > 1:
        raise ConfigError(f"{path}: its requests are in two files, {there[0]} and {there[1]}", "keep one of them")
    return there[0] if there else ""


def is_request_file(path: str) -> bool:
    """Return whether a file is called as the requests of an artifact are: ``NAME.inputs.pt``."""
    name = Path(path)
    return name.suffix in REQUEST_SUFFIXES and name.stem.endswith(REQUESTS)


def what_else(path: str) -> str:
    """Return what a file is if it is certainly no TorchScript, and what to do; empty if it may load.

    Its code is not read: the static check does that, once the artifact has been taken over.
    """
    try:
        path.encode()
    except UnicodeEncodeError:
        return "has a name that is no UTF-8: rename it"
    if path.endswith(bundle.SUFFIX):
        return ""
    found = format_of(path)
    if found is None or found in MAY_LOAD:
        return ""
    return f"is no TorchScript: {'; '.join(FORMATS[found])}"


def why_unreadable(path: str) -> str:
    """Return why a file cannot be opened; empty if it can."""
    try:
        with artifact_files.opened(path):
            return ""
    except CannotRead as error:
        return error.text


def _size_and_time(path: str) -> tuple[int, int]:
    try:
        status = os.stat(path)  # noqa: PTH116
    except OSError:  # which is a change as well
        return -1, 0
    return status.st_size, status.st_mtime_ns


def shown(path: str) -> str:
    """Return ``path`` for a message."""
    return path if path.isprintable() else ascii(path)
