"""Which cores a benchmark runs on."""

import os
import subprocess
import sys

import pytest

from harness.system.cores import Placement, choose, cores_in, pin, rank

PAIRS = {core: frozenset({core % 4, core % 4 + 4}) for core in range(8)}  # 0 and 4 are threads of one core, and so on


def test_quietest_core_comes_first() -> None:
    assert rank([0, 1, 2], {0: 0.1, 1: 0.0, 2: 0.05}, {}) == (1, 2, 0)


def test_one_thread_of_every_physical_core_comes_before_a_second_one() -> None:
    assert rank(range(8), {}, PAIRS) == (0, 1, 2, 3, 4, 5, 6, 7)


def test_core_whose_other_thread_is_busy_is_busy() -> None:
    ranked = rank(range(8), {4: 0.1, 2: 0.01}, PAIRS)
    assert ranked[:4] == (1, 3, 6, 0)  # 6 is the idle half of 2's core
    assert set(ranked[4:]) == {2, 4, 5, 7}


def test_core_that_may_not_be_used_is_not_chosen_and_still_counts() -> None:
    assert rank([0, 1], {5: 0.1}, PAIRS) == (0, 1)
    assert rank([0, 1], {4: 0.1}, PAIRS) == (1, 0)


@pytest.mark.parametrize(
    ("text", "cores"), [("0", {0}), ("0-2,8\n", {0, 1, 2, 8}), ("0,4", {0, 4}), ("", set()), ("1-1", {1})]
)
def test_kernel_list_is_read(text: str, cores: set[int]) -> None:
    assert cores_in(text) == cores


def test_one_core_of_those_that_may_be_used_is_chosen() -> None:
    allowed = os.sched_getaffinity(0)
    placement = choose(1, quiet_s=0.0)
    assert placement.why_not == ""
    assert len(placement.cores) == 1
    assert set(placement.ranked) == allowed
    assert placement.first(1) == placement.cores
    assert set(placement.first(1000)) == allowed
    assert os.sched_getaffinity(0) == allowed


def test_nothing_is_pinned_where_cores_are_missing() -> None:
    allowed = len(os.sched_getaffinity(0))
    placement = choose(allowed + 1, quiet_s=0.0)
    assert placement == Placement(why_not=f"{allowed + 1} cores are wanted and {allowed} may be used")
    assert placement.first(1) == ()


def test_nothing_is_pinned_where_the_platform_refuses(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> None:
        raise PermissionError(1, "Operation not permitted")

    monkeypatch.setattr(os, "sched_setaffinity", refuse)
    assert choose(1, quiet_s=0.0).why_not == "this platform cannot: [Errno 1] Operation not permitted"
    monkeypatch.delattr(os, "sched_getaffinity")
    assert "this platform cannot" in choose(1, quiet_s=0.0).why_not


def test_process_is_pinned_or_it_is_said_why_not() -> None:
    core = min(os.sched_getaffinity(0))
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as child:
        assert pin(child.pid, [core]) == ""
        assert os.sched_getaffinity(child.pid) == {core}
        assert "Invalid argument" in pin(child.pid, [4095])
        assert os.sched_getaffinity(child.pid) == {core}
    assert "No such process" in pin(child.pid, [core])
