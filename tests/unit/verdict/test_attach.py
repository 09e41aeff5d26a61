"""What a running process comes to, by facts as they were seen."""

from dataclasses import replace

import pytest

from harness.checks.hang import waits
from harness.checks.hang.stack_words import Wait
from harness.core.attach import Attached, Attachment, Lock, LockKind, ProcessState, ThreadFacts, Traffic, Why
from harness.core.hang import Frame, ThreadStack
from harness.verdict.attach import hung, judged, worst_first

LISTENER = ThreadFacts(tid=1, waits=frozenset({waits.NETWORK}), runs=0)
IDLE = ThreadFacts(tid=2, waits=frozenset({waits.LOCK}), runs=0)


def process(*threads: ThreadFacts, **facts: object) -> Attached:
    base = Attached(
        pid=1, command="server", age_s=60, window_s=2.0, cpus=4, threads=threads, traffic=Traffic(ports=(80,)),
        total_on_cpu=sum(thread.on_cpu for thread in threads), io_bytes=0,
    )  # fmt: skip
    return replace(base, **facts)  # type: ignore[arg-type]


def said(*threads: ThreadFacts, **facts: object) -> tuple[ProcessState, Why]:
    answer = judged(process(*threads, **facts))
    return answer.state, answer.why


def held(tid: int, owner: int, *, lives: bool = True) -> ThreadFacts:
    lock = Lock(kind=LockKind.MUTEX, address=16, owner=owner, lives=lives)
    return ThreadFacts(tid=tid, waits=frozenset({waits.LOCK}), runs=0, lock=lock)


def in_a_call(tid: int, *, moved: bool = False) -> ThreadFacts:
    stack = ThreadStack(tid=tid, frames=(Frame(function="torch::jit::InterpreterState::run"),), moved=moved)
    return ThreadFacts(tid=tid, waits=frozenset({waits.LOCK}), runs=0, stack=stack, phase="call")


def test_a_server_that_waits_for_requests_is_idle_whatever_its_pools_wait_for() -> None:
    assert said(LISTENER, IDLE, replace(IDLE, tid=3)) == (ProcessState.IDLE, Why.LISTENS)
    polling = replace(IDLE, tid=3, waits=frozenset({waits.TIMED_LOCK}), runs=4)
    assert said(LISTENER, IDLE, polling) == (ProcessState.IDLE, Why.LISTENS)
    http2 = Traffic(ports=(80,), connections=3, maybe=3)
    assert said(LISTENER, IDLE, traffic=http2) == (ProcessState.IDLE, Why.LISTENS)
    assert said(LISTENER, IDLE, traffic=None) == (ProcessState.IDLE, Why.LISTENS)


def test_locks_in_a_circle_are_blocked_although_another_thread_listens() -> None:
    assert said(LISTENER, held(5, 6), held(6, 5)) == (ProcessState.BLOCKED, Why.CYCLE)
    moving = Traffic(ports=(80,), moved_bytes=5_000)
    assert said(LISTENER, held(5, 6), held(6, 5), traffic=moving) == (ProcessState.BLOCKED, Why.CYCLE)


def test_a_thread_that_waits_for_itself_is_a_circle() -> None:
    answer = judged(process(LISTENER, held(5, 5)))
    assert (answer.why, answer.culprits) == (Why.CYCLE, (5,))


def test_a_holder_that_has_ended_never_lets_go() -> None:
    assert said(LISTENER, held(5, 99, lives=False)) == (ProcessState.BLOCKED, Why.OWNER_ENDED)


def test_a_holder_decides_what_those_behind_it_wait_for() -> None:
    waiting = replace(IDLE, tid=6)
    assert said(LISTENER, held(5, 6), waiting) == (ProcessState.BLOCKED, Why.OWNER_WAITS)
    assert judged(process(LISTENER, held(5, 6), waiting)).culprits == (5, 6)
    computing = ThreadFacts(tid=6, on_cpu=1.0, sleeps=0)
    assert said(LISTENER, held(5, 6), computing) == (ProcessState.BUSY, Why.COMPUTES)
    disk = ThreadFacts(tid=6, waits=frozenset({waits.DISK}), in_disk=1.0, state="D")
    assert said(LISTENER, held(5, 6), disk) == (ProcessState.DISK, Why.UNINTERRUPTIBLE)
    asked = Traffic(ports=(80,), unanswered=1, oldest_s=9, upstream=("10.0.0.5:5432, asked 9 s ago",))
    upstream = ThreadFacts(tid=6, waits=frozenset({waits.NETWORK}), runs=0)
    assert said(held(5, 6), upstream, traffic=asked) == (ProcessState.OUTSIDE, Why.UPSTREAM)


