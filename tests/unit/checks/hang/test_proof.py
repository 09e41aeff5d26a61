"""Every rule of the proof, over snapshots made by hand; real processes are in test_watchdog."""

from collections.abc import Callable
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.core.hang import HangKind
from harness.core.probe import Deadline
from harness.checks.hang import waits
from harness.checks.hang.activity import LEAST_COUNTED, PRESSURE_SHARE, ChildSample, ThreadSample
from harness.checks.hang.proof import BLOCKED_AFTER_S, RETRIES_AFTER_S, SLOW_CAP, Proven
from tests.unit.builders.looks import S, Film, Sample, opened, steadily, still, thread

TWO = opened("load", 11, thread=0, model="a"), opened("call", 12, thread=1, model="b")
BRIEF = Deadline(load_s=2.0, call_s=1.0, total_s=30.0)


BEGIN_S = 1.0
LATER = tuple(replace(phase, begin_ns=int(BEGIN_S * S)) for phase in TWO)
NOT_INSIDE = [*sorted(waits.OUTSIDE - {waits.DISK}), waits.EVENT]


def since(begin_s: float) -> Callable[[float], float]:
    """Return the last progress, at any second, of a process that is silent from a moment on."""
    return lambda second: min(second, begin_s)


def kind(found: tuple[float, Proven] | None) -> HangKind | None:
    return None if found is None else found[1].proof.kind


def blamed(found: tuple[float, Proven] | None) -> list[str]:
    assert found is not None
    return [phase.model for phase in found[1].blamed]


# Blocked.


def test_threads_that_stand_at_locks_are_blocked_within_five_seconds() -> None:
    found = Film([still(10), still(11), still(12)], TWO).run(60)
    assert found is not None
    assert BLOCKED_AFTER_S <= found[0] <= 3.5
    assert (kind(found), blamed(found)) == (HangKind.BLOCKED, ["a", "b"])


def test_proof_shows_threads_at_work_in_order_then_the_main_thread() -> None:
    found = Film([still(10), still(12), still(11), still(13)], TWO).run(60)
    assert found is not None
    proof = found[1].proof
    shown = [(one.tid, one.thread, one.model, one.phase, one.waits_for, one.state) for one in proof.threads]
    assert shown == [
        (11, 0, "a", "load", "a lock", "S"),
        (12, 1, "b", "call", "a lock", "S"),
        (10, None, "", "", "a lock", "S"),
    ]
    assert proof.silent_s == pytest.approx(found[0])
    assert 2.0 <= proof.window_s <= 2.6
    assert proof.note == ""


def test_silence_counts_from_the_last_event() -> None:
    found = Film([still(11)], [opened()], progress=lambda second: min(second, 10.0)).run(60)
    assert found is not None
    assert 13.0 <= found[0] <= 13.5


@pytest.mark.parametrize("pressure", [0.0, 0.3, 0.7, 1.0])
def test_silence_while_others_want_the_cpus_counts_less_and_that_is_said(pressure: float) -> None:
    found = Film([still(11)], [opened()], pressure=pressure).run(60)
    assert found is not None
    counted = 1 - PRESSURE_SHARE * pressure
    assert found[0] == pytest.approx(BLOCKED_AFTER_S / counted, abs=0.5)
    assert found[1].proof.stalled_s == pytest.approx((1 - counted) * found[0], abs=0.3)


@pytest.mark.parametrize("late_s", [0.3, 0.35])
def test_silence_counts_less_where_looks_come_late(late_s: float) -> None:
    found = Film([still(11)], [opened()]).run(60, step_s=late_s)
    assert found is not None
    assert kind(found) is HangKind.BLOCKED
    assert 5.0 < found[0] <= BLOCKED_AFTER_S / LEAST_COUNTED + 1.0


def test_silence_counts_less_while_threads_or_children_wait_for_a_cpu() -> None:
    waiter = steadily(11, cpu=0.004, queued=0.5, runs=200, waits_for=waits.TIMED_LOCK)
    beside = Film([still(11)], [opened()], children=lambda s: (ChildSample(pid=9, run_delay_ns=int(0.5 * s * S)),))
    for film in (Film([waiter], [opened()]), beside):
        found = film.run(60)
        assert found is not None
        assert 5.0 < found[0] < 7.0


