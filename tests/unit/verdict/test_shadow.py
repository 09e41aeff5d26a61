"""Rows and decision of a server in two releases: each planted fact is judged, and its healthy twin is not."""

from dataclasses import replace

import pytest

from harness.core.outcome import Decision, Status
from harness.core.shadow import Build, Compared, Ended, Life, Quantity, Reason, Shadow, Stop
from harness.verdict.exit_codes import exit_code
from tests.unit.builders.shadows import DIFFERENCE, DIFFERS, HANGS, LIFE, SAME, STOP, judged


def with_new(*lives: Life, old: tuple[Life, ...] = ()) -> Shadow:
    before = replace(SAME.old, lives=old) if old else SAME.old
    return judged(replace(SAME, old=before, new=replace(SAME.new, lives=lives)))


def row(shadow: Shadow, quantity: Quantity) -> tuple[str, Reason]:
    return next((each.status, each.reason) for each in shadow.rows if each.quantity is quantity)


def stopped(**more: object) -> Life:
    return replace(LIFE, stop=replace(STOP, **more))  # type: ignore[arg-type]


def test_a_server_that_does_the_same_is_green() -> None:
    assert {each.status for each in SAME.rows} == {Status.PASS}
    assert (SAME.decision, exit_code(SAME)) == (Decision.UPGRADE_OK, 0)


def test_one_torch_on_both_sides_is_never_green() -> None:
    assert exit_code(judged(replace(SAME, same=True))) == 4


def test_answers_that_differ_and_a_hang_block() -> None:
    assert (row(DIFFERS, Quantity.ANSWERS), exit_code(DIFFERS)) == ((Status.FAIL, Reason.DIFFERS), 1)
    assert (row(HANGS, Quantity.ANSWERS), exit_code(HANGS)) == ((Status.FAIL, Reason.HANGS), 1)


@pytest.mark.parametrize(
    ("compared", "status"),
    [
        (Compared(requests=9, differences=(replace(DIFFERENCE, unstable=True),)), Status.INCONCLUSIVE),
        (Compared(requests=9, differences=(replace(DIFFERENCE, kind="header"),)), Status.PASS),
        (Compared(requests=9, not_ok=9), Status.INCONCLUSIVE),
        (Compared(requests=9, not_ok=8), Status.PASS),
    ],
)
def test_what_says_nothing_of_the_release_does_not_block(compared: Compared, status: Status) -> None:
    assert row(judged(replace(SAME, answers=compared)), Quantity.ANSWERS)[0] == status


def test_without_requests_nothing_is_known_of_answers() -> None:
    assert exit_code(judged(replace(SAME, requests=0, answers=Compared()))) == 4


@pytest.mark.parametrize(
    ("ended", "old_s", "expected"),
    [
        (Ended.ITSELF, 2.0, (Status.FAIL, Reason.FAILS)),
        (Ended.MEMORY, 2.0, (Status.FAIL, Reason.FAILS)),
        (Ended.HANG, 2.0, (Status.FAIL, Reason.HANGS)),
        (Ended.LATE, 2.0, (Status.FAIL, Reason.LATE)),
        (Ended.LATE, 60.0, (Status.INCONCLUSIVE, Reason.LATE)),  # of a deadline of 120 s
    ],
)
def test_a_server_that_does_not_get_ready(ended: Ended, old_s: float, expected: tuple[Status, Reason]) -> None:
    never = with_new(replace(LIFE, ready_s=None, ended=ended), old=(replace(LIFE, ready_s=old_s),))
    assert [(each.status, each.reason) for each in never.rows] == [expected]
    again = with_new(LIFE, replace(LIFE, ready_s=None, ended=ended), old=(LIFE, replace(LIFE, ready_s=old_s)))
    assert row(again, Quantity.RESTART) == expected


