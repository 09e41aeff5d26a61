"""Who holds what, from the words of locks as they lie in memory."""

import struct

from harness.checks.attach.locks import lock_of
from harness.core.attach import Lock, LockKind

AT = 0x7F0000001000
MUTEX = f"202 {AT:#x} 0x80 0x2 0x0 0x0 0x0 0x7ffc 0x7fc1"


def _lock(syscall: str, memory: bytes, *, threads: frozenset[int] = frozenset({7, 8})) -> Lock | None:
    def peek(address: int, length: int) -> bytes:
        return memory[:length] if address == AT else b""

    return lock_of("x86_64", syscall, peek, threads.__contains__, 7)


def _mutex(owner: int, state: int = 2) -> bytes:
    return struct.pack("<6I", state, 0, owner, 1, 0, 0)


def test_the_owner_of_a_mutex_is_read_where_somebody_waits_for_it() -> None:
    assert _lock(MUTEX, _mutex(8)) == Lock(kind=LockKind.MUTEX, address=AT, owner=8, lives=True)
    assert _lock(MUTEX, _mutex(99)) == Lock(kind=LockKind.MUTEX, address=AT, owner=99, lives=False)


def test_who_has_locked_a_mutex_twice_waits_for_itself() -> None:
    lock = _lock(MUTEX, _mutex(7))
    assert lock is not None
    assert (lock.owner, lock.lives) == (7, True)


def test_a_condition_variable_is_no_mutex() -> None:
    assert _lock(f"202 {AT:#x} 0x189 0x0 0x0 0x0 0xffffffff 0x7ffc 0x7fc1", _mutex(8)) is None
    assert _lock(MUTEX, struct.pack("<6I", 2, 0, 0, 0, 0, 0)) is None  # a lock without an owner
    assert _lock(MUTEX, _mutex(8, state=1)) is None


def test_nothing_is_said_of_memory_that_cannot_be_read_or_of_another_call() -> None:
    assert _lock(MUTEX, b"") is None
    assert _lock("0 0x3 0x80 0x2 0x0 0x0 0x0 0x7ffc 0x7fc1", _mutex(8)) is None
    assert _lock("running", _mutex(8)) is None
    assert _lock("", _mutex(8)) is None


def test_a_mutex_that_processes_share_has_an_owner_only_in_this_one() -> None:
    shared = MUTEX.replace("0x80", "0x0")
    assert _lock(shared, _mutex(99)) is None
    assert _lock(shared, _mutex(8)) is not None


def test_a_join_waits_for_the_end_of_a_thread() -> None:
    assert _lock(f"202 {AT:#x} 0x109 0x8 0x0 0x0 0xffffffff 0x7ffc 0x7fc1", b"") == Lock(
        kind=LockKind.THREAD_END, address=AT, owner=8, lives=True
    )


def test_the_kernel_knows_the_owner_of_a_pi_mutex() -> None:
    pi = f"202 {AT:#x} 0x86 0x0 0x0 0x0 0x0 0x7ffc 0x7fc1"
    assert _lock(pi, struct.pack("<I", 0x80000000 | 8)) == Lock(
        kind=LockKind.KERNEL_MUTEX, address=AT, owner=8, lives=True
    )
