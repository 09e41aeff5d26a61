"""Who holds what a thread waits for: read from the futex word and the C library's lock around it; pure.

Layouts are glibc's, of x86_64 and aarch64 (``struct __pthread_mutex_s``: lock, count, owner; ``rwlock``: the writer's
thread id 24 bytes in). Nothing is claimed of a word that does not look like such a lock with a plausible holder.
"""

import struct
from collections.abc import Callable

from harness.checks.hang.waits import SYSCALLS
from harness.core.attach import Lock, LockKind

_OPERATION = 0x7F
_WAIT, _LOCK_PI, _WAIT_BITSET, _LOCK_PI2 = 0, 6, 9, 13
_PRIVATE = 0x80
_CONTENDED = 2  # glibc's lowlevellock: locked, and somebody waits
_TID = 0x3FFFFFFF  # FUTEX_TID_MASK
_WRITER_AT = 24
_MOST_TID = 1 << 22

Peek = Callable[[int, int], bytes]


def lock_of(machine: str, syscall: str, peek: Peek, lives: Callable[[int], bool], tid: int) -> Lock | None:
    """Return the lock that thread ``tid`` waits for with its holder; None: it waits for none, or nobody can tell.

    ``syscall``: the text of ``/proc/PID/task/TID/syscall``; ``peek``: (address, bytes) -> memory, empty if unreadable.
    """
    try:
        number, address, operation, value, limit, *_ = (int(word, 0) for word in syscall.split())
    except ValueError:
        return None
    if SYSCALLS.get(machine, {}).get(number) != "futex":
        return None
    kind = operation & _OPERATION
    if kind in (_LOCK_PI, _LOCK_PI2):
        return _robust(address, peek, lives)
    if kind not in (_WAIT, _WAIT_BITSET):
        return None
    if not operation & _PRIVATE and not limit and 0 < value & _TID <= _MOST_TID and lives(value & _TID):
        return Lock(kind=LockKind.THREAD_END, address=address, owner=value & _TID, lives=True)
    if value & 0xFFFFFFFF == _CONTENDED:
        return _mutex(address, peek, lives, tid, shared=not operation & _PRIVATE)
    if value & _TID and value & 0xFFFFFFFF >= 0x80000000:  # FUTEX_WAITERS: a robust mutex
        return _robust(address, peek, lives)
    return None


def _mutex(address: int, peek: Peek, lives: Callable[[int], bool], tid: int, *, shared: bool) -> Lock | None:
    words = _words(peek(address, 24), 6)
    if words is None:
        return None
    state, count, owner, users = words[0], words[1], words[2], words[3]
    if shared and not lives(owner):  # another process may hold it
        return None
    if state == _CONTENDED and 0 < owner <= _MOST_TID and count < 1000 and 0 < users < 100_000:
        # A thread that holds it and waits for it again has locked it twice.
        return Lock(kind=LockKind.MUTEX, address=address, owner=owner, lives=lives(owner) or owner == tid)
    return None


def _robust(address: int, peek: Peek, lives: Callable[[int], bool]) -> Lock | None:
    words = _words(peek(address, 4), 1)
    owner = words[0] & _TID if words is not None else 0
    if not owner:
        return None
    return Lock(kind=LockKind.KERNEL_MUTEX, address=address, owner=owner, lives=lives(owner))


def read_write_lock(syscall: str, peek: Peek, lives: Callable[[int], bool]) -> Lock | None:
    """Return the read-write lock of a thread whose stack says that it waits for one, if a writer holds it."""
    try:
        address = int(syscall.split()[1], 0)
    except (IndexError, ValueError):
        return None
    for begin in (address - 8, address - 12):  # the words that readers and writers wait on
        words = _words(peek(begin, 32), 8)
        if words is not None and 0 < words[_WRITER_AT // 4] <= _MOST_TID and lives(words[_WRITER_AT // 4]):
            return Lock(kind=LockKind.READ_WRITE, address=begin, owner=words[_WRITER_AT // 4], lives=True)
    return None


def _words(memory: bytes, count: int) -> tuple[int, ...] | None:
    return struct.unpack_from(f"<{count}I", memory) if len(memory) >= 4 * count else None
