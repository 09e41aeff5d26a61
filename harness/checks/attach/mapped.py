"""What a process has mapped and open: LibTorch and OpenMP by path and version, and files of models."""

import re
from collections.abc import Iterable, Sequence
from pathlib import Path

from harness.core.attach import LoadedLibrary
from harness.core.linking import LIBTORCH, OPENMP
from harness.machine.files import text_of
from harness.machine.proc_files import links_in

MODELS = re.compile(r"\.(pt|pt2|pth|ts|torchscript|ptl|mar)$")
MOST_ARTIFACTS = 8
_DELETED = " (deleted)"
# In torch/version.py of a wheel; LibTorch's zip has the file build-version beside its folder lib.
_VERSION = re.compile(r"__version__ = '([^']+)'")
_MAP = re.compile(r"^\S+ \S+ \S+ \S+ \d+ +(/.*)$", re.MULTILINE)


def mapped_files(folder: str) -> tuple[str, ...]:
    """Return the files that a process has mapped, each once; empty where that is forbidden."""
    try:
        text = Path(f"{folder}/maps").read_text(errors="replace")
    except OSError:
        return ()
    return tuple(dict.fromkeys(_MAP.findall(text)))


def torch_of(files: Iterable[str], root: str) -> tuple[LoadedLibrary, ...]:
    """Return each LibTorch that is mapped; ``root``: the process's own root, ``/proc/PID/root``."""
    return tuple(_library(file, _version(file, root)) for file in files if _name(file) == LIBTORCH)


def openmp_of(files: Iterable[str]) -> tuple[LoadedLibrary, ...]:
    return tuple(_library(file, "") for file in files if OPENMP.match(_name(file)))


def _library(file: str, version: str) -> LoadedLibrary:
    return LoadedLibrary(path=file.removesuffix(_DELETED), version=version, replaced=file.endswith(_DELETED))


def _name(file: str) -> str:
    return Path(file.removesuffix(_DELETED)).name


def _version(file: str, root: str) -> str:
    if file.endswith(_DELETED):
        return ""  # what lies there now is another
    package = Path(root + file).parent.parent
    found = _VERSION.search(text_of(package / "version.py"))
    return found[1] if found is not None else text_of(package / "build-version").strip()


def artifacts_of(folder: str, files: Iterable[str], arguments: Sequence[str]) -> tuple[str, ...]:
    """Return files of models as ``"open: path"``, the most telling first: one that is open is being read."""
    found = [f"open: {path}" for path in links_in(f"{folder}/fd") if MODELS.search(path)]
    found += [f"mapped: {path}" for path in files if MODELS.search(path)]
    words = (word for argument in arguments for word in argument.split("="))
    found += [f"argument: {word}" for word in words if MODELS.search(word)]
    return tuple(dict.fromkeys(found))[:MOST_ARTIFACTS]
