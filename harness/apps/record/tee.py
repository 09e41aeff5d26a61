"""Passes the bytes of HTTP on between clients and a server, and reads the requests among them on the side.

Nothing that passes is changed, so that streaming, keep-alive, trailers and upgrades are what they were, and a request
that cannot be read is still served. What is read of it waits in memory for a thread that writes it (``Recorder.keep``).
"""

import asyncio
import contextlib
import time
from collections import Counter
from collections.abc import Callable
from typing import cast

import httptools

from harness.core.traffic import TrafficRequest

KEPT_HEADERS = ("content-type", "accept", "content-encoding", "inference-header-content-length")
"""What a server's answer may depend on. Never cookies, keys and tokens."""
LARGEST_BODY = 64 * 2**20

Keep = Callable[[TrafficRequest], None]
Wanted = Callable[[], bool]


class Tee:
    """Counts what passes: ``passed`` requests, and by reason those that were not kept."""

    def __init__(self, host: str, port: int, *, wanted: Wanted, keep: Keep) -> None:
        """Prepare to pass on to ``host:port``; ``wanted``: asked at the begin of a request whether to keep it."""
        self.host, self.port = host, port
        self.wanted, self.keep = wanted, keep
        self.passed = 0
        self.lost: Counter[str] = Counter()
        self.began: float | None = None
        self.open: set[_Side] = set()

    def since_first(self) -> float:
        """Return seconds since the first request came."""
        now = time.monotonic()
        if self.began is None:
            self.began = now
        return now - self.began

    async def listen(self, host: str, port: int) -> asyncio.Server:
        """Return what accepts connections. Raises ``OSError``: the address is not ours to listen on."""
        return await asyncio.get_running_loop().create_server(lambda: _Client(self), host, port)

    async def drain(self, seconds: float) -> None:
        """Let go of connections without a request under way, and wait for the others' answers."""
        until = time.monotonic() + seconds
        while self.open and time.monotonic() < until:
            for side in [side for side in self.open if side.is_idle()]:
                side.close()
            await asyncio.sleep(0.02)
        for side in list(self.open):
            side.close()
        await asyncio.sleep(0)


class _Side(asyncio.Protocol):
    """One end of a connection that is passed on: bytes go to ``other`` no faster than it takes them."""

    transport: asyncio.Transport | None = None
    other: "_Side | None" = None

    def __init__(self, tee: Tee) -> None:
        self.tee = tee
        self.early: list[bytes] = []
        self.has_ended = False

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = cast("asyncio.Transport", transport)

    def data_received(self, data: bytes) -> None:
        if self.other is not None and self.other.transport is not None:
            self.other.transport.write(data)
        else:
            self.early.append(data)  # the other end is being reached

    def eof_received(self) -> bool:
        self.has_ended = True
        if self.other is not None and self.other.transport is not None:
            with contextlib.suppress(OSError, RuntimeError):
                self.other.transport.write_eof()
        return True  # the other direction stays open until it ends too

    def pause_writing(self) -> None:
        if self.other is not None and self.other.transport is not None:
            self.other.transport.pause_reading()

    def resume_writing(self) -> None:
        if self.other is not None and self.other.transport is not None:
            self.other.transport.resume_reading()

    def connection_lost(self, _: Exception | None) -> None:
        other, self.other = self.other, None
        if other is not None:
            other.close()

    def close(self) -> None:
        if self.transport is not None:
            self.transport.close()

    def is_idle(self) -> bool:
        return False


class _Server(_Side):
    """The end towards the server; it answers, so that the client's requests are no more under way."""

    def __init__(self, tee: Tee, client: "_Client") -> None:
        super().__init__(tee)
        self.other = self.client = client
        self.answers = httptools.HttpResponseParser(self)
        self.is_read = True

    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        if self.is_read:
            try:
                self.answers.feed_data(data)
            except (httptools.HttpParserError, httptools.HttpParserUpgrade):
                self.is_read = False

    def on_message_complete(self) -> None:
        if self.answers.get_status_code() >= 200:
            self.client.under_way -= 1


class _Client(_Side):
    """The end towards a client: what comes from here are requests."""

    def __init__(self, tee: Tee) -> None:
        super().__init__(tee)
        self.requests = httptools.HttpRequestParser(self)
        self.is_read = True
        self.under_way = 0
        self.at = 0.0
        self.is_wanted = False
        self.url = b""
        self.headers: dict[str, str] = {}
        self.body = bytearray()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        super().connection_made(transport)
        self.tee.open.add(self)
        cast("asyncio.Transport", transport).pause_reading()
        task = asyncio.ensure_future(self._reach())
        task.add_done_callback(lambda done: done.exception())

    async def _reach(self) -> None:
        assert self.transport is not None
        try:
            _, server = await asyncio.get_running_loop().create_connection(
                lambda: _Server(self.tee, self), self.tee.host, self.tee.port
            )
        except OSError:
            self.tee.lost["the server refused the connection"] += 1
            self.transport.abort()
            return
        if self.transport.is_closing():
            server.close()
            return
        self.other = server
        if server.transport is not None:
            server.transport.write(b"".join(self.early))
            self.early.clear()
            if self.has_ended:
                server.transport.write_eof()

    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        if self.is_read:
            try:
                self.requests.feed_data(data)
            except httptools.HttpParserUpgrade:
                self.is_read = False
            except httptools.HttpParserError:
                self.is_read = False
                self.tee.lost["no HTTP/1"] += 1

    def connection_lost(self, error: Exception | None) -> None:
        self.tee.open.discard(self)
        super().connection_lost(error)

    def is_idle(self) -> bool:
        return self.under_way <= 0

    def on_message_begin(self) -> None:
        self.under_way += 1
        self.at = self.tee.since_first()
        self.tee.passed += 1
        self.is_wanted = self.tee.wanted()
        self.url, self.headers, self.body = b"", {}, bytearray()

    def on_url(self, url: bytes) -> None:
        self.url += url

    def on_header(self, name: bytes, value: bytes) -> None:
        key = name.decode("latin-1").lower()
        if key in KEPT_HEADERS:
            self.headers[key] = value.decode("latin-1")

    def on_body(self, body: bytes) -> None:
        if self.is_wanted and len(self.body) <= LARGEST_BODY:
            self.body += body

    def on_message_complete(self) -> None:
        if not self.is_wanted:
            return
        if len(self.body) > LARGEST_BODY:
            self.tee.lost[f"a body of more than {LARGEST_BODY // 2**20} MiB"] += 1
            return
        self.tee.keep(
            TrafficRequest(
                at=round(self.at, 6),
                method=self.requests.get_method().decode("latin-1"),
                path=self.url.decode("latin-1"),
                headers=self.headers,
                body=bytes(self.body),
            )
        )
