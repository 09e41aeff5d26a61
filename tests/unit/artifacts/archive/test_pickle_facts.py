"""The opcode walker: it tells what a pickle names, and never does what it asks for."""

import collections
import os
import pickle
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, strategies as st

from harness.artifacts.archive.limits import LIMITS, CannotRead
from harness.artifacts.archive.pickle_facts import Built, Global, PickledMapping, read_pickle


class Attack:
    def __init__(self, path: Path) -> None:
        self.path = path

    def __reduce__(self) -> tuple[Any, ...]:
        return os.mkdir, (str(self.path),)


@pytest.mark.parametrize("protocol", range(6))
def test_nothing_is_called(tmp_path: Path, protocol: int) -> None:
    found = read_pickle(pickle.dumps(Attack(tmp_path / "gone"), protocol), LIMITS)
    assert found.root.what in (Global("posix.mkdir"), Global("os.mkdir"))
    assert not (tmp_path / "gone").exists()


@pytest.mark.parametrize("protocol", range(6))
def test_plain_values_come_back(protocol: int) -> None:
    value: list[Any] = [1, -1, 70000, 1 << 70, 1.5, True, None, (1,), (1, 2), (1, 2, 3), (1, 2, 3, 4), [], {"k": [2]}]
    found = read_pickle(pickle.dumps(value, protocol), LIMITS).root
    assert isinstance(found[-1], PickledMapping)
    assert list(map(str, found[:5])) == list(map(str, value[:5]))
    if protocol > 1:
        assert found[5:-1] == value[5:-1]
        assert found[-1].items == [("k", [2])]


def test_an_ordered_dict_keeps_entries_and_state_apart() -> None:
    value = collections.OrderedDict(a=1)
    value.note = "x"  # type: ignore[attr-defined]
    found = read_pickle(pickle.dumps(value, 2), LIMITS).root
    assert isinstance(found, Built)
    assert (found.entries, found.state.items) == ([("a", 1)], [("note", "x")])


def test_shared_values_are_shared() -> None:
    inner: list[int] = [1]
    found = read_pickle(pickle.dumps([inner, inner], 2), LIMITS).root
    assert found[0] is found[1]


@pytest.mark.parametrize(
    "data", [b"", b"\x80\x02", b"\x80\x02.", b"\x80\x09N.", b"\xffN.", b"h\x00.", b"u.", b"Nb.", b"(("]
)
def test_nonsense_is_damage(data: bytes) -> None:
    with pytest.raises(CannotRead):
        read_pickle(data, LIMITS)


def test_a_length_beyond_the_data_costs_nothing() -> None:
    with pytest.raises(CannotRead):
        read_pickle(b"\x8e" + b"\xff" * 8 + b".", LIMITS)


def test_steps_are_limited() -> None:
    with pytest.raises(CannotRead, match="more than 10 steps"):
        read_pickle(b"N0" * 100 + b"N.", replace(LIMITS, pickle_steps=10))


def test_a_million_nested_lists_are_no_recursion() -> None:
    assert read_pickle(b"]" * 200_000 + b"a" * 199_999 + b".", LIMITS).used == 400_000


@given(st.binary(max_size=300))
def test_any_bytes_are_read_or_refused(data: bytes) -> None:
    try:
        read_pickle(b"\x80\x02" + data + b".", LIMITS)
    except CannotRead:
        pass


@given(st.binary(max_size=8), st.integers(0, 400), st.integers(0, 8))
def test_damaged_pickles_are_read_or_refused(piece: bytes, at: int, cut: int) -> None:
    whole = pickle.dumps({"a": [1, 2.5, "text", (None, True)], "b": collections.OrderedDict(x=[b"bytes"])}, 2)
    at %= len(whole)
    try:
        read_pickle(whole[:at] + piece + whole[at + cut :], LIMITS)
    except CannotRead:
        pass
