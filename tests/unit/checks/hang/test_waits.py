"""From a system call and its arguments to what a thread waits for, in words."""

import struct
from collections.abc import Mapping

import pytest

from harness.checks.hang import waits

KINDS = {0: waits.DEVICE, 3: waits.NETWORK, 4: waits.PIPE, 5: waits.OWN_PIPE, 6: waits.DISK, 7: waits.EVENT}


def words(
    number: int, *arguments: int, machine: str = "x86_64", wchan: str = "0", memory: Mapping[int, bytes] | None = None
) -> str:
    around = waits.Surroundings(
        kind_of=lambda fd: KINDS.get(fd, ""),
        watched_by=lambda fd: (7, 3) if fd == 9 else (),
        peek=lambda address, length: (memory or {}).get(address, b"")[:length],
        is_thread=lambda tid: tid == 1234,
    )
    padded = [*arguments, *[0] * (6 - len(arguments))]
    line = " ".join([str(number), *(hex(one) for one in padded), "0x7ffe", "0x7f00"])
    return waits.in_words(machine, line + "\n", wchan, around)


PRIVATE, WAIT, WAIT_BITSET, WAKE, CLOCK = 0x80, 0, 9, 1, 0x100


@pytest.mark.parametrize(("machine", "futex"), [("x86_64", 202), ("aarch64", 98)])
@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        ((0x7F00, PRIVATE | WAIT, 2, 0), "a lock"),
        ((0x7F00, PRIVATE | CLOCK | WAIT_BITSET, 0, 0, 0, 0xFFFFFFFF), "a lock"),
        ((0x7F00, PRIVATE | WAIT_BITSET, 0, 0x7FFE), "a lock, with a time limit"),
        ((0x7F00, PRIVATE | 6, 0, 0), "a lock"),
        ((0x7F00, CLOCK | WAIT_BITSET, 1234, 0), "another thread"),  # pthread_join
        ((0x7F00, WAIT, 77, 0), "another process"),
        ((0x7F00, PRIVATE | WAKE, 1), ""),
    ],
)
def test_futex(machine: str, futex: int, arguments: tuple[int, ...], expected: str) -> None:
    assert words(futex, *arguments, machine=machine) == expected


@pytest.mark.parametrize(
    ("machine", "number", "arguments", "expected"),
    [
        ("x86_64", 0, (3,), "the network"),
        ("x86_64", 0, (4,), "a pipe"),
        ("x86_64", 1, (5,), "a pipe of its own"),
        ("x86_64", 17, (6,), "disk"),
        ("x86_64", 0, (99,), ""),
        ("x86_64", 45, (3,), "the network"),
        ("x86_64", 288, (3,), "the network"),
        ("x86_64", 16, (3,), "a device driver"),
        ("x86_64", 74, (6,), "disk"),
        ("x86_64", 230, (), "a timer"),
        ("x86_64", 61, (), "another process"),
        ("x86_64", 247, (), "another process"),
        ("x86_64", 73, (6, 2), "a file lock"),
        ("x86_64", 72, (6, 7), "a file lock"),
        ("x86_64", 72, (6, 1), ""),
        ("x86_64", 40, (3, 6), "the network"),
        ("x86_64", 232, (9,), "the network"),
        ("x86_64", 232, (8,), "an event"),
        ("x86_64", 455, (0x7F00, 0, 0, 0x80, 0), "a lock"),
        ("x86_64", 455, (0x7F00, 0, 0, 0x80, 1), "a lock, with a time limit"),
        ("x86_64", 455, (0x7F00, 0, 0, 0, 0), "another process"),
        ("x86_64", 449, (0x7F00, 2, 0, 0), "a lock"),
        ("x86_64", 9999, (), ""),
        ("aarch64", 63, (3,), "the network"),
        ("aarch64", 207, (3,), "the network"),
        ("aarch64", 29, (0,), "a device driver"),
        ("aarch64", 115, (), "a timer"),
        ("aarch64", 260, (), "another process"),
        ("aarch64", 32, (6,), "a file lock"),
        ("aarch64", 22, (9,), "the network"),
        ("riscv64", 98, (0, PRIVATE), ""),
    ],
)
def test_call(machine: str, number: int, arguments: tuple[int, ...], expected: str) -> None:
    assert words(number, *arguments, machine=machine) == expected


@pytest.mark.parametrize(
    ("descriptors", "expected"),
    [
        ([4, 3], "the network"),
        ([3, 0], "a device driver"),
        ([5], "a pipe"),  # who polls expects the outside to speak
        ([-1, 7], "an event"),
        ([], "a timer"),
    ],
)
def test_poll_is_named_by_the_most_telling_descriptor(descriptors: list[int], expected: str) -> None:
    table = b"".join(struct.pack("ihh", fd, 1, 0) for fd in descriptors)
    assert words(7, 0x1000, len(descriptors), memory={0x1000: table}) == expected


def test_select_reads_its_sets() -> None:
    assert words(23, 8, 0x1000, 0, 0, memory={0x1000: bytes([1 << 3])}) == "the network"
    assert words(23, 0, 0, 0, 0, 0x2000) == "a timer"
    assert words(23, 8, 0x1000) == "an event"


def test_memory_that_cannot_be_read_leaves_an_event() -> None:
    assert words(7, 0x1000, 2) == "an event"


@pytest.mark.parametrize(
    ("wchan", "expected"),
    [("hrtimer_nanosleep", "a timer"), ("futex_do_wait", "a lock, with a time limit"), ("strange", ""), ("0", "")],
)
def test_resumed_call_is_named_by_the_place_in_the_kernel(wchan: str, expected: str) -> None:
    assert words(219, wchan=wchan) == expected


@pytest.mark.parametrize("line", ["running", "", "-1 0x7ffe 0x7f00", "x y"])
def test_thread_outside_of_every_call_waits_for_nothing_that_is_known(line: str) -> None:
    around = waits.Surroundings(lambda _: "", lambda _: (), lambda *_: b"", lambda _: False)
    assert waits.in_words("x86_64", line, "0", around) == ""


def test_a_vfork_waits_for_its_child() -> None:
    assert words(58) == "another process"
    assert words(220, machine="aarch64") == "another process"


@pytest.mark.parametrize(
    ("wchan", "expected"),
    [
        ("futex_do_wait", waits.SOME_LOCK),
        ("do_epoll_wait", waits.SOME_SOCKET),
        ("inet_csk_accept", waits.SOME_SOCKET),
        ("do_poll.constprop.0", waits.SOME_SOCKET),
        ("hrtimer_nanosleep", waits.TIMER),
        ("0", ""),
    ],
)
def test_without_the_right_to_trace_the_place_in_the_kernel_tells_roughly(wchan: str, expected: str) -> None:
    """And never so that it proves a hang: a wait with a limit looks the same."""
    assert waits.without_rights(wchan) == expected
    assert expected not in waits.INSIDE
