"""Shares of the wall."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.apps.upgrade.report.make import category_of
from harness.apps.upgrade.report.time_shares import CategorySpan, time_shares
from harness.core.probe import Span
from harness.worker import wire

S = 1_000_000_000
SPANS = st.lists(
    st.tuples(st.sampled_from("abc"), st.integers(-50, 150), st.integers(0, 100)).map(
        lambda parts: (parts[0], parts[1], parts[1] + parts[2])
    ),
    max_size=12,
)


def test_time_without_spans_is_the_harness() -> None:
    assert time_shares([], 0, 2 * S) == {"harness": 2.0}


def test_span_takes_its_time_and_the_harness_the_rest() -> None:
    assert time_shares([("load", S, 3 * S)], 0, 4 * S) == {"harness": 2.0, "load": 2.0}


def test_overlap_is_split_equally() -> None:
    assert time_shares([("load", 0, 2 * S), ("call", S, 3 * S)], 0, 3 * S) == {"call": 1.5, "load": 1.5}


def test_two_spans_of_one_category_count_twice() -> None:
    spans = [("load", 0, 3 * S), ("load", 0, 3 * S), ("call", 0, 3 * S)]
    assert time_shares(spans, 0, 3 * S) == {"call": 1.0, "load": 2.0}


def test_spans_are_clipped_to_the_wall() -> None:
    assert time_shares([("a", -5 * S, S), ("b", S, 9 * S), ("c", 9 * S, 10 * S)], 0, 2 * S) == {"a": 1.0, "b": 1.0}


def test_spans_that_touch_do_not_share() -> None:
    assert time_shares([("a", 0, S), ("b", S, 2 * S)], 0, 2 * S) == {"a": 1.0, "b": 1.0}


def test_wall_and_spans_of_no_length_have_no_share() -> None:
    assert time_shares([("a", 0, S)], 5, 5) == {}
    assert time_shares([("a", S, S)], 0, 2 * S) == {"harness": 2.0}


def test_harness_spans_join_the_idle_time() -> None:
    assert time_shares([("harness", 0, S)], 0, 2 * S) == {"harness": 2.0}


@pytest.mark.parametrize(("spans", "end_ns"), [([("a", 2, 1)], 10), ([], -1)])
def test_backward_time_is_refused(spans: list[CategorySpan], end_ns: int) -> None:
    with pytest.raises(ValueError, match="ends before it begins"):
        time_shares(spans, 0, end_ns)


@given(spans=SPANS)
def test_shares_sum_to_the_wall(spans: list[CategorySpan]) -> None:
    assert math.fsum(time_shares(spans, 0, 100).values()) == pytest.approx(100e-9)


@given(spans=SPANS)
def test_shares_match_a_nanosecond_by_nanosecond_account(spans: list[CategorySpan]) -> None:
    account: dict[str, float] = {}
    for instant in range(100):
        active = [category for category, begin, end in spans if begin <= instant < end] or ["harness"]
        for category in active:
            account[category] = account.get(category, 0.0) + 1e-9 / len(active)
    assert time_shares(spans, 0, 100) == pytest.approx(account)


@pytest.mark.parametrize(
    ("phase", "call", "side", "migrates", "booked"),
    [
        (wire.CALL, 0, "new", False, "first calls"),
        (wire.CALL, 1, "old", False, "first calls"),
        (wire.CALL, 2, "new", False, "calls"),
        (wire.CALL, 2, "old", False, "golden"),
        (wire.CALL, None, "new", False, "calls"),  # of a probe of an older harness
        (wire.LOAD, None, "new", False, "load"),
        (wire.COMPILE, None, "new", False, "compile"),
        (wire.COMPILE, None, "new", True, "compile"),
        (wire.CONVERT, None, "new", True, "migrate"),
        (wire.CALL, 0, "new", True, "migrate"),
        (wire.BARRIER, None, "new", False, ""),
    ],
)
def test_what_compiles_is_neither_the_load_nor_the_calls_of_a_model(
    phase: str, call: int | None, side: str, migrates: bool, booked: str
) -> None:
    assert category_of(Span(phase=phase, begin_ns=0, end_ns=S, call=call), side, migrates=migrates) == booked