@pytest.mark.parametrize("pressure", [None, 1.0])
def test_retries_on_a_crowded_machine_are_blocked_later(pressure: float | None) -> None:
    waiter = steadily(11, cpu=0.004, runs=1, waits_for=waits.TIMED_LOCK)
    found = Film([waiter], [opened()], pressure=pressure).run(60)
    assert found is not None
    assert found[0] == pytest.approx(10.0 if pressure is None else 20.0, abs=0.6)


def test_thread_that_has_been_freed_and_waits_for_its_turn_is_not_blocked() -> None:
    """It stands for long, then what it waited for is there, and nobody gives it a CPU."""

    def freed(second: float) -> ThreadSample:
        return thread(11, state="R" if second > 2.9 else "S", waits_for="" if second > 2.9 else "a lock")

    assert Film([freed], [opened()]).run(3.7) is None


def test_who_waits_may_be_about_to_find_that_a_helper_has_ended() -> None:
    """As a pool does that ends with its work: the helper is gone, and whoever joins it has yet to wake up."""
    film = Film(
        [still(11), steadily(13, waits_for="a pipe", started_ns=int(1.5 * S))], LATER[:1], progress=since(BEGIN_S)
    )
    film.leaves[13] = 4.5
    assert film.run(6.8) is None
    assert kind(film.run(60)) is HangKind.BLOCKED


@pytest.mark.parametrize("idle_s", [0.4, 0.7, 1.0])
def test_helper_of_an_old_pool_that_ran_now_and_then_and_waits_since_does_not_tick(idle_s: float) -> None:
    """It has run at even intervals by chance: for what it was made, and when the phase asked it to wait outside."""

    def helper(second: float) -> ThreadSample:
        return thread(13, runs=5 + (second > BEGIN_S - idle_s) + (second > BEGIN_S), waits_for="a timer")

    assert Film([still(11), helper], LATER[:1], progress=since(BEGIN_S)).run(59) is None


@pytest.mark.parametrize("pressure", [None, 1.0])
def test_listener_that_wakes_at_times_receives_nothing_however_long_the_window_is(pressure: float | None) -> None:
    listener = steadily(13, cpu=0.001, runs=0.67, waits_for="the network")
    found = Film([still(11), listener], LATER[:1], progress=since(BEGIN_S), pressure=pressure).run(60)
    assert found is not None
    assert found[0] < 9.0


def test_events_now_and_then_are_no_silence() -> None:
    assert Film([still(11)], [opened()], progress=lambda second: second - second % 2.9).run(55) is None


@pytest.mark.parametrize("words", sorted(waits.INSIDE - {waits.TIMED_LOCK}))
def test_wait_that_only_the_process_itself_can_end_is_standing(words: str) -> None:
    assert kind(Film([steadily(11, waits_for=words)], [opened()]).run(5)) is HangKind.BLOCKED


@pytest.mark.parametrize("words", [*sorted(waits.OUTSIDE), waits.EVENT, ""])
def test_wait_that_others_may_end_is_not_blocked_before_the_deadline(words: str) -> None:
    assert Film([steadily(11, waits_for=words), still(12)], TWO).run(59) is None


def test_one_look_at_a_timer_within_the_window_disproves_it() -> None:
    def mostly(second: float) -> ThreadSample:
        return thread(11, waits_for="a timer" if int(second) % 2 else "a lock")

    assert Film([mostly], [opened()]).run(59) is None


def test_thread_that_polls_a_lock_is_blocked() -> None:
    waiter = steadily(11, cpu=0.004, runs=200, waits_for=waits.TIMED_LOCK)
    assert kind(Film([waiter], [opened()]).run(5)) is HangKind.BLOCKED


def test_thread_that_polls_a_lock_on_a_loaded_machine_is_blocked() -> None:
    def waiter(second: float) -> ThreadSample:
        awake = int(second * 5) % 3 == 0
        sample = steadily(11, cpu=0.004, queued=0.4, runs=100, waits_for=waits.TIMED_LOCK)(second)
        return replace(sample, state="R", waits_for="") if awake else sample

    assert kind(Film([waiter], [opened()]).run(5)) is HangKind.BLOCKED


