"""The TCP connections of a process, with when bytes last came and went: whether a request waits for an answer.

The kernel tells by ``sock_diag(7)``, to anybody in the same network namespace; for another one ``/proc/PID/net/tcp``
has the lengths of queues only.
"""

import contextlib
import os
import socket
import struct
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType

from harness.core.attach import Traffic
from harness.machine.files import text_of
from harness.machine.proc_files import links_in

_NETLINK_SOCK_DIAG, _SOCK_DIAG_BY_FAMILY = 4, 20
_REQUEST_DUMP = 0x301
_DONE, _ERROR = 3, 2
_INET_DIAG_INFO = 2
# SKNLGRP_INET_TCP_DESTROY and SKNLGRP_INET6_TCP_DESTROY as the bits of an address.
_CLOSINGS = 1 << 0 | 1 << 2
ESTABLISHED, CLOSE_WAIT, LISTEN = 1, 8, 10
_STATES = 1 << ESTABLISHED | 1 << CLOSE_WAIT | 1 << LISTEN
# In struct tcp_info: milliseconds since data was sent and received, and bytes acknowledged and received.
_SENT_AT, _RECEIVED_AT, _BYTES_AT = 44, 52, 120
_HEADER, _MESSAGE = 16, 72
_LIMIT_S = 1.0
MOST_UPSTREAM = 3
# What belongs to the answer before comes sooner.
AFTER_AN_ANSWER_MS = 1000
# The kernel counts the begin and the end of a connection as a byte each.
NO_ANSWER_BYTES = 2


@dataclass(frozen=True, slots=True)
class Connection:
    """One socket; ``sent_ms``, ``received_ms``: ago, -1 unknown; ``queue``: unread bytes, or connections to accept."""

    inode: int
    state: int
    port: int
    peer: str
    queue: int
    sent_ms: int = -1
    received_ms: int = -1
    sent_bytes: int = 0
    received_bytes: int = 0


def connections_of(folder: str, inodes: Collection[int]) -> dict[int, Connection] | None:
    """Return the TCP sockets among ``inodes`` by inode; None: they cannot be seen. ``folder``: of ``/proc``."""
    if not inodes:
        return {}
    with contextlib.suppress(OSError):
        if Path(f"{folder}/ns/net").readlink() == Path("/proc/self/ns/net").readlink():
            return {one.inode: one for one in _asked() if one.inode in inodes}
    texts = [text_of(Path(f"{folder}/net/{name}")) for name in ("tcp", "tcp6")]
    if not any(texts):
        return None
    return {one.inode: one for text in texts for one in _listed(text) if one.inode in inodes}


def _asked() -> Iterator[Connection]:
    for family in (socket.AF_INET, socket.AF_INET6):
        with socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, _NETLINK_SOCK_DIAG) as kernel:
            kernel.settimeout(_LIMIT_S)
            request = struct.pack("=BBBBI48x", family, socket.IPPROTO_TCP, 1 << (_INET_DIAG_INFO - 1), 0, _STATES)
            head = struct.pack("=IHHII", _HEADER + len(request), _SOCK_DIAG_BY_FAMILY, _REQUEST_DUMP, 1, 0)
            kernel.send(head + request)
            yield from _answers(kernel)


class Closings:
    """Hears of each TCP connection of this network namespace that ends: the short ones, which no look sees."""

    def __init__(self) -> None:
        self._kernel = socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, _NETLINK_SOCK_DIAG)
        self._kernel.settimeout(0)
        with contextlib.suppress(OSError):  # an older kernel tells nobody
            self._kernel.bind((0, _CLOSINGS))

    def answered(self) -> Iterator[int]:
        """Yield the local port of each that has ended since the last call, and on which something was sent."""
        with contextlib.suppress(OSError):  # there are no more, or were too many to be told
            for one in _answers(self._kernel):
                if one.received_bytes and one.sent_bytes > NO_ANSWER_BYTES:
                    yield one.port

    def close(self) -> None:
        self._kernel.close()


def _answers(kernel: socket.socket) -> Iterator[Connection]:
    while True:
        datagram = kernel.recv(1 << 18)
        at = 0
        while at + _HEADER <= len(datagram):
            length, kind = struct.unpack_from("=IH", datagram, at)
            if kind == _ERROR:
                raise OSError(-struct.unpack_from("=i", datagram, at + _HEADER)[0], "sock_diag")
            if kind == _DONE or length < _HEADER:
                return
            yield _connection(datagram[at + _HEADER : at + length])
            at += (length + 3) & ~3


def _connection(message: bytes) -> Connection:
    family, state = message[:2]
    port, peer_port = struct.unpack_from(">HH", message, 4)
    size = 4 if family == socket.AF_INET else 16
    peer = f"{socket.inet_ntop(family, message[24 : 24 + size])}:{peer_port}".removeprefix("::ffff:")
    queue, _, _, inode = struct.unpack_from("=IIII", message, 56)
    info, at = b"", _MESSAGE
    while at + 4 <= len(message):
        length, kind = struct.unpack_from("=HH", message, at)
        if kind == _INET_DIAG_INFO:
            info = message[at + 4 : at + length]
        at += max((length + 3) & ~3, 4)
    if len(info) < _BYTES_AT + 16:
        return Connection(inode, state, port, peer, queue)
    sent_ms, received_ms = (struct.unpack_from("=I", info, place)[0] for place in (_SENT_AT, _RECEIVED_AT))
    return Connection(
        inode, state, port, peer, queue, sent_ms, received_ms, *struct.unpack_from("=QQ", info, _BYTES_AT)
    )


