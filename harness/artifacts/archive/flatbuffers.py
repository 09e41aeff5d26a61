"""Reads a mobile flatbuffer: the code that ``torch.jit.load`` compiles of it, and what its values are. No weights.

Fields are in the order of torch's schema (``torch/csrc/jit/serialization/mobile_bytecode.fbs``), which has only grown.
"""

from collections.abc import Iterator
from dataclasses import dataclass

from harness.artifacts.archive.limits import CannotRead, Limits, Source

OFFSET = 4
# Fields of Module.
STATE, IVALUES, STORAGES, TYPES, SOURCES, OPERATOR_VERSION = 3, 4, 6, 7, 8, 10
# Kinds of IValue.
TENSOR, OBJECT, ENUM = 5, 10, 15
# c10::ScalarType, by number (c10/core/ScalarType.h).
SCALARS = (
    *("uint8", "int8", "int16", "int32", "int64", "float16", "float32", "float64", "complex32", "complex64"),
    *("complex128", "bool", "qint8", "quint8", "qint32", "bfloat16", "quint4x2", "quint2x4", "bits1x8", "bits2x4"),
    *("bits4x2", "bits8", "bits16", "float8_e5m2", "float8_e4m3fn", "float8_e5m2fnuz", "float8_e4m3fnuz", "uint16"),
    *("uint32", "uint64", *(f"uint{bits}" for bits in range(1, 8)), *(f"int{bits}" for bits in range(1, 8))),
    *("float8_e8m0fnu", "float4_e2m1fn_x2"),
)


@dataclass(frozen=True, kw_only=True, slots=True)
class MobileModule:
    """What a mobile flatbuffer holds.

    Attributes:
        sources: qualifier -> text of each file of code, as an archive has it.
        classes: names of the classes that values are of; ``root``: of the module's own.
        storages: dtype and bytes of each storage that a tensor refers to.
        has_enums: whether a value is one of an enum.
    """

    sources: dict[str, bytes]
    classes: tuple[str, ...]
    root: str
    storages: tuple[tuple[str, int], ...]
    has_enums: bool
    operator_version: int


def read_flatbuffer(source: Source, limits: Limits) -> MobileModule:
    """Return what a mobile flatbuffer holds. Raises ``CannotRead``: it is cut off or damaged, or beyond a limit."""
    buffer = _Buffer(source)
    module = buffer.follow(0)
    classes = tuple(
        buffer.text(table, 0, limits.code_bytes).decode("utf-8", "replace") for table in buffer.tables(module, TYPES)
    )
    sizes = [buffer.vector(table, 0)[1] for table in buffer.tables(module, STORAGES)]
    sources, left = {}, limits.total_code_bytes
    for table in buffer.tables(module, SOURCES):
        content = buffer.text(table, 1, min(left, limits.code_bytes))
        left -= len(content)
        sources[buffer.text(table, 0, limits.code_bytes).decode("utf-8", "replace")] = content
    dtypes: dict[int, str] = {}
    enums, root, state = False, "", buffer.number(module, STATE, 4)
    for index, table in enumerate(buffer.tables(module, IVALUES)):
        if index > limits.pickle_steps:
            raise CannotRead("too_large", f"more than {limits.pickle_steps} values")
        kind = buffer.number(table, 0, 1)
        if kind == TENSOR:
            tensor = buffer.follow(buffer.field(table, 1))
            scalar = buffer.number(tensor, 1, 1)
            dtypes[buffer.number(tensor, 0, 4)] = SCALARS[scalar] if scalar < len(SCALARS) else f"ScalarType {scalar}"
        elif kind == OBJECT and index == state:
            of = buffer.number(buffer.follow(buffer.field(table, 1)), 0, 4)
            root = classes[of] if of < len(classes) else ""
        enums = enums or kind == ENUM
    if dtypes and max(dtypes) >= len(sizes):
        raise CannotRead("damaged", "a tensor refers to a storage that is not there")
    return MobileModule(
        sources=sources,
        classes=classes,
        root=root,
        storages=tuple((dtypes[index], sizes[index]) for index in sorted(dtypes)),
        has_enums=enums,
        operator_version=buffer.number(module, OPERATOR_VERSION, 4),
    )


class _Buffer:
    """Finds the fields of tables; whatever lies beyond the file ends the reading."""

    def __init__(self, source: Source) -> None:
        self._source = source

    def _read(self, at: int, length: int) -> bytes:
        data = self._source.read(at, length) if 0 <= at <= self._source.size - length else b""
        if len(data) < length:
            raise CannotRead("damaged", "a mobile flatbuffer that ends before what it refers to: truncated?")
        return data

    def _integer(self, at: int, width: int, *, signed: bool = False) -> int:
        return int.from_bytes(self._read(at, width), "little", signed=signed)

    def follow(self, at: int) -> int:
        return at + self._integer(at, OFFSET)

    def field(self, table: int, index: int) -> int:
        """Return where a field of a table lies. Raises ``CannotRead``: the table has none."""
        at = self._place(table, index)
        if not at:
            raise CannotRead("damaged", "a mobile flatbuffer without a value that torch writes")
        return at

    def _place(self, table: int, index: int) -> int:
        vtable = table - self._integer(table, OFFSET, signed=True)
        at = OFFSET + 2 * index
        offset = self._integer(vtable + at, 2) if at < self._integer(vtable, 2) else 0
        return table + offset if offset else 0

    def number(self, table: int, index: int, width: int) -> int:
        """Return a whole number >= 0 of a table; 0 where it is left out."""
        at = self._place(table, index)
        return self._integer(at, width) if at else 0

    def vector(self, table: int, index: int) -> tuple[int, int]:
        at = self._place(table, index)
        if not at:
            return 0, 0
        begin = self.follow(at)
        length = self._integer(begin, OFFSET)
        if length:
            self._read(begin + OFFSET + length - 1, 1)
        return begin + OFFSET, length

    def text(self, table: int, index: int, limit: int) -> bytes:
        begin, length = self.vector(table, index)
        if length > limit:
            raise CannotRead("too_large", f"a text of {length} bytes; at most {limit} are read")
        return self._read(begin, length)

    def tables(self, table: int, index: int) -> Iterator[int]:
        begin, length = self.vector(table, index)
        for at in range(begin, begin + OFFSET * length, OFFSET):
            yield self.follow(at)