def test_a_probe_wants_a_request_that_waits_where_a_pool_may_stand_in_line_for_its_work() -> None:
    pool = judged(process(LISTENER, held(5, 6), replace(IDLE, tid=6)))
    asked = judged(replace(pool, traffic=Traffic(ports=(80,), unanswered=1, oldest_s=20)))
    assert pool.why is asked.why is Why.OWNER_WAITS
    assert hung(Attachment(asked="it", processes=(pool,)))
    assert not hung(Attachment(asked="it", processes=(pool,), probe=True))
    assert hung(Attachment(asked="it", processes=(asked,), probe=True))


def test_a_request_that_waits_while_others_are_answered_is_no_hang() -> None:
    """A long poll, or a batch that is not full. The twin has answered nobody for longer, or has no such client."""
    waiting = Traffic(ports=(80,), unanswered=1, oldest_s=40, answered_s=3.0)
    answers = judged(process(LISTENER, IDLE, traffic=waiting))
    assert (answers.state, answers.why) == (ProcessState.UNKNOWN, Why.OTHERS_ANSWERED)
    assert said(LISTENER, IDLE, traffic=replace(waiting, answered_s=6.0)) == (ProcessState.BLOCKED, Why.UNANSWERED)
    before = replace(waiting, oldest_s=2.5)
    assert said(LISTENER, IDLE, traffic=before) == (ProcessState.BLOCKED, Why.UNANSWERED)
    assert said(held(5, 6), held(6, 5), traffic=waiting) == (ProcessState.BLOCKED, Why.CYCLE)


def test_a_probe_does_not_restart_a_worker_whose_siblings_answer_on_its_port() -> None:
    stuck = judged(process(LISTENER, IDLE, traffic=Traffic(ports=(80,), unanswered=1, oldest_s=40)))
    sibling = judged(replace(process(LISTENER, traffic=Traffic(ports=(80,), answered_s=0.5)), pid=2))
    elsewhere = replace(sibling, traffic=Traffic(ports=(81,), answered_s=0.5))
    assert not hung(Attachment(asked="it", processes=(stuck, sibling), probe=True))
    assert hung(Attachment(asked="it", processes=(stuck, elsewhere), probe=True))
    assert hung(Attachment(asked="it", processes=(stuck, sibling)))
    circle = judged(process(held(5, 6), held(6, 5)))
    assert hung(Attachment(asked="it", processes=(circle, sibling), probe=True))


def test_of_several_processes_those_that_have_ended_come_last_and_make_no_hang() -> None:
    ended, idle = judged(process()), judged(replace(process(LISTENER), pid=2))
    assert [one.pid for one in worst_first([ended, idle])] == [2, 1]
    assert not hung(Attachment(asked="it", processes=(ended, idle)))
    assert hung(Attachment(asked="it", processes=(ended,)))


def test_who_waits_for_what_it_has_forked_is_idle() -> None:
    child = judged(replace(process(LISTENER), pid=2, parent=1))
    master = judged(process(ThreadFacts(tid=1, waits=frozenset({waits.PROCESS}), runs=0)))
    assert master.state is ProcessState.OUTSIDE
    assert {one.why for one in worst_first([master, child])} == {Why.FORKED, Why.LISTENS}


def test_a_main_thread_that_joins_others_is_not_blocked_by_that() -> None:
    lock = Lock(kind=LockKind.THREAD_END, address=16, owner=2, lives=True)
    joining = ThreadFacts(tid=1, waits=frozenset({waits.OWN_THREAD}), runs=0, lock=lock)
    assert said(joining, IDLE, replace(LISTENER, tid=3)) == (ProcessState.IDLE, Why.LISTENS)


def test_a_thread_that_computes_is_busy_unless_bytes_move() -> None:
    loop = ThreadFacts(tid=3, on_cpu=1.0, sleeps=0)
    assert said(LISTENER, loop) == (ProcessState.BUSY, Why.COMPUTES)
    assert said(LISTENER, loop, traffic=Traffic(ports=(80,), moved_bytes=900)) == (ProcessState.WORKING, Why.MOVES)
    assert said(LISTENER, replace(loop, sleeps=100)) == (ProcessState.WORKING, Why.TURNS)
    waiting = Traffic(ports=(80,), unanswered=2)
    assert said(LISTENER, replace(loop, sleeps=100), traffic=waiting) == (ProcessState.BUSY, Why.COMPUTES)


