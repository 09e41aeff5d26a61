"""A library tells its machine and the functions it takes and offers; what is damaged is one clear line."""

import random
import struct

import pytest

from harness.artifacts.archive.elf import read_library
from harness.artifacts.archive.limits import LIMITS, CannotRead, Limits
from tests.unit.builders.archives import BytesSource, library

LIBRARY = library(0x3E, taken=("aoti_torch_clone", "memcpy"), offered=("run",))


def test_a_library_tells_its_machine_what_it_takes_and_what_it_offers() -> None:
    found = read_library(BytesSource(LIBRARY), LIMITS)
    assert found is not None
    assert (found.machine, set(found.takes), set(found.offers)) == ("x86_64", {"aoti_torch_clone", "memcpy"}, {"run"})


def test_what_is_no_library_is_none() -> None:
    assert read_library(BytesSource(b"MZ"), LIMITS) is None
    assert read_library(BytesSource(b"\x7fELF"), LIMITS) is None


def test_one_of_another_byte_order_tells_its_machine_alone() -> None:
    found = read_library(BytesSource(b"\x7fELF\x02\x02" + bytes(12) + b"\x00\x16" + bytes(44)), LIMITS)
    assert found is not None
    assert (found.machine, found.takes) == ("s390x", frozenset())


def test_a_table_beyond_the_limit_is_not_read() -> None:
    with pytest.raises(CannotRead, match="a table of"):
        read_library(BytesSource(LIBRARY), Limits(symbol_bytes=8))


@pytest.mark.parametrize("at", [40, 58, 60])
def test_a_library_without_its_tables_is_damaged(at: int) -> None:
    broken = bytearray(LIBRARY)
    struct.pack_into("<H", broken, at, 0xFFFF)
    with pytest.raises(CannotRead, match="table"):
        read_library(BytesSource(bytes(broken)), LIMITS)


def test_mutilated_libraries_are_read_or_refused() -> None:
    draw, refused = random.Random(7), 0
    for _ in range(2000):
        broken = bytearray(LIBRARY)
        for _ in range(draw.randrange(1, 4)):
            broken[draw.randrange(len(broken))] = draw.randrange(256)
        try:
            read_library(BytesSource(bytes(broken[: draw.randrange(64, len(broken) + 1)])), LIMITS)
        except CannotRead as error:
            refused += 1
            assert error.kind in ("damaged", "too_large")
    assert 500 < refused < 2000