@pytest.mark.parametrize("runs", [20, 200])
def test_thread_that_polls_without_a_pause_is_blocked_within_five_seconds(runs: int) -> None:
    found = Film([steadily(11, cpu=0.004, runs=runs, waits_for=waits.TIMED_LOCK)], [opened()]).run(5)
    assert kind(found) is HangKind.BLOCKED


@pytest.mark.parametrize("runs", [0.8, 1, 2, 10])
def test_thread_that_retries_is_blocked_only_after_more_of_them(runs: float) -> None:
    found = Film([steadily(11, cpu=0.004, runs=runs, waits_for=waits.TIMED_LOCK)], [opened()]).run(30)
    assert found is not None
    assert kind(found) is HangKind.BLOCKED
    assert RETRIES_AFTER_S <= found[0] <= RETRIES_AFTER_S + 0.5


def test_few_retries_with_a_long_limit_prove_nothing() -> None:
    assert Film([steadily(11, runs=0.3, waits_for=waits.TIMED_LOCK)], [opened()]).run(59) is None


def test_thread_that_retries_while_a_child_process_lives_may_wait_for_that() -> None:
    """Also when the child has just ended, and the next retry is still to come."""

    def children(second: float) -> tuple[ChildSample, ...]:
        return (ChildSample(pid=99, state="S" if second < 20 else "Z"),)

    retries = steadily(11, runs=1, waits_for=waits.TIMED_LOCK)
    assert Film([retries], [opened()], children=children).run(28) is None


def test_thread_that_retries_while_a_helper_waits_outside_may_wait_for_that() -> None:
    helper = steadily(13, waits_for="a timer", started_ns=int(1.5 * S))
    retries = steadily(11, runs=1, waits_for=waits.TIMED_LOCK)
    assert Film([retries, helper], LATER[:1], progress=since(BEGIN_S)).run(59) is None


def test_thread_that_retries_may_still_find_that_a_helper_has_ended() -> None:
    helpers = [steadily(13, waits_for="a timer", started_ns=int(1.5 * S))]
    film = Film([steadily(11, runs=1, waits_for=waits.TIMED_LOCK), *helpers], LATER[:1], progress=since(BEGIN_S))
    film.leaves[13] = 20.0
    found = film.run(59)
    assert found is not None
    assert found[0] >= 28.9


def test_thread_that_looks_now_and_then_past_its_deadline_is_blocked_unless_a_helper_waits_outside() -> None:
    retries, helper = steadily(11, runs=1, waits_for=waits.TIMED_LOCK), steadily(13, waits_for="the network")
    assert kind(Film([retries], [opened()], deadline=BRIEF).run(5)) is HangKind.BLOCKED
    assert kind(Film([retries, helper], [opened()], deadline=BRIEF).run(5)) is HangKind.OVERDUE


def test_single_wait_with_a_limit_ends_by_itself() -> None:
    assert Film([steadily(11, waits_for=waits.TIMED_LOCK)], [opened()]).run(59) is None


def test_polls_that_nobody_counts_prove_nothing() -> None:
    waiter = steadily(11, cpu=0.004, waits_for=waits.TIMED_LOCK, runs_unknown=True)
    assert Film([waiter], [opened()]).run(59) is None