def test_who_waits_for_nothing_but_a_disk_does_so_on_a_crowded_machine_too() -> None:
    writer = ThreadFacts(tid=3, waits=frozenset({waits.DISK}), in_disk=0.2, on_cpu=0.1, queued=0.3)
    moving = {"io_bytes": 1 << 20}
    assert said(LISTENER, writer, **moving) == (ProcessState.DISK, Why.UNINTERRUPTIBLE)
    reader = replace(writer, waits=frozenset({waits.DISK, waits.NETWORK}), on_cpu=0.3)
    assert said(LISTENER, reader, **moving)[0] is not ProcessState.DISK


def test_who_got_few_of_the_cpus_that_it_wanted_is_starved_by_others_or_by_itself() -> None:
    poor = ThreadFacts(tid=3, on_cpu=0.2, queued=0.8)
    assert said(LISTENER, poor, cpus=1) == (ProcessState.STARVED, Why.OTHERS)
    assert said(LISTENER, replace(poor, on_cpu=0.7, queued=0.3), cpus=1)[0] is not ProcessState.STARVED
    many = [ThreadFacts(tid=tid, on_cpu=0.03, queued=0.97) for tid in range(10, 74)]
    assert said(LISTENER, *many, cpus=2) == (ProcessState.OVERSUBSCRIBED, Why.OWN_THREADS)
    assert said(LISTENER, poor, throttled_s=1.5) == (ProcessState.STARVED, Why.QUOTA)


def test_a_healthy_server_with_more_threads_than_cpus_works() -> None:
    threads = [ThreadFacts(tid=tid, on_cpu=0.12, queued=0.88, sleeps=50) for tid in range(10, 18)]
    moving = Traffic(ports=(80,), moved_bytes=9_000, unanswered=8)
    assert said(LISTENER, *threads, cpus=2, traffic=moving) == (ProcessState.WORKING, Why.MOVES)


def test_requests_without_an_answer_are_blocked_where_nothing_computes() -> None:
    asked = Traffic(ports=(80,), unanswered=3, oldest_s=40)
    assert said(LISTENER, IDLE, traffic=asked) == (ProcessState.BLOCKED, Why.UNANSWERED)
    waiting = Traffic(ports=(80,), waiting=2)
    assert said(IDLE, replace(LISTENER, waits=frozenset({waits.EVENT})), traffic=waiting)[1] is Why.UNANSWERED
    database = ThreadFacts(tid=3, waits=frozenset({waits.NETWORK}), runs=0, upstream=True)
    assert said(LISTENER, database, traffic=asked) == (ProcessState.OUTSIDE, Why.UPSTREAM)
    child = ThreadFacts(tid=3, waits=frozenset({waits.PROCESS}), runs=0)
    assert said(LISTENER, child, traffic=asked) == (ProcessState.OUTSIDE, Why.CHILD)


@pytest.mark.parametrize(
    "ending",
    [
        ThreadFacts(tid=3, waits=frozenset({waits.TIMER}), runs=0),
        ThreadFacts(tid=3, waits=frozenset({waits.TIMED_LOCK}), runs=0),
        ThreadFacts(tid=3, waits=frozenset({waits.TIMED_LOCK}), runs=4),
        replace(LISTENER, tid=3, limited=True),
    ],
)
def test_a_request_that_may_be_in_a_wait_with_a_limit_is_not_blocked(ending: ThreadFacts) -> None:
    asked = Traffic(ports=(80,), unanswered=1, oldest_s=40)
    assert said(LISTENER, IDLE, ending, traffic=asked) == (ProcessState.UNKNOWN, Why.CLIENT_OR_TIMER)
    assert said(LISTENER, replace(ending, waits=frozenset({waits.TIMED_LOCK}), runs=3), all_wait=True)[0] is not (
        ProcessState.BLOCKED
    )


def in_python(tid: int, *places: str) -> ThreadFacts:
    frames = [Frame(function="run", file=place, line=7, language="python") for place in places]
    stack = ThreadStack(tid=tid, frames=(Frame(function="sem_wait"), *frames))
    return ThreadFacts(tid=tid, waits=frozenset({waits.LOCK}), runs=0, stack=stack)


