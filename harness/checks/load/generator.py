"""A process that sends requests to a server at given times, however slowly it answers, and notes how long each took.

An open loop: no request waits for the answer to another, for users do not. A client that sends its next request only
once the last is answered slows down with the server, and leaves out what everybody else would have waited for (Tene's
"coordinated omission"). A closed loop sends so on purpose, as many at a time as it has ``connections``: for the rate
that a server cannot exceed.

Started with the name of a file of requests, it reads orders from its standard input, a line of JSON and a line
with the name of a file each, and answers each with a line. The file gets two floats (native, 64 bits) per request:
seconds to its answer, infinite where none came or it was an error, and seconds by which it was sent late. The event
loop and the parser are those of uvicorn: aiohttp's client takes 200 us of a core a request, and at 2,000 requests a
second sends half of them late; this takes 25 us (measured on two cores of 2.5 GHz).
"""

import asyncio
import collections
import json
import sys
import time
from array import array
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import cast

import httptools
import uvloop

from harness.artifacts.traffic import read_traffic
from harness.core.traffic import TrafficRequest

UNANSWERED = float("inf")
MOST_BYTES = 256 * 2**20
"""Of requests that are kept ready to be sent; those that come after them in the file are not sent."""
TIMER_S = 1e-3
"""What the loop's timers are rounded to: for the rest it asks the clock again and again."""
MOST_OUTSTANDING = 2000
"""Requests without an answer at which an order ends: what arrives after them would tell nothing new."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Order:
    """One block of load.

    Attributes:
        port: of the server, on this machine.
        at: seconds since the block's begin at which requests are sent, ascending; empty for a closed loop.
        first: place in the file of requests of the first that is sent; they repeat.
        connections: that are open before the block begins; with an empty ``at`` each sends as it is answered.
        seconds: how long a closed loop lasts.
        patience_s: how long after the last request answers are waited for.
    """

    port: int
    at: tuple[float, ...]
    first: int
    connections: int
    seconds: float
    patience_s: float


@dataclass(frozen=True, kw_only=True, slots=True)
class Sent:
    """What became of a block.

    Attributes:
        answered: with a status below 400. ``refused``: status -> how many. ``broken``: connections that ended without
            an answer, or could not be made. ``unanswered``: still out when patience ended.
        unsent: arrivals that were left out because ``MOST_OUTSTANDING`` were without an answer.
        wall_s: from the first request to the last answer, or to the end of patience.
    """

    answered: int
    refused: dict[str, int]
    broken: int
    unanswered: int
    unsent: int
    wall_s: float


class _Connection(asyncio.Protocol):
    """One connection of HTTP/1.1, with one request at a time."""

    def __init__(self, block: "_Block") -> None:
        self.block = block
        self.place: int | None = None
        self.sent_at = 0.0
        self.transport: asyncio.Transport
        self.ends_with_connection = False
        self.parser = httptools.HttpResponseParser(self)

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = cast("asyncio.Transport", transport)  # uvloop's is none by its class

    def send(self, place: int, raw: bytes, sent_at: float) -> None:
        self.place, self.sent_at = place, sent_at
        self.transport.write(raw)

    def data_received(self, data: bytes) -> None:
        try:
            self.parser.feed_data(data)
        except httptools.HttpParserError:
            self.transport.abort()

    def on_message_begin(self) -> None:
        self.ends_with_connection = True

    def on_header(self, name: bytes, _: bytes) -> None:
        if name.lower() in (b"content-length", b"transfer-encoding"):
            self.ends_with_connection = False

    def on_message_complete(self) -> None:
        self.ends_with_connection = False
        status = self.parser.get_status_code()
        if status < 200:
            return
        place, self.place = self.place, None
        alive = self.parser.should_keep_alive() and not self.transport.is_closing()
        self.parser = httptools.HttpResponseParser(self)
        if not alive:
            self.transport.close()
        if place is not None:
            self.block.answer(place, time.perf_counter() - self.sent_at, status, self if alive else None)

    def connection_lost(self, error: Exception | None) -> None:
        if self.ends_with_connection and error is None and self.parser.get_status_code():
            self.on_message_complete()  # HTTP/1.0 without a length
        place, self.place = self.place, None
        self.block.lose(self, place)


class _Block:
    """One order while it runs."""

    def __init__(self, order: Order, raw: Sequence[bytes]) -> None:
        self.order = order
        self.raw = raw
        self.idle: collections.deque[_Connection] = collections.deque()
        self.opened: set[_Connection] = set()
        self.samples = array("d")
        self.refused: collections.Counter[str] = collections.Counter()
        self.answered = self.broken = self.out = 0
        self.all_back = asyncio.Event()
        self.ends_at = UNANSWERED

    async def run(self) -> Sent:
        for _ in range(self.order.connections):
            if (connection := await self._connect()) is not None:
                self.idle.append(connection)
        began = time.perf_counter()
        if self.order.at:
            await self._open_loop(began)
        else:
            self._closed_loop(began)
        await self._wait(began)
        wall_s = time.perf_counter() - began
        unanswered = self.out
        for connection in list(self.opened):
            connection.place = None
            connection.transport.abort()
        return Sent(
            answered=self.answered,
            refused=dict(self.refused),
            broken=self.broken,
            unanswered=unanswered,
            unsent=max(len(self.order.at) - len(self.samples) // 2, 0),
            wall_s=wall_s,
        )

    async def _open_loop(self, began: float) -> None:
        for offset in self.order.at:
            if (early := began + offset - time.perf_counter()) > TIMER_S:
                await asyncio.sleep(early - TIMER_S)
            while time.perf_counter() < began + offset:  # noqa: ASYNC110 -- only the clock ends it
                await asyncio.sleep(0)
            if self.out >= MOST_OUTSTANDING:
                return
            self._send(began + offset)

    def _closed_loop(self, began: float) -> None:
        self.ends_at = began + self.order.seconds
        for _ in range(len(self.idle)):
            self._send(time.perf_counter())

    def _send(self, due: float) -> None:
        place = len(self.samples) // 2
        raw = self.raw[(self.order.first + place) % len(self.raw)]
        now = time.perf_counter()
        self.samples.extend((UNANSWERED, now - due))
        self.out += 1
        self.all_back.clear()
        if self.idle:
            self.idle.pop().send(place, raw, now)
        else:  # the time to connect is the caller's too
            task = asyncio.ensure_future(self._connect())
            task.add_done_callback(lambda done: self._send_on(done.result(), place, raw, now))

    def _send_on(self, connection: _Connection | None, place: int, raw: bytes, now: float) -> None:
        if connection is None:
            self._count_broken()
        else:
            connection.send(place, raw, now)

    async def _connect(self) -> _Connection | None:
        loop = asyncio.get_running_loop()
        try:
            _, connection = await loop.create_connection(lambda: _Connection(self), "127.0.0.1", self.order.port)
        except OSError:
            return None
        self.opened.add(connection)
        return connection

    async def _wait(self, began: float) -> None:
        last = self.order.at[-1] if self.order.at else self.order.seconds
        if self.out:
            remaining = began + last + self.order.patience_s - time.perf_counter()
            try:
                await asyncio.wait_for(self.all_back.wait(), max(remaining, 0.0))
            except TimeoutError:
                return

    def answer(self, place: int, took_s: float, status: int, connection: _Connection | None) -> None:
        if status < 400:
            self.samples[2 * place] = took_s
            self.answered += 1
        else:
            self.refused[str(status)] += 1
        if connection is not None:
            self.idle.append(connection)
        self._back()

    def lose(self, connection: _Connection, place: int | None) -> None:
        self.opened.discard(connection)
        if place is not None:
            self._count_broken()
        elif connection in self.idle:
            self.idle.remove(connection)

    def _count_broken(self) -> None:
        self.broken += 1
        self._back()

    def _back(self) -> None:
        self.out -= 1
        if time.perf_counter() < self.ends_at != UNANSWERED:
            self._send(time.perf_counter())
        elif not self.out:
            self.all_back.set()


def encoded(request: TrafficRequest) -> bytes:
    """Return a request as it goes over the wire; its length and the host are ours."""
    headers = {"host": "127.0.0.1", **request.headers, "content-length": str(len(request.body))}
    lines = [f"{request.method} {request.path} HTTP/1.1", *(f"{name}: {value}" for name, value in headers.items())]
    return "\r\n".join([*lines, "", ""]).encode("latin-1") + request.body


def main(requests: str) -> None:
    raw, size = [], 0
    for request in read_traffic(Path(requests)):
        raw.append(encoded(request))
        size += len(raw[-1])
        if size > MOST_BYTES:
            break
    for line in sys.stdin:
        given = json.loads(line)
        samples = Path(next(sys.stdin).rstrip("\n"))
        block = _Block(Order(**{**given, "at": tuple(given["at"])}), raw)
        sent = uvloop.run(block.run())
        samples.write_bytes(block.samples.tobytes())
        print(json.dumps(asdict(sent)), flush=True)


if __name__ == "__main__":
    main(sys.argv[1])
