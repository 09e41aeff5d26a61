"""Reads an exported program (.pt2) of torch.export, or a package of AOTInductor, into facts; weights are not read.

Its containers are those of torch/export/__init__.py before 2.8, a plain zip, and of torch/export/pt2_archive since.
"""

import json
from collections.abc import Iterator
from typing import Any

from harness.archive.limits import CannotRead, Limits, Source
from harness.archive.members import Directory, read_member
from harness.archive.packages import read_package
from harness.domain.archive import ArchiveProblem, ProgramContainer, ProgramFacts

COMPILED = "aotinductor/"
"""Part of the names of what AOTInductor has compiled."""
OLDER, NEWER = "serialized_exported_program.json", "models/"
TINY = 1024
MOST_VALUES = 4_000_000
"""Of a program's JSON: a million nodes."""
# Numbers of torch/_export/serde/schema.py.
DTYPES = {
    **dict(enumerate(("unknown", "uint8", "int8", "int16", "int32", "int64", "float16", "float32", "float64"))),
    **dict(enumerate(("complex32", "complex64", "complex128", "bool", "bfloat16"), start=9)),
    28: "uint16",
    29: "float8_e4m3fn",
    30: "float8_e5m2",
    31: "float8_e4m3fnuz",
    32: "float8_e5m2fnuz",
}


def is_compiled(directory: Directory) -> bool:
    """Whether a .pt2 holds what AOTInductor has compiled: torch loads it as a package then."""
    return any(COMPILED in f"{directory.root}/{name}" for name in directory.inside)


def read_program(
    source: Source, directory: Directory, limits: Limits
) -> tuple[ProgramFacts, tuple[ArchiveProblem, ...]]:
    """Return what a .pt2 holds, and what of it could not be understood.

    Raises:
        CannotRead: a member is damaged or beyond a limit, or what should be JSON is none.
    """
    inside = directory.inside

    def text(name: str) -> str:
        member = inside.get(name)
        return "" if member is None else read_member(source, member, TINY, limits).decode("ascii", "replace").strip()

    if is_compiled(directory):
        return read_package(source, directory, limits, text("archive_version")), ()
    models = [name for name in inside if name == OLDER or (name.startswith(NEWER) and name.endswith(".json"))]
    older = OLDER in inside
    container = ProgramContainer.OLDER if older else ProgramContainer.ARCHIVE
    version = text("version" if older else "archive_version")
    if not models:
        problem = ArchiveProblem(kind="member_missing", text="models/*.json is not there: it holds no program")
        return ProgramFacts(container=container, archive_version=version), (problem,)
    name = OLDER if older else min(models)
    data = read_member(source, inside[name], limits.program_bytes, limits)
    try:
        program = json.loads(data)
    except (ValueError, RecursionError) as error:
        raise CannotRead("damaged", f"{name!r} is no JSON: {error}") from None
    return _facts(program, container, version, name)


def _facts(
    program: Any, container: ProgramContainer, version: str, name: str
) -> tuple[ProgramFacts, tuple[ArchiveProblem, ...]]:
    schema = _schema(program)
    operators: set[str] = set()
    dtypes: set[str] = set()
    for value in _dicts(program):
        target, dtype = value.get("target"), value.get("dtype")
        if isinstance(target, str) and target.startswith("torch.ops."):
            operators.add(target.removeprefix("torch.ops."))
        if type(dtype) is int and "sizes" in value:
            dtypes.add(DTYPES.get(dtype, f"dtype {dtype}"))
    torch = program.get("torch_version") if isinstance(program, dict) else None
    problems = []
    if not schema:
        problems.append(ArchiveProblem(kind="version_unreadable", text=f"{name} does not say its schema version"))
    return (
        ProgramFacts(
            container=container,
            archive_version=version,
            schema=schema,
            torch=torch if isinstance(torch, str) else "",
            operators=tuple(sorted(operators)),
            dtypes=tuple(sorted(dtypes)),
        ),
        tuple(problems),
    )


def _schema(program: Any) -> tuple[int, ...]:
    found = program.get("schema_version") if isinstance(program, dict) else None
    if type(found) is int:  # of 2.1
        return (found,)
    numbers = [found.get(part) for part in ("major", "minor")] if isinstance(found, dict) else []
    return tuple(number for number in numbers if type(number) is int) if all(type(n) is int for n in numbers) else ()


def _dicts(value: Any) -> Iterator[dict[str, Any]]:
    """Yield every dict in a value of JSON.

    Raises:
        CannotRead: it holds too many values.
    """
    waiting, left = [value], MOST_VALUES
    while waiting:
        item = waiting.pop()
        left -= 1
        if left < 0:
            raise CannotRead("too_large", f"the program holds more than {MOST_VALUES} values")
        if isinstance(item, dict):
            yield item
            waiting.extend(item.values())
        elif isinstance(item, list):
            waiting.extend(item)