def test_half_a_request_is_not_blocked_but_a_worker_that_has_a_whole_one_is() -> None:
    asked = Traffic(ports=(80,), unanswered=1, oldest_s=40, looped=1)
    library = "/usr/lib/python3.11"
    futures = in_python(6, f"{library}/concurrent/futures/thread.py", f"{library}/threading.py")
    queued = in_python(7, f"{library}/threading.py", f"{library}/queue.py", "/srv/pool.py")
    assert said(LISTENER, IDLE, futures, queued, traffic=asked) == (ProcessState.UNKNOWN, Why.CLIENT_OR_TIMER)
    batcher = in_python(8, f"{library}/threading.py", "/srv/batcher.py", f"{library}/threading.py")
    assert said(LISTENER, batcher, traffic=asked) == (ProcessState.UNKNOWN, Why.CLIENT_OR_TIMER)
    stuck = in_python(9, f"{library}/threading.py", "/srv/model.py", f"{library}/concurrent/futures/thread.py")
    answer = judged(process(LISTENER, futures, stuck, traffic=asked))
    assert (answer.why, answer.culprits) == (Why.UNANSWERED, (9, 6))
    begun = Traffic(ports=(80,), begun=1)
    assert said(LISTENER, IDLE, traffic=begun) == (ProcessState.UNKNOWN, Why.CLIENT_OR_TIMER)


def test_a_call_that_waits_while_nothing_computes_is_blocked() -> None:
    assert said(LISTENER, in_a_call(3)) == (ProcessState.BLOCKED, Why.IN_A_CALL)
    assert said(LISTENER, in_a_call(3, moved=True)) == (ProcessState.IDLE, Why.LISTENS)
    assert said(LISTENER, replace(in_a_call(3), runs=4)) == (ProcessState.IDLE, Why.LISTENS)


def test_who_asks_for_the_gil_all_the_time_while_nothing_computes_never_gets_it() -> None:
    taker = ThreadFacts(tid=3, waits=frozenset({waits.TIMED_LOCK}), runs=390, on_cpu=0.005, stack_wait=Wait.GIL)
    assert said(LISTENER, taker, gil_holder=1) == (ProcessState.BLOCKED, Why.GIL)
    assert judged(process(LISTENER, taker, gil_holder=1)).culprits == (1, 3)
    computing = ThreadFacts(tid=4, on_cpu=0.9, sleeps=0)
    assert said(LISTENER, taker, computing)[1] is Why.COMPUTES
    assert said(LISTENER, replace(taker, runs=3))[0] is ProcessState.IDLE
    unknown = replace(taker, stack_wait="")  # without native frames
    assert said(replace(LISTENER, runs=0), unknown, gil_holder=1) == (ProcessState.BLOCKED, Why.GIL)
    assert said(replace(LISTENER, runs=2), unknown, gil_holder=1)[0] is ProcessState.IDLE
    assert said(LISTENER, unknown)[0] is ProcessState.IDLE
    assert said(taker, all_wait=True) == (ProcessState.BLOCKED, Why.ALL_WAIT)


@pytest.mark.parametrize(
    ("facts", "expected"),
    [
        ({"frozen": True}, (ProcessState.STOPPED, Why.FROZEN)),
        ({"flags": 0x4}, (ProcessState.EXITING, Why.KERNEL)),
        ({"all_wait": True}, (ProcessState.BLOCKED, Why.ALL_WAIT)),
    ],
)
def test_what_the_kernel_says_of_the_process_counts(facts: dict[str, object], expected: object) -> None:
    assert said(LISTENER, IDLE, **facts) == expected


def test_stopped_and_ended_processes_are_told_apart() -> None:
    assert said(ThreadFacts(tid=1, state="T")) == (ProcessState.STOPPED, Why.SIGNAL)
    assert said(ThreadFacts(tid=1, state="t"), tracer=9) == (ProcessState.STOPPED, Why.TRACED)
    assert said() == (ProcessState.ZOMBIE, Why.ENDED)


def test_what_cannot_be_told_is_not_guessed() -> None:
    sleeping = ThreadFacts(tid=1, waits=frozenset({waits.TIMER}), runs=0)
    assert said(sleeping, IDLE) == (ProcessState.UNKNOWN, Why.NO_EVIDENCE)
    assert said(ThreadFacts(tid=1)) == (ProcessState.UNKNOWN, Why.NO_RIGHTS)
    some = ThreadFacts(tid=1, waits=frozenset({waits.SOME_LOCK}), runs=0)
    assert said(some)[0] is ProcessState.UNKNOWN
