"""Reads an exported program (.pt2) of torch.export, or a package of AOTInductor, into facts; weights are not read.

Its containers are those of torch/export/__init__.py before 2.8, a plain zip, and of torch/export/pt2_archive since.
"""

from collections.abc import Iterator, Sequence
from typing import Any

from harness.artifacts.archive.limits import CannotRead, Limits, Source
from harness.artifacts.archive.members import Directory, read_member
from harness.artifacts.archive.packages import read_package
from harness.artifacts.archive.plain_json import MOST_VALUES, read_json
from harness.core.archive import ArchiveProblem, ProgramContainer, ProgramFacts, SchemaUse

COMPILED = "aotinductor/"
"""Part of the names of what AOTInductor has compiled."""
OLDER, NEWER = "serialized_exported_program.json", "models/"
LOADED = "models/model.json"
"""Of several programs the one that ``torch.export.load`` returns; it reads all."""
WEIGHTS_LIST = "_weights_config.json"
TINY = 1024
MOST_USES = 10_000
"""Ways of using the schema that are kept: real programs have about two hundred."""
# Numbers of torch/_export/serde/schema.py.
DTYPES = {
    **dict(enumerate(("unknown", "uint8", "int8", "int16", "int32", "int64", "float16", "float32", "float64"))),
    **dict(enumerate(("complex32", "complex64", "complex128", "bool", "bfloat16"), start=9)),
    **dict(enumerate(("uint16", "float8_e4m3fn", "float8_e5m2", "float8_e4m3fnuz", "float8_e5m2fnuz"), start=28)),
    **dict(enumerate(("float8_e8m0fnu", "uint32", "uint64"), start=33)),
}
# Fields of the schema, by name: mappings whose keys are the program's own, and numbers that stand for something.
MAPPINGS = frozenset(
    (
        *("as_string_to_argument", "custom_obj_values", "metadata", "opset_version", "range_constraints"),
        *("sym_bool_values", "sym_float_values", "sym_int_values", "tensor_values", "treespec_namedtuple_fields"),
    )
)
NUMBERS = frozenset(("as_layout", "as_memory_format", "as_scalar_type", "dtype", "kind", "layout"))
OPERATOR = "torch.ops."
OF_PYTHON = "torch.ops.higher_order."


def is_compiled(directory: Directory) -> bool:
    """Whether a .pt2 holds what AOTInductor has compiled: torch loads it as a package then."""
    return any(COMPILED in f"{directory.root}/{name}" for name in directory.inside)


def read_program(
    source: Source, directory: Directory, limits: Limits
) -> tuple[ProgramFacts, tuple[ArchiveProblem, ...]]:
    """Return what a .pt2 holds, and what of it could not be understood."""
    inside = directory.inside

    def text(name: str) -> str:
        member = inside.get(name)
        return "" if member is None else read_member(source, member, TINY, limits).decode("ascii", "replace").strip()

    if is_compiled(directory):
        return read_package(source, directory, limits, text("archive_version"))
    older = OLDER in inside
    container = ProgramContainer.OLDER if older else ProgramContainer.ARCHIVE
    version = text("version" if older else "archive_version")
    first = OLDER if older else LOADED
    if first not in inside:
        problem = ArchiveProblem(kind="member_missing", text=f"{first} is not there: it holds no program")
        return ProgramFacts(container=container, archive_version=version), (problem,)
    others = [] if older else sorted(name for name in inside if name.startswith(NEWER) and name.endswith(".json"))
    names, left = list(dict.fromkeys((first, *others))), limits.program_bytes
    programs = []
    for name in names:
        data = read_member(source, inside[name], left, limits)
        left -= len(data)
        programs.append(read_json(name, data))
    listed = any(name.endswith(WEIGHTS_LIST) for name in inside)
    return _facts(programs, container, version, first, weights_listed=listed)


def _facts(
    programs: Sequence[Any], container: ProgramContainer, version: str, name: str, *, weights_listed: bool
) -> tuple[ProgramFacts, tuple[ArchiveProblem, ...]]:
    program = programs[0]
    schema = _schema(program)
    operators, callables, dtypes, of_one = set[str](), set[str](), set[str](), set[str]()
    used = _Used()
    for value in used.dicts(programs):
        target, dtype = value.get("target"), value.get("dtype")
        if isinstance(target, str):
            (operators if target.startswith(OPERATOR) else callables).add(target.removeprefix(OPERATOR))
            if target.startswith(OF_PYTHON) and _answers_one_list(value):
                of_one.add(target.removeprefix(OPERATOR))
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
            callables=tuple(sorted(callables)),
            dtypes=tuple(sorted(dtypes)),
            uses=used.in_order(),
            lists_of_one=tuple(sorted(of_one)),
            weights_listed=weights_listed,
        ),
        tuple(problems),
    )


def _answers_one_list(node: dict[str, Any]) -> bool:
    outputs = node.get("outputs")
    only = outputs[0] if isinstance(outputs, list) and len(outputs) == 1 else None
    return isinstance(only, dict) and "as_tensors" in only


def _schema(program: Any) -> tuple[int, ...]:
    version = program.get("schema_version") if isinstance(program, dict) else None
    if type(version) is int:  # of 2.1
        return (version,)
    numbers = [version.get(part) for part in ("major", "minor")] if isinstance(version, dict) else []
    return tuple(number for number in numbers if type(number) is int) if all(type(n) is int for n in numbers) else ()


class _Used:
    """Collects which parts of the schema are used."""

    def __init__(self) -> None:
        self._fields: set[tuple[str, str]] = set()
        self._alternatives: set[tuple[str, str]] = set()
        self._numbers: set[tuple[str, int]] = set()

    def dicts(self, programs: Sequence[Any]) -> Iterator[dict[str, Any]]:
        waiting, left = [("", program, False) for program in programs], MOST_VALUES
        while waiting:
            name, item, is_mapping = waiting.pop()
            left -= 1
            if left < 0:
                raise CannotRead("too_large", f"the program holds more than {MOST_VALUES} values")
            if isinstance(item, dict):
                yield item
                if not is_mapping:
                    self._keep(name, item)
                waiting.extend(
                    (name, value, False) if is_mapping else (key, value, key in MAPPINGS) for key, value in item.items()
                )
            elif isinstance(item, list):
                waiting.extend((name, value, False) for value in item)
            elif type(item) is int and name in NUMBERS:
                self._numbers.add((name, item))

    def _keep(self, name: str, item: dict[str, Any]) -> None:
        (self._alternatives if len(item) == 1 else self._fields).update((name, key) for key in item)
        if len(self._alternatives) + len(self._fields) + len(self._numbers) > MOST_USES:
            raise CannotRead("too_large", f"the program uses its schema in more than {MOST_USES} ways")

    def in_order(self) -> SchemaUse:
        return SchemaUse(
            fields=tuple(sorted(self._fields)),
            alternatives=tuple(sorted(self._alternatives)),
            numbers=tuple(sorted(self._numbers)),
        )
