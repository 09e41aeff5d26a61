"""The generator against servers of every behaviour; no torch."""

import math
import socketserver
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pytest

from harness.artifacts.traffic import TrafficWriter
from harness.checks.load.arrivals import poisson
from harness.checks.load.generator import Order
from harness.checks.load.measure import Generator, GeneratorFailure
from harness.core.traffic import TrafficHeader, TrafficRequest

ANSWER = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}"
OLD_STYLE = b"HTTP/1.0 200 OK\r\n\r\n{}"
REFUSED = b"HTTP/1.1 503 Service Unavailable\r\nContent-Length: 0\r\n\r\n"
CONTINUED = b"HTTP/1.1 100 Continue\r\n\r\n" + ANSWER
CHUNKED = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n0\r\n\r\n"
HALF = b"HTTP/1.1 200 OK\r\nContent-Length: 20\r\n\r\n{}"


@contextmanager
def server(answer: bytes, *, wait_s: float = 0.0, closes: bool = False) -> Iterator[tuple[int, list[bytes]]]:
    """A server that answers each request with the same bytes, and the requests that it got."""
    received = []

    class Handler(socketserver.StreamRequestHandler):
        def handle(self) -> None:
            while line := self.rfile.readline():
                length = 0
                while (header := self.rfile.readline().strip().lower()) != b"":
                    if header.startswith(b"content-length:"):
                        length = int(header.split(b":")[1])
                received.append(line + self.rfile.read(length))
                time.sleep(wait_s)
                self.wfile.write(answer)
                if closes:
                    return

    class Server(socketserver.ThreadingTCPServer):
        daemon_threads = True
        request_queue_size = 128

    with Server(("127.0.0.1", 0), Handler) as served:
        threading.Thread(target=served.serve_forever, daemon=True, kwargs={"poll_interval": 0.05}).start()
        yield served.server_address[1], received
        served.shutdown()


@pytest.fixture(scope="module")
def generator(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Generator]:
    folder = tmp_path_factory.mktemp("load")
    with TrafficWriter(folder / "requests.jsonl", TrafficHeader()) as file:
        for place in range(3):
            file.write(
                TrafficRequest(path=f"/model?{place}", headers={"content-type": "text/plain"}, body=b"x" * place)
            )
    with Generator(folder / "requests.jsonl", folder) as process:
        yield process


def order(
    port: int, at: tuple[float, ...] = (0.0, 0.01, 0.02), *, patience_s: float = 5.0, seconds: float = 0.2
) -> Order:
    return Order(port=port, at=at, first=1, connections=2, seconds=seconds, patience_s=patience_s)


@pytest.mark.parametrize(
    ("answer", "closes"), [(ANSWER, False), (ANSWER, True), (OLD_STYLE, True), (CONTINUED, False), (CHUNKED, False)]
)
def test_every_way_to_answer_is_an_answer(generator: Generator, answer: bytes, closes: bool) -> None:
    with server(answer, closes=closes) as (port, received):
        sent, times, late = generator.send(order(port))
    assert (sent.answered, sent.refused, sent.broken, sent.unanswered, sent.unsent) == (3, {}, 0, 0, 0)
    assert np.all((times > 0) & (times < 5))
    assert len(late) == 3
    assert sorted(received) == [
        b"POST /model?0 HTTP/1.1\r\n",
        b"POST /model?1 HTTP/1.1\r\nx",
        b"POST /model?2 HTTP/1.1\r\nxx",
    ]


def test_errors_and_broken_connections_are_no_answers_however_quick(generator: Generator) -> None:
    with server(REFUSED) as (port, _):
        refused, times, _ = generator.send(order(port))
    assert (refused.answered, refused.refused) == (0, {"503": 3})
    assert np.all(times == math.inf)
    with server(HALF, closes=True) as (port, _):
        broken, times, _ = generator.send(order(port))
    assert (broken.answered, broken.broken) == (0, 3)
    gone, times, _ = generator.send(order(port))
    assert (gone.answered, gone.broken) == (0, 3)
    assert np.all(times == math.inf)


def test_no_request_waits_for_the_answer_to_another(generator: Generator) -> None:
    """A slow server meets as many requests as a quick one: here 60 in half a second, each answered after a second."""
    with server(ANSWER, wait_s=1.0) as (port, _):
        sent, times, _ = generator.send(order(port, tuple(poisson(120, 0.5, seed=1))))
    assert sent.answered == len(times) > 40
    assert np.min(times) > 0.9


def test_what_is_not_answered_in_time_is_given_up_and_counted(generator: Generator) -> None:
    with server(ANSWER, wait_s=1.0) as (port, _):
        sent, times, _ = generator.send(order(port, patience_s=0.1))
    assert (sent.answered, sent.unanswered) == (0, 3)
    assert np.all(times == math.inf)
    assert sent.wall_s < 0.9


def test_a_closed_loop_sends_as_the_server_answers(generator: Generator) -> None:
    with server(ANSWER, wait_s=0.02) as (port, _):
        sent, times, _ = generator.send(order(port, (), seconds=0.5))
    assert sent.answered == len(times)
    assert 10 < len(times) <= 52  # two connections, at most 25 times each
    assert sent.wall_s == pytest.approx(0.5, abs=0.3)


def test_a_generator_that_ends_says_what_it_printed(tmp_path: Path) -> None:
    with Generator(tmp_path / "none.jsonl", tmp_path) as process, pytest.raises(GeneratorFailure, match="none.jsonl"):
        process.send(order(1))
