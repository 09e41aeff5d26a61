"""What a thread waits for, in words, from the system call that it is in; pure.

Numbers and argument positions are those of Linux's ``syscall`` tables for x86_64 and aarch64; a number that is not
listed says nothing, and nothing is ever guessed from it.
"""

import struct
from collections.abc import Callable, Mapping
from dataclasses import dataclass

LOCK = "a lock"
TIMED_LOCK = "a lock, with a time limit"
OWN_THREAD = "another thread"
OWN_PIPE = "a pipe of its own"
STOPPED = "being continued"
PIPE = "a pipe"
NETWORK = "the network"
DISK = "disk"
DEVICE = "a device driver"
TIMER = "a timer"
PROCESS = "another process"
FILE_LOCK = "a file lock"
EVENT = "an event"
SIGNAL = "a signal"
DEBUGGER = "a debugger"
# As far as the kernel function tells that a thread sleeps in: nobody may look at the system call's arguments.
SOME_LOCK = "a lock, or another thread"
SOME_SOCKET = "the network or an event"

# Only another thread of the same process can end such a wait (or a SIGCONT, which is not sent here): if all threads
# wait like this, none of them will ever go on.
INSIDE = frozenset({LOCK, TIMED_LOCK, OWN_THREAD, OWN_PIPE, STOPPED})
# Of these, what does not end by itself either.
UNTIMED = INSIDE - {TIMED_LOCK}
# Something outside of the process may end such a wait.
OUTSIDE = frozenset({NETWORK, DISK, DEVICE, TIMER, PROCESS, PIPE, FILE_LOCK, SIGNAL, DEBUGGER})
# Of several descriptors that are waited for at once, the first kind in this order names the wait.
_MOST_TELLING = (DEVICE, NETWORK, PROCESS, TIMER, PIPE, OWN_PIPE, DISK)

_X86_64 = {
    "futex": (202,),
    "futex_wait": (455,),
    "futex_waitv": (449,),
    "sleep": (35, 230),
    "wait": (61, 247),
    "fd": (0, 1, 17, 18, 19, 20, 42, 43, 44, 45, 46, 47, 288, 299, 295, 296),
    "disk": (74, 75, 162, 306, 277, 208),
    "ioctl": (16,),
    "fcntl": (72,),
    "flock": (73,),
    "poll": (7, 271),
    "select": (23, 270),
    "epoll": (232, 281, 441),
    "ipc": (65, 69, 70, 220),
    "signal": (34, 128, 130),
    "sendfile": (40,),
    "restart": (219,),
    "clone": (56, 58, 435),
}
_AARCH64 = {
    "futex": (98,),
    "futex_wait": (455,),
    "futex_waitv": (449,),
    "sleep": (101, 115),
    "wait": (260, 95),
    "fd": (63, 64, 65, 66, 67, 68, 69, 70, 202, 203, 206, 207, 211, 212, 242, 243),
    "disk": (82, 83, 81, 267, 84, 4),
    "ioctl": (29,),
    "fcntl": (25,),
    "flock": (32,),
    "poll": (73,),
    "select": (72,),
    "epoll": (22, 441),
    "ipc": (193, 188, 189, 192),
    "signal": (133, 137),
    "sendfile": (71,),
    "restart": (128,),
    "clone": (220, 435),
}
SYSCALLS: Mapping[str, Mapping[int, str]] = {
    machine: {number: name for name, numbers in table.items() for number in numbers}
    for machine, table in {"x86_64": _X86_64, "aarch64": _AARCH64, "arm64": _AARCH64}.items()
}

# linux/futex.h: the operation without its flags; WAIT, LOCK_PI, WAIT_BITSET, WAIT_REQUEUE_PI, LOCK_PI2.
_FUTEX_WAITS = frozenset({0, 6, 9, 11, 13})
_FUTEX_PRIVATE = 0x80
# linux/fcntl.h: F_SETLKW, F_OFD_SETLKW.
_LOCKING_FCNTL = frozenset({7, 38})
_MOST_POLLED = 64
# Of x86_64, where the limit is a number of milliseconds; of both, where it is a pointer.
_POLL, _EPOLL_PWAIT2 = 7, 441

# Functions of the kernel, where the system call does not tell (a wait resumed after a stop, say).
_WCHAN = (
    (TIMED_LOCK, ("futex",)),  # only a wait with a limit is resumed as another call
    (TIMER, ("hrtimer_nanosleep", "do_nanosleep")),
    (PROCESS, ("do_wait",)),
    (PIPE, ("pipe_", "wait_for_partner")),
    (FILE_LOCK, ("flock", "locks_", "posix_lock")),
    (DEVICE, ("nvidia", "uvm_")),
    (NETWORK, ("unix_stream", "sk_", "inet_", "tcp_")),
    (DISK, ("io_schedule", "folio_wait", "wait_on_page", "rpc_", "nfs")),
    (EVENT, ("poll", "epoll", "ep_", "do_epoll", "do_poll", "do_sys_poll", "do_select")),
)


@dataclass(frozen=True)
class Surroundings:
    """What the arguments of a system call are looked up in.

    Attributes:
        kind_of: descriptor -> in words what it is, empty if nobody can tell.
        watched_by: descriptor of an epoll -> the descriptors that it watches.
        peek: (address, length) -> the process's memory there, empty if it cannot be read.
        is_thread: whether a number is the id of a living thread of the process.
    """

    kind_of: Callable[[int], str]
    watched_by: Callable[[int], tuple[int, ...]]
    peek: Callable[[int, int], bytes]
    is_thread: Callable[[int], bool]