@pytest.mark.parametrize(
    "other",
    [
        pytest.param(steadily(12, cpu=0.05), id="works a little"),
        pytest.param(steadily(12, cpu=1.0, state="R", waits_for=""), id="works"),
        pytest.param(steadily(12, queued=0.2), id="waits for a CPU"),
        pytest.param(steadily(12, state="R", waits_for=""), id="has waited for a CPU all the time"),
        pytest.param(steadily(12, state="D", waits_for="disk"), id="waits in the kernel"),
        pytest.param(steadily(12, cpu=0.001, runs=5, waits_for="the network"), id="receives"),
    ],
)
@pytest.mark.parametrize("phases", [TWO[:1], TWO], ids=["helper", "at work"])
def test_one_thread_that_may_go_on_may_free_the_others(other: Sample, phases: tuple[object, ...]) -> None:
    assert Film([still(11), other], phases).run(59) is None  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "helper",
    [
        pytest.param(still(13), id="pool"),
        pytest.param(steadily(13, cpu=0.001, runs=50, waits_for="a timer"), id="timer"),
        pytest.param(steadily(13, cpu=0.001, runs=10, waits_for="a device driver"), id="driver"),
        pytest.param(steadily(13, cpu=0.001, runs=0.67, waits_for="the network"), id="listens again and again"),
        pytest.param(steadily(13, cpu=0.001, runs=1, waits_for=waits.TIMED_LOCK), id="looks for work"),
        pytest.param(steadily(13, cpu=0.004, queued=0.4, runs=200, waits_for=waits.TIMED_LOCK), id="global lock"),
        *[pytest.param(steadily(13, waits_for=words), id=f"waits for {words}") for words in NOT_INSIDE],
    ],
)
def test_helper_that_was_idle_before_does_not_hide_a_deadlock(helper: Sample) -> None:
    found = Film([still(10), still(11), still(12), helper], LATER, progress=since(BEGIN_S)).run(BEGIN_S + 5)
    assert (kind(found), blamed(found)) == (HangKind.BLOCKED, ["a", "b"])


@pytest.mark.parametrize("words", NOT_INSIDE)
def test_helper_that_waits_outside_since_it_was_woken_in_a_phase_may_work_for_it(words: str) -> None:
    def helper(second: float) -> ThreadSample:
        return thread(13, runs=5 if second <= BEGIN_S else 6, waits_for=words)

    assert Film([still(11), helper], LATER[:1], progress=since(BEGIN_S)).run(59) is None


@pytest.mark.parametrize("words", [*NOT_INSIDE, waits.TIMED_LOCK])
def test_helper_started_in_a_phase_that_waits_outside_may_work_for_it(words: str) -> None:
    helper = steadily(13, waits_for=words, started_ns=int(1.5 * S))
    assert Film([still(11), helper], LATER[:1], progress=since(BEGIN_S)).run(59) is None


def test_helper_begun_in_the_same_tick_as_the_phase_may_work_for_it() -> None:
    helper = steadily(13, runs=50, waits_for="a timer", started_ns=int(BEGIN_S * S) - 1)
    assert Film([still(11), helper], LATER[:1], progress=since(BEGIN_S)).run(59) is None


def test_helper_that_nobody_has_seen_before_the_phase_may_work_for_it() -> None:
    assert Film([still(11), steadily(13, waits_for="the network")], [opened()]).run(59) is None


def test_helper_idle_before_the_last_phase_only_may_work_for_the_first() -> None:
    def helper(second: float) -> ThreadSample:
        return thread(13, runs=5 if second <= 3.0 else 6, waits_for="the network")

    phases = LATER[0], opened("call", 12, thread=1, model="b", begin_s=8.0)
    assert Film([still(11), still(12), helper], phases, progress=since(8.0)).run(59) is None


@pytest.mark.parametrize("period_s", [0.05, 0.5, 1.5])
def test_helper_that_ticks_only_since_it_was_woken_in_a_phase_may_work_for_it(period_s: float) -> None:
    """As ``subprocess`` does when it waits with a limit."""

    def helper(second: float) -> ThreadSample:
        return thread(13, runs=5 + max(0, 1 + int((second - 4.0) / period_s)) * (second > 4.0), waits_for="a timer")

    phase = opened("load", 11, begin_s=3.9)
    assert Film([still(11), helper], [phase], progress=since(3.9)).run(40) is None


@pytest.mark.parametrize("name", ["cuda-EvtHandlr", "cuda00001400006"])
def test_thread_that_the_driver_has_started_in_a_phase_is_idle(name: str) -> None:
    helper = steadily(13, name=name, waits_for="a device driver", started_ns=int(1.5 * S))
    assert blamed(Film([still(11), helper], LATER[:1], progress=since(BEGIN_S)).run(BEGIN_S + 5)) == ["a"]


@pytest.mark.parametrize("words", ["a device driver", "an event"])
def test_thread_without_a_name_that_polls_the_driver_since_the_phase_is_idle(words: str) -> None:
    helper = steadily(13, cpu=0.001, runs=10, waits_for=words, started_ns=int(1.5 * S))
    assert blamed(Film([still(11), helper], LATER[:1], progress=since(BEGIN_S)).run(BEGIN_S + 5)) == ["a"]