def test_where_the_old_server_fails_nobody_can_tell() -> None:
    failed = replace(LIFE, ready_s=None, ended=Ended.ITSELF)
    assert exit_code(with_new(LIFE, old=(failed,))) == 4
    assert exit_code(with_new(LIFE, old=(replace(LIFE, ended=Ended.HANG),))) == 4


def test_a_build_that_fails_is_red_only_where_the_old_one_does_not() -> None:
    done, failed = Build(code=0, seconds=1.0), Build(code=1, seconds=1.0)

    def built(old: Build, new: Build | None) -> int:
        return exit_code(judged(replace(SAME, old=replace(SAME.old, build=old), new=replace(SAME.new, build=new))))

    assert [built(done, done), built(done, failed), built(failed, None)] == [0, 1, 4]


@pytest.mark.parametrize(
    ("seconds", "limits", "status", "named"),
    [
        ((2.9, 3.4), {}, Status.PASS, False),
        ((3.7, 9.0), {}, Status.PASS, True),  # a limit of ours names it
        ((3.7, 9.0), {"ready": 1.5}, Status.FAIL, False),  # one that was written blocks
        ((2.2, 9.0), {"ready": 1.5}, Status.PASS, False),  # not every life
    ],
)
def test_time_until_ready(
    seconds: tuple[float, float], limits: dict[str, float], status: Status, *, named: bool
) -> None:
    lives = tuple(replace(LIFE, ready_s=each) for each in seconds)
    slow = judged(replace(SAME, settings=replace(SAME.settings, limits=limits), new=replace(SAME.new, lives=lives)))
    found = next(each for each in slow.rows if each.quantity is Quantity.READY_TIME)
    assert (found.status, found.named) == (status, named)


@pytest.mark.parametrize(
    ("growth", "status"),
    [
        ((1e6, 1e6, 1e6, 1e6), Status.FAIL),
        ((1e6, 0.0, 1e6, 1e6), Status.PASS),  # a cache that is filled, not a leak
        ((9e3, 9e3, 9e3, 9e3), Status.PASS),
        ((), Status.UNSUPPORTED),
    ],
)
def test_memory_that_grows_in_every_part_is_a_leak(growth: tuple[float, ...], status: Status) -> None:
    first = replace(LIFE, growth=growth)
    assert row(with_new(first, LIFE), Quantity.GROWTH)[0] == status
    assert row(with_new(first, LIFE, old=(first, LIFE)), Quantity.GROWTH)[0] != Status.FAIL


@pytest.mark.parametrize(
    ("lost", "status"),
    [((5, 3), Status.FAIL), ((2, 3), Status.INCONCLUSIVE), ((5, 0), Status.PASS), ((0, 0), Status.PASS)],
)
def test_requests_in_flight_that_are_lost(lost: tuple[int, int], status: Status) -> None:
    dropping = tuple(stopped(dropped=each) for each in lost)
    assert row(with_new(*dropping), Quantity.STOP)[0] == status
    assert row(with_new(*dropping, old=(stopped(dropped=5), LIFE)), Quantity.STOP)[0] == Status.PASS


def test_a_stop_with_nothing_in_flight_says_nothing_of_requests() -> None:
    empty = stopped(in_flight=0, answered=0)
    idle = with_new(empty, empty)
    assert Quantity.STOP not in {each.quantity for each in idle.rows}


@pytest.mark.parametrize("stop", [{"code": None}, {"code": -11}, {"code": 1}, {"code": 0, "left": 1}])
def test_a_worse_end_of_every_life_blocks(stop: dict[str, object]) -> None:
    worse = stopped(**stop)
    assert row(with_new(worse, worse), Quantity.EXIT)[0] == Status.FAIL
    assert row(with_new(worse, LIFE), Quantity.EXIT)[0] == Status.INCONCLUSIVE
    assert row(with_new(worse, worse, old=(worse, worse)), Quantity.EXIT)[0] == Status.PASS
    assert isinstance(worse.stop, Stop)