def in_words(machine: str, syscall: str, wchan: str, around: Surroundings) -> str:
    """Return what a thread waits for; empty if it runs or that is unknown. ``machine``: of ``platform.machine``."""
    number, *arguments = _numbers(syscall)
    name = SYSCALLS.get(machine, {}).get(number, "")
    if len(arguments) < 6 or not name:
        return _by_wchan(wchan) if name == "restart" or number == -1 else ""
    return _CALLS[name](arguments, around) if name in _CALLS else _by_wchan(wchan)


def without_rights(wchan: str) -> str:
    """Return what a thread waits for where only the kernel's function is known; never counted as blocked."""
    if wchan.startswith("futex"):
        return SOME_LOCK
    words = _by_wchan(wchan)
    return SOME_SOCKET if words in (EVENT, NETWORK) else words


def _numbers(syscall: str) -> list[int]:
    try:
        return [int(word, 0) for word in syscall.split()] or [-2]
    except ValueError:  # "running"
        return [-2]


def _by_wchan(wchan: str) -> str:
    return next((words for words, prefixes in _WCHAN if wchan.startswith(prefixes)), "")


def _futex(arguments: list[int], around: Surroundings) -> str:
    _, operation, value, limit = arguments[:4]
    if operation & 0x7F not in _FUTEX_WAITS:
        return ""
    if not operation & _FUTEX_PRIVATE:  # shared between processes; the join of a thread is, for no good reason
        return OWN_THREAD if around.is_thread(value & 0xFFFFFFFF) and not limit else PROCESS
    return TIMED_LOCK if limit else LOCK


def _futex_wait(arguments: list[int], _around: Surroundings) -> str:
    if not arguments[3] & _FUTEX_PRIVATE:
        return PROCESS
    return TIMED_LOCK if arguments[4] else LOCK


@dataclass(frozen=True, slots=True)
class Watch:
    """Which descriptors one system call waits for, ``together`` as event loops do, and whether only for a time."""

    descriptors: tuple[int, ...] = ()
    together: bool = False
    limited: bool = False


def watch(machine: str, syscall: str, around: Surroundings) -> Watch:
    """Return what a thread watches; nothing where it is in no such call. Arguments as of ``in_words``."""
    number, *arguments = _numbers(syscall)
    name = SYSCALLS.get(machine, {}).get(number, "")
    if len(arguments) < 6 or name not in ("fd", "poll", "select", "epoll"):
        return Watch()
    if name == "fd":
        return Watch((arguments[0],))
    if name == "epoll":
        limit = arguments[3]
        limited = bool(limit) if number == _EPOLL_PWAIT2 else _in_ms(limit)
        return Watch(around.watched_by(arguments[0]), together=True, limited=limited)
    descriptors = tuple(_polled(arguments, around) if name == "poll" else _selected(arguments, around))
    limited = _in_ms(arguments[2]) if number == _POLL else bool(arguments[2 if name == "poll" else 4])
    return Watch(descriptors, together=len(descriptors) > 1, limited=limited)


def _in_ms(limit: int) -> bool:
    return limit & 0xFFFFFFFF < 0x80000000  # negative: for ever


def _polled(arguments: list[int], around: Surroundings) -> list[int]:
    table = around.peek(arguments[0], 8 * min(arguments[1], _MOST_POLLED))
    return [struct.unpack_from("i", table, 8 * i)[0] for i in range(len(table) // 8)]


def _poll(arguments: list[int], around: Surroundings) -> str:
    return _several(_polled(arguments, around), around) if arguments[1] else TIMER


def _selected(arguments: list[int], around: Surroundings) -> list[int]:
    count, *sets = arguments[:4]
    descriptors = []
    for address in filter(None, sets):
        bits = int.from_bytes(around.peek(address, (min(count, 1024) + 7) // 8), "little")
        descriptors += [fd for fd in range(bits.bit_length()) if bits >> fd & 1]
    return descriptors[:_MOST_POLLED]


def _select(arguments: list[int], around: Surroundings) -> str:
    count, *sets = arguments[:4]
    return _several(_selected(arguments, around), around) if count and any(sets) else TIMER


def _several(descriptors: list[int], around: Surroundings) -> str:
    """Name a wait for one of several; never counted as blocked: such a loop expects events from outside."""
    kinds = {around.kind_of(fd) for fd in descriptors if fd >= 0}
    words = next((kind for kind in _MOST_TELLING if kind in kinds), EVENT)
    return PIPE if words == OWN_PIPE else words


_CALLS: Mapping[str, Callable[[list[int], Surroundings], str]] = {
    "futex": _futex,
    "futex_wait": _futex_wait,
    "futex_waitv": lambda arguments, _: TIMED_LOCK if arguments[3] else LOCK,
    "sleep": lambda *_: TIMER,
    "wait": lambda *_: PROCESS,
    "clone": lambda *_: PROCESS,  # vfork: until the child has begun another program
    "ipc": lambda *_: PROCESS,
    "disk": lambda *_: DISK,
    "ioctl": lambda *_: DEVICE,
    "flock": lambda *_: FILE_LOCK,
    "signal": lambda *_: SIGNAL,
    "fcntl": lambda arguments, _: FILE_LOCK if arguments[1] in _LOCKING_FCNTL else "",
    "fd": lambda arguments, around: around.kind_of(arguments[0]),
    "sendfile": lambda arguments, around: around.kind_of(arguments[0]) or around.kind_of(arguments[1]),
    "poll": _poll,
    "select": _select,
    "epoll": lambda arguments, around: _several(list(around.watched_by(arguments[0])), around),
}
