"""Which connections wait for an answer, and which only look so."""

import contextlib
import socket
import time
from collections.abc import Iterator

from harness.checks.attach.sockets import (
    CLOSE_WAIT,
    ESTABLISHED,
    LISTEN,
    Closings,
    Connection,
    connections_of,
    inodes_of,
    traffic_of,
)
from harness.core.attach import Traffic

SERVER = Connection(1, LISTEN, 80, "0.0.0.0:0", 0)


def _client(
    sent_ms: int, received_ms: int, *, sent: int = 500, received: int = 100, state: int = ESTABLISHED
) -> Connection:
    return Connection(2, state, 80, "10.0.0.9:5000", 0, sent_ms, received_ms, sent, received)


def _traffic(*connections: Connection) -> Traffic:
    looks = {one.inode: one for one in (SERVER, *connections)}
    found = traffic_of(looks, looks, 2.0)
    assert found is not None
    return found


def test_a_request_that_came_long_after_the_last_answer_is_unanswered() -> None:
    assert _traffic(_client(60_000, 40_000)).unanswered == 1
    assert _traffic(_client(60_000, 40_000)).oldest_s == 40


def test_the_first_request_of_a_connection_is_unanswered_while_nothing_was_sent() -> None:
    assert _traffic(_client(40_000, 40_000, sent=1)).unanswered == 1


def test_a_connection_that_was_answered_or_has_asked_nothing_is_not() -> None:
    assert _traffic(_client(40_000, 40_100)).unanswered == 0
    assert _traffic(_client(40_000, 40_000, sent=1, received=0)).unanswered == 0


def test_what_comes_right_after_an_answer_may_be_part_of_its_protocol() -> None:
    """HTTP/2 acknowledges settings, so that every idle gRPC connection ends with bytes of its client."""
    answer = _traffic(_client(40_005, 40_000))
    assert (answer.unanswered, answer.maybe) == (0, 1)


def test_a_request_that_has_just_come_is_not_late() -> None:
    assert _traffic(_client(60_000, 500)).unanswered == 0


def test_a_client_that_has_gone_and_was_not_noticed_is_unanswered() -> None:
    assert _traffic(_client(40_005, 40_000, state=CLOSE_WAIT)).unanswered == 1


def test_its_own_request_to_another_server_is_upstream() -> None:
    asked = Connection(3, ESTABLISHED, 40_000, "10.0.0.5:5432", 0, 9_000, 60_000, 100, 100)
    assert _traffic(asked).upstream == ("10.0.0.5:5432, asked 9 s ago",)
    assert _traffic(Connection(3, ESTABLISHED, 40_000, "10.0.0.5:5432", 0, 9_000, 8_000, 100, 100)).upstream == ()


@contextlib.contextmanager
def _served() -> Iterator[tuple[socket.socket, socket.socket]]:
    with socket.create_server(("127.0.0.1", 0)) as server, socket.create_connection(server.getsockname()) as client:
        accepted, _ = server.accept()
        with accepted:
            yield client, accepted


def test_the_kernel_tells_of_a_request_and_of_its_answer() -> None:
    def look() -> Traffic:
        before = connections_of("/proc/self", inodes_of("/proc/self"))
        time.sleep(0.06)
        found = traffic_of(before, connections_of("/proc/self", inodes_of("/proc/self")), 0.05)
        assert found is not None
        return found

    with _served() as (client, accepted):
        idle = look()
        client.sendall(b"GET / HTTP/1.1\r\n\r\n")
        time.sleep(0.06)
        asked = look()
        accepted.recv(100)
        accepted.sendall(b"HTTP/1.1 200 OK\r\n\r\n")
        time.sleep(0.02)
        answered = look()
    assert (idle.unanswered, asked.unanswered, answered.unanswered) == (0, 1, 0)


def test_connections_that_end_between_two_looks_are_heard_of_where_they_were_answered() -> None:
    ports = []
    with contextlib.closing(Closings()) as closings:
        for answer in (b"the answer", b""):
            with socket.create_server(("127.0.0.1", 0)) as server:
                ports.append(server.getsockname()[1])
                with socket.create_connection(("127.0.0.1", ports[-1])) as client:
                    connection, _ = server.accept()
                    client.sendall(b"a request")
                    connection.recv(100)
                    connection.sendall(answer)
                    if answer:
                        client.recv(100)
                connection.close()
        end = time.monotonic() + 5
        heard: set[int] = set()
        while time.monotonic() < end and ports[0] not in heard:
            heard |= {*closings.answered()}
    assert heard & {*ports} == {ports[0]}


def test_the_last_answer_is_that_of_a_client_that_is_there_or_has_just_gone() -> None:
    looks = {one.inode: one for one in (SERVER, _client(40_000, 41_000))}
    ages = [traffic_of(looks, looks, 2.0, closed=closed) for closed in ({}, {80: 1.5}, {81: 1.5})]
    assert [one.answered_s for one in ages if one is not None] == [40.0, 1.5, 40.0]
    assert _traffic(_client(40_000, 40_000, sent=1)).answered_s is None
    assert _traffic(_client(4_000, 2_500)).answered_s is None  # it asks itself, and was answered before
