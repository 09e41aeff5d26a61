"""Verb ``registry``: what this release accepts in an archive, written to ``registry.json``; runs no operator."""

import json
import os
import re

import torch

from gate_worker import libraries, wire

CUSTOM = re.compile(r"\(__torch__\.torch\.classes\.([\w.]+) ")


def registry(request, run_dir, log):
    libraries.load(request.get("libraries") or (), log)
    found = {
        "torch": torch.__version__,
        "operator_version": torch._C._get_max_operator_version(),
        "schemas": sorted({str(schema) for schema in torch._C._jit_get_all_schemas()}),
        "upgraders": upgraders(),
        "library_operators": list(libraries.Loaded.operators),
        "custom_classes": sorted(custom_classes()),
        "dtypes": sorted(name for name in dir(torch) if isinstance(getattr(torch, name), torch.dtype)),
        "programs": programs(),
        "type_names": [name for name in request["type_names"] if is_known(name)],
    }
    path = os.path.join(run_dir, wire.REGISTRY)
    with open(path + ".part", "w") as stream:
        json.dump(found, stream)
    os.replace(path + ".part", path)


def upgraders():
    """Return [name, below version, old schema] of every function that reads older archives."""
    return sorted(
        [entry.upgrader_name, entry.bumped_at_version, entry.old_schema]
        for entries in torch._C._get_operator_version_map().values()
        for entry in entries
    )


def custom_classes():
    """Return the TorchBind classes that have a method: torch lists methods, not classes."""
    found = set()
    for schema in torch._C._jit_get_custom_class_schemas():
        found.update(CUSTOM.findall(str(schema)))
    return found


def programs():
    """Return what torch.export.load reads: the schema version, and the version of archives, empty where it knows none.

    Archives came with 2.8; before that an exported program was a zip of its own kind, which is read to this day.
    """
    schema, archive = [], ""
    try:
        from torch._export.serde.schema import SCHEMA_VERSION

        schema = [SCHEMA_VERSION] if isinstance(SCHEMA_VERSION, int) else list(SCHEMA_VERSION)
        from torch.export.pt2_archive.constants import ARCHIVE_VERSION_VALUE

        archive = ARCHIVE_VERSION_VALUE
    except ImportError:  # of an older release
        pass
    return {"schema": schema, "archive": archive}


def is_known(name):
    """Ask the parser of this release for a type, alone and of something."""
    for text in (name, name + "[int]", name + "[int, str]"):
        try:
            torch.jit.CompilationUnit("def f(x: %s) -> int:\n  return 1\n" % text)
            return True
        except Exception:  # noqa: S112  the next way to write it
            continue
    return False