def test_helper_whose_runs_nobody_counts_may_work_for_a_phase() -> None:
    helper = steadily(13, waits_for="a timer", runs_unknown=True)
    assert Film([still(11), helper], LATER[:1], progress=since(BEGIN_S)).run(59) is None


def test_idle_helpers_that_use_a_cpu_together_are_not_idle() -> None:
    helpers = [steadily(tid, cpu=0.015, waits_for="a timer") for tid in range(20, 26)]
    assert Film([still(11), *helpers], [opened()]).run(59) is None


def test_bytes_that_move_are_no_standstill() -> None:
    assert Film([still(11)], [opened()], io_bytes=lambda second: int(second * 1e5)).run(59) is None


def test_few_bytes_of_a_helper_do_not_matter() -> None:
    assert kind(Film([still(11)], [opened()], io_bytes=lambda second: int(second * 100)).run(5)) is HangKind.BLOCKED


def test_unknown_bytes_do_not_matter_and_are_named() -> None:
    found = Film([still(11)], [opened()], io_bytes=lambda _: None, notes=frozenset({"no counts"})).run(5)
    assert found is not None
    assert (kind(found), found[1].proof.note, found[1].proof.io_bytes) == (HangKind.BLOCKED, "no counts", 0)


def test_idle_child_process_does_not_matter() -> None:
    film = Film([still(11)], [opened()], children=lambda _: (ChildSample(pid=99),))
    assert kind(film.run(5)) is HangKind.BLOCKED