def _listed(text: str) -> Iterator[Connection]:
    for line in text.splitlines()[1:]:
        fields = line.split()
        if len(fields) > 9:
            address, _, peer_port = fields[2].rpartition(":")
            queue = int(fields[4].rpartition(":")[2], 16)
            port = int(fields[1].rpartition(":")[2], 16)
            yield Connection(int(fields[9]), int(fields[3], 16), port, f"{address}:{int(peer_port, 16)}", queue)


def serves(inode: int, connections: dict[int, Connection]) -> bool:
    """Whether a socket is one that listens, or that a client has connected to."""
    one = connections.get(inode)
    return one is not None and one.port in {other.port for other in connections.values() if other.state == LISTEN}


def inodes_of(folder: str) -> frozenset[int]:
    """Return the inodes of the sockets that a process has open; ``folder``: of ``/proc``."""
    return frozenset(map(_inode_in, links_in(f"{folder}/fd"))) - {0}


def inode_of(descriptor: str) -> int:
    """Return the inode of the socket behind a link in ``/proc/PID/fd``, 0 where it is none."""
    with contextlib.suppress(OSError):
        return _inode_in(os.readlink(descriptor))  # noqa: PTH115  no Path per descriptor
    return 0


def _inode_in(link: str) -> int:
    inode = link.removeprefix("socket:[").removesuffix("]") if link.startswith("socket:[") else ""
    return int(inode) if inode.isdecimal() else 0


def traffic_of(
    before: dict[int, Connection] | None,
    now: dict[int, Connection] | None,
    window_s: float,
    *,
    read: Collection[int] = (),
    looped: Collection[int] = (),
    closed: Mapping[int, float] = MappingProxyType({}),
) -> Traffic | None:
    """Return what the connections of two looks come to; None: they cannot be seen.

    ``read``: inodes of those that a thread waits to read from; ``looped``: that an event loop watches; ``closed``: by
    port how many seconds ago one with an answer was last heard to end.
    """
    if before is None or now is None:
        return None
    ports = {one.port for one in now.values() if one.state == LISTEN}
    incoming = [one for one in now.values() if one.state != LISTEN and one.port in ports]
    outgoing = [one for one in now.values() if one.state == ESTABLISHED and one.port not in ports]
    window_ms = 1000 * window_s
    old = [one for one in incoming if one.received_ms >= window_ms]
    asked = [one for one in old if _is_unanswered(one, before)]
    maybe = [one for one in old if one.received_ms < one.sent_ms and one not in asked]
    unanswered = [one for one in asked if one.queue or one.inode not in read]
    unread = [one for one in incoming if one.received_ms < 0 < one.queue and _queued(before, one) == one.queue]
    upstream = [one for one in outgoing if one.sent_ms >= window_ms and one.sent_ms < one.received_ms]
    shared = [(before[inode], one) for inode, one in now.items() if inode in before and one.state != LISTEN]
    moved = sum(
        one.sent_bytes - earlier.sent_bytes + one.received_bytes - earlier.received_bytes for earlier, one in shared
    )
    moved += sum(one.sent_bytes + one.received_bytes for inode, one in now.items() if inode not in before)
    answered_s = [one.sent_ms / 1000 for one in incoming if one.sent_bytes > NO_ANSWER_BYTES and one not in asked]
    if any(one.received_ms >= 0 for one in now.values()):  # it is in this network namespace, as what was heard
        answered_s += [closed[port] for port in ports & closed.keys()]
    known = not incoming or any(one.received_ms >= 0 for one in incoming)
    return Traffic(
        ports=tuple(sorted(ports)),
        connections=len(incoming),
        waiting=sum(min(one.queue, _queued(before, one)) for one in now.values() if one.state == LISTEN),
        unanswered=len(unanswered) + len(unread),
        oldest_s=max((one.received_ms for one in unanswered), default=0) / 1000,
        looped=sum(not one.queue and one.inode in looped for one in unanswered),
        begun=len(asked) - len(unanswered),
        answered_s=min(answered_s, default=None),
        maybe=len(maybe),
        upstream=tuple(f"{one.peer}, asked {one.sent_ms / 1000:.0f} s ago" for one in upstream[:MOST_UPSTREAM]),
        moved_bytes=moved if known else None,
    )


def _queued(looks: dict[int, Connection], one: Connection) -> int:
    return looks[one.inode].queue if one.inode in looks else 0


def _is_unanswered(one: Connection, before: dict[int, Connection]) -> bool:
    """Whether bytes came that nothing was sent for; what comes right after an answer may be part of its protocol.

    HTTP/2 acknowledges settings and opens windows so. A connection that its client has closed and the server has not
    is one that nobody reads.
    """
    closed = one.state == CLOSE_WAIT and one.inode in before and before[one.inode].state == CLOSE_WAIT
    never = one.received_bytes > 0 and one.sent_bytes <= 1
    return closed or never or one.sent_ms - one.received_ms >= AFTER_AN_ANSWER_MS


def listening() -> Iterator[Connection]:
    """Yield the TCP sockets of this network namespace that listen."""
    for name in ("tcp", "tcp6"):
        yield from (one for one in _listed(text_of(Path(f"/proc/self/net/{name}"))) if one.state == LISTEN)
