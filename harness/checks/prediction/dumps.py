"""What a release says it accepts, and the registry of operators that is made of that."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Generic, TypeVar

from harness.artifacts.archive.limits import CannotRead
from harness.artifacts.archive.schemas import parse_schema
from harness.core.archive import OperatorRegistry, Programs, Schema, Upgrader
from harness.core.errors import InternalError

T = TypeVar("T")


@dataclass(frozen=True, kw_only=True)
class Dump:
    """``registry.json`` as the worker writes it: schemas are text."""

    torch: str
    operator_version: int
    schemas: list[str]
    upgraders: list[tuple[str, int, str]]
    custom_classes: list[str]
    dtypes: list[str]
    type_names: list[str]
    packed_dtypes: list[str] = field(default_factory=list)
    library_operators: list[str] = field(default_factory=list)
    programs: Programs = field(default_factory=Programs)
    torch_libraries: list[str] = field(default_factory=list)


def parsed(dump: Dump) -> OperatorRegistry:
    """Return a dump with its schemas, each operator's parsed when it is asked for: a file uses dozens of thousands."""
    return OperatorRegistry(
        torch=dump.torch,
        operator_version=dump.operator_version,
        schemas=Overloads(dump.torch, ((text, lambda schema: schema) for text in dump.schemas)),
        upgraders=Overloads(
            dump.torch,
            ((text, partial(Upgrader, upgrader, version)) for upgrader, version, text in dump.upgraders),
        ),
        custom_classes=frozenset(dump.custom_classes),
        dtypes=frozenset(dump.dtypes),
        packed_dtypes=frozenset(dump.packed_dtypes),
        type_names=frozenset(dump.type_names),
        library_operators=frozenset(dump.library_operators),
        programs=dump.programs,
    )


class Overloads(Mapping[str, tuple[T, ...]], Generic[T]):
    """``"aten::add"`` -> its overloads, made of their schemas when they are asked for.

    Args:
        texts: (schema as torch prints it, makes the value of the parsed one).

    Raises:
        InternalError: torch prints a schema in a way that is not known here; it must not be left out silently.
    """

    def __init__(self, torch: str, texts: Iterable[tuple[str, Callable[[Schema], T]]]) -> None:
        self._torch = torch
        self._texts: dict[str, list[tuple[str, Callable[[Schema], T]]]] = {}
        self._parsed: dict[str, tuple[T, ...]] = {}
        for text, made in texts:
            name = text.partition("(")[0].partition(".")[0]
            self._texts.setdefault(name, []).append((text, made))

    def __getitem__(self, name: str) -> tuple[T, ...]:
        if name not in self._parsed:
            try:
                self._parsed[name] = tuple(made(parse_schema(text)[1]) for text, made in self._texts[name])
            except CannotRead as error:
                raise InternalError(f"torch {self._torch}: {error.text}") from error
        return self._parsed[name]

    def __contains__(self, name: object) -> bool:
        return name in self._texts

    def __iter__(self) -> Iterator[str]:
        return iter(self._texts)

    def __len__(self) -> int:
        return len(self._texts)
