"""Operator libraries, loaded once per process before any artifact: shared objects, files of Python and modules."""

import hashlib
import importlib
import os

import torch

from gate_worker import setters, wire

CHUNK_BYTES = 1 << 20


class Loaded:
    """What ``load`` has loaded; forked children inherit it.

    Attributes:
        names: as they were asked for.
        operators: what they have registered, ``"torchvision::nms"``, sorted.
        threads: how many this process had before and after.
    """

    names = ()
    operators = ()
    threads = (1, 1)


class LibraryNotLoaded(Exception):
    """One of them cannot be loaded here; the message begins with its name."""


def load(names, log):
    """Load what ``names`` means, in order, and leave the mark ``libraries``.

    Raises:
        PhaseFailed: one cannot be loaded; the error of phase ``library`` is a ``LibraryNotLoaded``.
    """
    if not names:
        return
    known, threads = operators(), threads_now()
    for name in names:
        log.mark("library", name)  # who it was, should it end the process
        with log.phase(wire.LIBRARY):
            try:
                setters.load_library(torch, name)
            except BaseException as error:
                raise LibraryNotLoaded("%s: %s: %s" % (name, type(error).__name__, error)) from error
    Loaded.names = tuple(names)
    Loaded.operators = tuple(sorted(operators() - known))
    Loaded.threads = (threads, threads_now())
    log.mark("libraries", report())


def operators():
    return {schema.name for schema in torch._C._jit_get_all_schemas()}


def threads_now():
    return len(os.listdir("/proc/self/task"))


def report():
    """Return what the controller is told: names, versions, paths of what was loaded, operators, threads around that."""
    return {
        "names": list(Loaded.names),
        "paths": sorted(torch.ops.loaded_libraries),
        "operators": list(Loaded.operators),
        "threads": list(Loaded.threads),
        "versions": {name: version for name in Loaded.names if (version := version_of(name))},
    }


def words():
    programs = {name for name in Loaded.names if setters.is_program(name)}
    paths = sorted(programs.union(torch.ops.loaded_libraries))
    files = ["%s %s" % (os.path.basename(path), digest(path)) for path in paths]
    modules = [("%s %s" % (name, version_of(name))).strip() for name in Loaded.names if not setters.is_file(name)]
    return ", ".join(modules + files) if Loaded.names else ""


def version_of(name):
    return "" if setters.is_file(name) else str(getattr(importlib.import_module(name), "__version__", ""))


def digest(path):
    hashed = hashlib.sha256()
    try:
        with open(path, "rb") as stream:
            for chunk in iter(lambda: stream.read(CHUNK_BYTES), b""):
                hashed.update(chunk)
    except OSError:  # loaded by a name that the dynamic linker has looked for
        return "?"
    return hashed.hexdigest()[:12]
