"""Did loading overlap, when was the process ready, does its memory grow?"""

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.core.probe import Span
from harness.checks.startup.measures import growth_bytes, overlap, wall_s
from tests.unit.builders.tensors import near


def span(
    begin: int, end: int, cpu: int | None = None, phase: str = "load", *, thread: int = 0, finished: bool = True
) -> Span:
    """Return a phase that was on the CPU all the time unless told otherwise."""
    spent = end - begin if cpu is None else cpu
    return Span(phase=phase, begin_ns=begin, end_ns=end, thread=thread, finished=finished, cpu_ns=spent)


# overlap


def test_threads_that_work_at_the_same_time_overlap() -> None:
    assert overlap([span(0, 10), span(0, 10, thread=1)], "load") == near(2.0)


def test_threads_that_queue_for_a_lock_do_not_overlap_however_long_their_spans() -> None:
    assert overlap([span(0, 20, 10), span(0, 20, 10, thread=1)], "load") == near(1.0)


def test_threads_one_after_another_do_not_overlap() -> None:
    assert overlap([span(0, 10), span(10, 20, thread=1)], "load") == near(1.0)


def test_time_in_which_nobody_loads_does_not_count() -> None:
    assert overlap([span(0, 10), span(1000, 1010)], "load") == near(1.0)


@pytest.mark.parametrize(
    ("spans", "covered"),
    [
        ([(0, 10), (5, 15)], 15),
        ([(5, 15), (0, 10)], 15),
        ([(0, 100), (10, 20), (90, 110)], 110),
        ([(0, 10), (20, 30), (25, 40)], 30),
        ([(7, 9), (7, 9), (7, 9)], 2),
    ],
)
def test_wall_time_is_the_union_of_the_spans(spans: list[tuple[int, int]], covered: int) -> None:
    assert overlap([span(begin, end, 60) for begin, end in spans], "load") == near(60 * len(spans) / covered)


def test_other_phases_and_those_without_an_end_do_not_count() -> None:
    others = [span(0, 50, phase="call"), span(0, 50, 0, finished=False)]
    assert overlap([span(0, 10), *others], "load") == near(1.0)


@pytest.mark.parametrize("spans", [[], [span(3, 3)], [span(0, 9, finished=False)], [span(0, 9, phase="call")]])
def test_phase_that_took_no_time_has_no_overlap(spans: list[Span]) -> None:
    assert overlap(spans, "load") is None


PIECES = st.lists(st.tuples(st.integers(0, 1000), st.integers(1, 100)), min_size=1, max_size=8)


@given(pieces=PIECES, seed=st.integers(0, 9))
def test_overlap_of_busy_threads_is_between_one_and_their_number_in_any_order(
    pieces: list[tuple[int, int]], seed: int
) -> None:
    spans = [span(begin, begin + length, thread=index) for index, (begin, length) in enumerate(pieces)]
    found = overlap(spans, "load")
    assert found is not None
    assert 1.0 <= found <= len(pieces) + 1e-9
    random.Random(seed).shuffle(spans)
    assert overlap(spans, "load") == found


# wall_s


def test_initialization_lasts_from_the_first_load_to_the_last_call() -> None:
    spans = [span(2_000_000_000, 3_000_000_000), span(4_000_000_000, 5_500_000_000, phase="call")]
    spans.append(span(0, 9_000_000_000, phase="import"))
    assert wall_s(spans, ("load", "call")) == near(3.5)
    assert wall_s(reversed(spans), ("load", "call")) == near(3.5)
    assert wall_s(spans, ("capture",)) is None


# growth_bytes


def test_growth_is_the_slope_after_the_first_cycle() -> None:
    assert growth_bytes([500, 1000, 1100, 1200, 1300]) == near(100.0)
    assert growth_bytes([0, 1000, 1000, 1000]) == near(0.0)
    assert growth_bytes([5000, 1000, 900, 800]) == near(-100.0)


def test_one_jump_is_less_than_steady_growth() -> None:
    jump, steady = growth_bytes([0, 100, 100, 100, 200]), growth_bytes([0, 100, 200, 300, 400])
    assert jump is not None
    assert steady is not None
    assert 0 < jump < steady


@pytest.mark.parametrize("readings", [[], [1], [1, 2]])
def test_two_further_cycles_are_needed(readings: list[int]) -> None:
    assert growth_bytes(readings) is None
    assert growth_bytes([1, 2, 3]) == near(1.0)


@given(
    first=st.integers(0, 10**9),
    start=st.integers(0, 10**10),
    step=st.integers(-(10**6), 10**6),
    cycles=st.integers(2, 20),
)
def test_steady_growth_is_found_exactly_whatever_the_first_cycle_did(
    first: int, start: int, step: int, cycles: int
) -> None:
    readings = [first, *(start + step * index for index in range(cycles))]
    assert growth_bytes(readings) == pytest.approx(step, abs=1e-3)
