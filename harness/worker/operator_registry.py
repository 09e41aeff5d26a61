"""Verb ``registry``: what this release accepts in an archive, written to ``registry.json``."""

import dataclasses
import enum
import io
import json
import math
import operator
import os
import re
import typing

import torch

from gate_worker import defects, libraries, wire

CUSTOM = re.compile(r"__torch__\.torch\.classes\.([\w.]+)")


def registry(request, run_dir, log):
    libraries.load(request.get("libraries") or (), log)
    defects.register()  # workers have them wherever an artifact does
    schemas = all_schemas()  # before torch.export is imported, which registers more
    accepted = {
        "torch": torch.__version__,
        "operator_version": torch._C._get_max_operator_version(),
        "schemas": sorted(schemas),
        "upgraders": upgraders(),
        "library_operators": list(libraries.Loaded.operators),
        "custom_classes": sorted(custom_classes()),
        "dtypes": sorted(name for name in dir(torch) if isinstance(getattr(torch, name), torch.dtype)),
        "packed_dtypes": packed_dtypes(),
        "programs": programs(schemas),
        "torch_libraries": torch_libraries(),
        "type_names": [name for name in request["type_names"] if is_known(name)],
    }
    path = os.path.join(run_dir, wire.REGISTRY)
    with open(path + ".part", "w") as stream:
        json.dump(accepted, stream)
    os.replace(path + ".part", path)


def upgraders():
    """Return [name, below version, old schema] of every function that reads older archives."""
    return sorted(
        [entry.upgrader_name, entry.bumped_at_version, entry.old_schema]
        for entries in torch._C._get_operator_version_map().values()
        for entry in entries
    )


def custom_classes():
    """Return the TorchBind classes that a method or an operator takes or returns: torch lists those, not classes."""
    schemas = map(str, torch._C._jit_get_custom_class_schemas())
    return set().union(*map(CUSTOM.findall, (*schemas, *all_schemas())))


class Holder(torch.nn.Module):
    """A model with nothing but a buffer."""

    def __init__(self, held):
        super().__init__()
        self.register_buffer("held", held)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x


def packed_dtypes():
    """Return the dtypes of several values in a byte that this release loads again: 2.15.0 takes them for damaged."""
    loadable = []
    for name in sorted({"quint4x2", "quint2x4"} & set(dir(torch))):
        archive, ones = io.BytesIO(), torch.ones(4, 4)
        try:
            packed = torch.quantize_per_channel(ones, torch.ones(4), torch.zeros(4), 0, getattr(torch, name))
            torch.jit.save(torch.jit.script(Holder(packed)), archive)
            torch.jit.load(io.BytesIO(archive.getvalue()))
        except RuntimeError:
            continue
        loadable.append(name)
    return loadable


def all_schemas():
    return {str(schema) for schema in torch._C._jit_get_all_schemas()}


def torch_libraries():
    """Return the files that export torch's C interface for compiled code."""
    folder = os.path.join(os.path.dirname(os.path.realpath(torch.__file__)), "lib")
    return sorted(os.path.join(folder, name) for name in os.listdir(folder) if name.startswith("libtorch_"))


def programs(before):
    """Return what torch.export.load and the loader of packages read; what this release does not have is left out.

    Archives came with 2.8; before that an exported program was a zip of its own kind, which is read to this day.
    """
    reads = {"packages": hasattr(getattr(torch._C, "_aoti", None), "AOTIModelPackageLoader")}
    try:
        from torch._export.serde import schema, serialize
    except ImportError:  # of an older release
        return reads
    version = schema.SCHEMA_VERSION
    reads["schema"] = [version] if isinstance(version, int) else list(version)
    if isinstance(version, int):  # of 2.1, which reads what it has written
        return reads
    reads.update(parts(schema))
    reads["skips_fields"] = skips_fields(schema, serialize)
    reads["operators"] = sorted(operators_of_python() | named_operators(all_schemas() - before))
    reads["callables"] = sorted(callables(serialize))
    try:
        from torch.export.pt2_archive import constants
    except ImportError:
        return reads
    reads["archive"] = constants.ARCHIVE_VERSION_VALUE
    reads["weights_listed"] = hasattr(constants, "WEIGHTS_CONFIG_FILENAME_FORMAT")
    return reads


def parts(schema):
    """Return, by the name of a field, the fields, the alternatives and the numbers that its values may have."""
    fields, alternatives, numbers, seen = {}, {}, {}, set()
    waiting = [("", schema.ExportedProgram)]
    while waiting:
        name, kind = waiting.pop()
        kind = value_type(kind)
        if not isinstance(kind, type) or (name, kind) in seen:
            continue
        seen.add((name, kind))
        if issubclass(kind, enum.Enum):
            numbers.setdefault(name, set()).update(int(member.value) for member in kind)
        elif dataclasses.is_dataclass(kind):
            hints = typing.get_type_hints(kind, vars(schema))
            known = alternatives if issubclass(kind, schema._Union) else fields
            known.setdefault(name, set()).update(field.name for field in dataclasses.fields(kind))
            waiting.extend((field.name, hints[field.name]) for field in dataclasses.fields(kind))
    named = {"fields": fields, "alternatives": alternatives, "numbers": numbers}
    return {key: {name: sorted(known) for name, known in table.items()} for key, table in named.items()}


def value_type(kind):
    """Return the type of what a list, a mapping or an optional value holds; any other type as it is."""
    while True:
        inner = [part for part in typing.get_args(kind) if part is not type(None)]
        if not inner:
            return kind
        kind = inner[1] if typing.get_origin(kind) is dict else inner[0]


def skips_fields(schema, serialize):
    """Try it: since 2.9 a field that is not known is passed over."""
    try:
        serialize._dict_to_dataclass(schema.Device, {"type": "cpu", "index": None, "not_known": 1})
    except TypeError:
        return False
    return True


def operators_of_python():
    """Return those that the dispatcher does not know."""
    return {"higher_order.%s" % name for name in torch._ops._higher_order_ops}


def named_operators(schemas):
    """Return ``prims.add.default``, ... of schemas."""
    heads = [text.partition("(")[0].replace("::", ".") for text in schemas]
    return {head if "." in head.partition(".")[2] else head + ".default" for head in heads}


def callables(serialize):
    """Return the functions that are no operators and that a call in a program may name."""
    candidates = [("torch.", torch), ("_operator.", operator), ("math.", math)]
    names = [
        head + name
        for head, owner in candidates
        for name in dir(owner)
        if callable(getattr(owner, name)) and (owner is not torch or name.startswith("sym_"))
    ]
    resolve = serialize.GraphModuleDeserializer.deserialize_operator
    tables = ("_SYM_OPS", "_SYM_BOOL_OPS", "_SYM_FLOAT_OPS", "_SYM_INT_OPS")  # of 2.7, and of before
    known = set().union(*(getattr(serialize, table, ()) for table in tables))
    return {name for name in names if resolve(None, name) in known}


def is_known(name):
    """Ask the parser of this release for a type, alone and of something."""
    for text in (name, name + "[int]", name + "[int, str]"):
        try:
            torch.jit.CompilationUnit("def f(x: %s) -> int:\n  return 1\n" % text)
            return True
        except Exception:  # noqa: S112  the next way to write it
            continue
    return False