@pytest.mark.parametrize("change", ["cpu", "queue", "disk", "bytes", "successors"])
def test_child_process_at_work_may_free_the_threads(change: str) -> None:
    def children(second: float) -> tuple[ChildSample, ...]:
        ns = int(second * S)
        match change:
            case "cpu":
                return (ChildSample(pid=99, cpu_ns=ns // 10),)
            case "queue":
                return (ChildSample(pid=99, state="R"),)
            case "disk":
                return (ChildSample(pid=99, state="D"),)
            case "bytes":
                return (ChildSample(pid=99, io_bytes=ns // 1000),)
            case _:
                return (ChildSample(pid=99 + int(second)),)

    assert Film([still(11)], [opened()], children=children).run(59) is None


def test_phase_of_a_thread_that_has_ended_never_ends() -> None:
    assert blamed(Film([still(10), still(11)], TWO).run(5)) == ["a", "b"]


def test_thread_that_the_worker_did_not_name_proves_nothing_early() -> None:
    found = Film([still(10), still(11)], [opened(tid=0)], deadline=BRIEF).run(20)
    assert found is not None
    assert found[0] == pytest.approx(1.0)
    assert kind(found) is HangKind.OVERDUE
    assert "did not say" in found[1].proof.note


def test_wait_at_a_barrier_is_not_what_is_blamed() -> None:
    found = Film([still(11), still(12)], [opened(), opened("barrier", 12, thread=1, model="")]).run(5)
    assert blamed(found) == ["m"]


def test_all_at_a_barrier_and_nobody_to_come_is_blocked_outside_of_every_phase() -> None:
    found = Film([still(10), still(11)], [opened("barrier", model="")]).run(5)
    assert (kind(found), blamed(found)) == (HangKind.BLOCKED, [])


@pytest.mark.parametrize("phases", [(), (opened("barrier", model=""),)], ids=["no phase", "barrier"])
def test_without_a_phase_at_work_every_thread_must_stand(phases: tuple[object, ...]) -> None:
    threads = [still(10), still(11), steadily(12, waits_for="a timer")]
    assert Film(threads, phases).run(59) is None  # type: ignore[arg-type]


def test_no_phase_and_all_still_is_blocked() -> None:
    assert blamed(Film([still(10), still(11)], []).run(5)) == []


def test_patience_is_doubled_for_a_process_that_went_on() -> None:
    film = Film([still(11)], [opened()])
    film.history.patience = 2.0
    found = film.run(20)
    assert found is not None
    assert 6.0 <= found[0] <= 6.5


# Serving beside it.

SERVER = opened("serve", 11, thread=0, model="server")
LOADER = opened("load", 12, thread=1, model="loader")
SERVES = steadily(11, cpu=0.9, state="R", waits_for="", io_bytes=0)


def serving(*threads: Sample, until: float = 1e9, **more: object) -> Film:
    return Film(threads, [SERVER, LOADER], beats=lambda second: {0: min(second, until)}, **more)  # type: ignore[arg-type]


def test_serving_thread_that_beats_neither_hides_a_deadlock_nor_is_blamed() -> None:
    assert blamed(serving(SERVES, still(12)).run(5)) == ["loader"]


def test_events_that_a_serving_thread_writes_are_no_data_of_others() -> None:
    def serves(second: float) -> ThreadSample:
        return replace(SERVES(second), io_bytes=int(second * 1e5))

    assert blamed(serving(serves, still(12), io_bytes=lambda second: int(second * 1e5)).run(5)) == ["loader"]


def test_lock_that_changes_hands_beside_a_serving_thread_is_no_deadlock() -> None:
    assert serving(SERVES, steadily(12, cpu=0.001, runs=3)).run(59) is None


def test_serving_thread_that_no_longer_beats_is_blocked_like_any_other() -> None:
    assert blamed(serving(still(11), still(12), until=1.0).run(6)) == ["server", "loader"]


def test_serving_thread_in_a_long_call_may_free_the_others() -> None:
    assert serving(SERVES, still(12), until=1.0).run(59) is None


def test_only_serving_is_no_hang_of_anybody() -> None:
    film = Film([SERVES, still(10)], [SERVER], beats=lambda second: {0: second})
    assert film.run(200) is None


def test_deadline_of_a_serving_thread_counts_from_its_last_beat() -> None:
    found = Film([SERVES], [SERVER], beats=lambda second: {0: min(second, 20.0)}, deadline=BRIEF).run(30)
    assert found is not None
    assert found[0] == pytest.approx(21.0, abs=0.21)
    assert kind(found) is HangKind.BUSY


# Deadlines.


def test_call_and_load_have_deadlines_of_their_own() -> None:
    busy = steadily(11, cpu=1.0, state="R", waits_for="")
    call = Film([busy], [opened("call")], deadline=BRIEF).run(20)
    load = Film([busy], [opened("load")], deadline=BRIEF).run(20)
    assert call is not None
    assert load is not None
    assert [call[0], load[0]] == pytest.approx([1.0, 2.0])
    assert (kind(call), kind(load)) == (HangKind.BUSY, HangKind.BUSY)
    assert [call[1].proof.own_s, load[1].proof.own_s] == pytest.approx([1.0, 2.0])


def test_deadline_of_a_planted_is_met() -> None:
    busy = steadily(11, cpu=1.0, state="R", waits_for="")
    found = Film([busy], [opened()], deadline=Deadline(load_s=0.7, call_s=0.7, total_s=2.8)).run(3)
    assert found is not None
    assert found[0] == pytest.approx(0.8)
    assert kind(found) is HangKind.BUSY


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        ("a lock", HangKind.BLOCKED),
        ("a lock, with a time limit", HangKind.BLOCKED),
        ("an event", HangKind.BLOCKED),
        ("", HangKind.BLOCKED),
        ("a timer", HangKind.OVERDUE),
        ("the network", HangKind.OVERDUE),
        ("another process", HangKind.OVERDUE),
    ],
)
def test_kind_past_a_deadline_follows_what_it_waits_for(words: str, expected: HangKind) -> None:
    assert kind(Film([steadily(11, waits_for=words)], [opened()], deadline=BRIEF).run(2)) is expected


def test_work_of_a_helper_is_work_of_the_phase_that_waits_for_it() -> None:
    helper = steadily(13, cpu=0.9, state="R", waits_for="")
    assert kind(Film([still(11), helper], [opened()], deadline=BRIEF).run(2)) is HangKind.BUSY


def test_work_of_a_child_process_is_work_of_the_phase_that_waits_for_it() -> None:
    film = Film(
        [steadily(11, waits_for="another process")],
        [opened()],
        deadline=BRIEF,
        children=lambda second: (ChildSample(pid=99, name="cc1plus", state="R", cpu_ns=int(second * S)),),
    )
    found = film.run(3)
    assert found is not None
    assert kind(found) is HangKind.BUSY
    assert [one.name for one in found[1].proof.threads] == ["", "cc1plus (child process)"]


def test_only_the_late_phase_is_blamed() -> None:
    busy = [steadily(tid, cpu=1.0, state="R", waits_for="") for tid in (11, 12)]
    phases = opened("call", 11, model="late"), opened("load", 12, thread=1, model="in time")
    assert blamed(Film(busy, phases, deadline=BRIEF).run(20)) == ["late"]


def test_late_phase_is_slow_while_events_of_others_come_and_hangs_at_the_cap() -> None:
    found = Film([steadily(11, cpu=1, state="R", waits_for="")], [opened()], deadline=BRIEF, progress=lambda s: s).run(
        9
    )
    assert found is not None
    assert found[0] == pytest.approx(SLOW_CAP * BRIEF.call_s)


LOADING = Deadline(load_s=60, call_s=1, total_s=240, load_cpu_s=3)


@pytest.mark.parametrize(
    ("phase", "cpu", "hangs_s"), [("load", 1.0, 3.2), ("load", 0.5, 6.2), ("load", 0.04, 60.0), ("record", 1.0, 60.0)]
)
def test_load_hangs_once_it_has_computed_for_its_limit_and_waits_for_disks_count_in_full(
    phase: str, cpu: float, hangs_s: float
) -> None:
    film = Film([steadily(11, cpu=cpu, state="D", waits_for="")], [opened(phase)], deadline=LOADING)
    found = film.run(61)
    assert found is not None
    assert found[0] == pytest.approx(hangs_s, abs=0.21)


def test_load_that_computes_is_slow_while_events_of_others_come_and_hangs_at_the_cap() -> None:
    busy = steadily(11, cpu=1, state="R", waits_for="")
    found = Film([busy], [opened("load")], deadline=LOADING, progress=lambda second: second).run(60)
    assert found is not None
    assert found[0] == pytest.approx(SLOW_CAP * 3, abs=0.21)


def test_late_phase_hangs_after_a_deadline_of_silence() -> None:
    busy = steadily(11, cpu=1, state="R", waits_for="")
    found = Film([busy], [opened()], deadline=BRIEF, progress=lambda second: min(second, 1.6)).run(9)
    assert found is not None
    assert found[0] == pytest.approx(2.6, abs=0.21)


def test_waiting_at_the_barrier_is_nobodys_hang() -> None:
    assert Film([steadily(11, waits_for="a timer")], [opened("barrier")], deadline=BRIEF).run(29) is None


def test_spent_total_blames_every_open_phase_but_barriers_and_servers() -> None:
    phases = *TWO, opened("barrier", 13, thread=2, model=""), opened("serve", 14, thread=3, model="server")
    threads = [steadily(tid, cpu=0.1) for tid in (11, 12, 13, 14)]
    short = Deadline(load_s=60, call_s=60, total_s=5)
    film = Film(threads, phases, deadline=short, progress=lambda second: second, beats=lambda second: {3: second})
    found = film.run(20)
    assert found is not None
    assert found[0] == pytest.approx(5.0)
    assert (kind(found), blamed(found)) == (HangKind.OVERDUE, ["a", "b"])


def test_process_that_cannot_be_checked_ends_with_its_deadlines_all_the_same() -> None:
    film = Film([], [], deadline=BRIEF)
    film.history.add = lambda *_: None  # type: ignore[method-assign]
    found = film.run(40)
    assert found is not None
    assert found[0] == pytest.approx(30.0)
    assert (kind(found), blamed(found)) == (HangKind.OVERDUE, [])
    assert "could not be looked at" in found[1].proof.note


# Starved.


def test_time_in_which_others_had_the_cpu_does_not_count() -> None:
    starving = steadily(11, cpu=0.2, queued=0.8, state="R", runs=100, waits_for="")
    found = Film([starving], [opened()], deadline=BRIEF).run(20)
    assert found is not None
    assert found[0] == pytest.approx(5.0, abs=1.1)  # a fifth of it is its own: five times the deadline of 1 s
    assert found[1].proof.own_s == pytest.approx(1.0, abs=0.21)
    assert kind(found) is HangKind.BUSY


def test_process_that_gets_hardly_any_cpu_until_the_total_is_spent_is_starved() -> None:
    starving = steadily(11, cpu=0.05, queued=0.95, state="R", runs=100, waits_for="")
    short = Deadline(load_s=1, call_s=1, total_s=10)
    found = Film([starving], [opened()], deadline=short).run(20)
    assert found is not None
    assert found[0] == pytest.approx(10.0)
    assert kind(found) is HangKind.STARVED


@pytest.mark.parametrize(("total_s", "expected"), [(2.8, HangKind.STARVED), (60.0, HangKind.BUSY)])
def test_hang_is_distinguished_from_a_busy_machine_if_the_total_leaves_time_for_it(
    total_s: float, expected: HangKind
) -> None:
    """As for a planted defect with a deadline of 0.7 s."""
    starving = steadily(11, cpu=0.1, queued=0.9, state="R", runs=100, waits_for="")
    found = Film([starving], [opened()], deadline=Deadline(load_s=0.7, call_s=0.7, total_s=total_s)).run(60)
    assert kind(found) is expected


def test_thread_that_never_gets_a_cpu_is_starved_though_the_kernel_has_not_counted_its_wait_yet() -> None:
    waiting = steadily(11, state="R", waits_for="")
    short = Deadline(load_s=1, call_s=1, total_s=10)
    assert kind(Film([waiting], [opened()], deadline=short).run(20)) is HangKind.STARVED


def test_who_waits_for_a_starved_thread_is_not_late_either() -> None:
    starving = steadily(12, cpu=0.05, queued=0.95, state="R", runs=100, waits_for="")
    assert Film([still(11), starving], TWO, deadline=BRIEF).run(15) is None


def test_threads_that_keep_each_other_waiting_are_not_starved() -> None:
    threads = [steadily(tid, cpu=0.1, queued=0.9, state="R", runs=100, waits_for="") for tid in range(11, 31)]
    phases = [opened(tid=tid, thread=tid) for tid in range(11, 31)]
    found = Film(threads, phases, deadline=BRIEF).run(29)
    assert found is not None
    assert found[0] < 1.5
    assert kind(found) is HangKind.BUSY


def test_time_in_which_the_watcher_was_suspended_does_not_count() -> None:
    film = Film([steadily(11, waits_for="a timer")], [opened()], deadline=Deadline(load_s=5, call_s=5, total_s=1000))
    assert film.run(20, step_s=10) is None


# No alarm without a reason.

SHARES = st.floats(0.0, 1.0)


@given(cpu=st.floats(0.03, 1.0), seconds=st.floats(3.0, 50.0))
def test_thread_that_works_is_never_called_blocked(cpu: float, seconds: float) -> None:
    film = Film([steadily(11, cpu=cpu, runs=10), still(12)], TWO)
    assert film.run(seconds) is None


@given(gaps=st.lists(st.floats(0.05, 2.9), min_size=1, max_size=20))
def test_events_at_any_intervals_below_the_limit_raise_no_alarm(gaps: list[float]) -> None:
    times = [0.0]
    for gap in gaps:
        times.append(times[-1] + gap)
    film = Film([still(11)], [opened()], progress=lambda second: max(at for at in times if at <= second))
    assert film.run(times[-1] + 2.9) is None


@given(
    words=st.lists(st.sampled_from([*sorted(waits.INSIDE), *sorted(waits.OUTSIDE), ""]), min_size=3, max_size=3),
    cpu=SHARES,
    queued=SHARES,
)
def test_verdict_never_raises_and_never_comes_before_its_time(words: list[str], cpu: float, queued: float) -> None:
    threads = [steadily(11 + at, cpu=cpu, queued=queued, waits_for=word) for at, word in enumerate(words)]
    found = Film(threads, TWO, deadline=Deadline(load_s=10, call_s=10, total_s=20)).run(25)
    assert found is not None
    assert found[0] >= BLOCKED_AFTER_S
    if found[0] < 10:
        assert kind(found) is HangKind.BLOCKED
        assert set(words[:2]) <= waits.INSIDE
