"""Sends recorded requests to one server, and keeps every answer; a hang ends it by proof, not by a deadline alone."""

import asyncio
import itertools
import statistics
import time
from collections import Counter
from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Final

import aiohttp
import yarl

from harness.checks.shadow.server import HOST, POLL_S, Server
from harness.core.shadow import Ended, Failure, Stop
from harness.core.traffic import TrafficRequest

PATIENCE_S: Final = 5.0  # how long an answer is waited for before anybody looks at the server
MOST_TIMEOUTS: Final = 3
AGAIN_S: Final = 0.5  # how long a server that drops a request gets to end
PARTS: Final = 4
REPEATED: Final = 200
LEAST_REPEATED: Final = 40
REPEATED_S: Final = 20.0
SENDERS: Final = 16
UNDER_LOAD_S: Final = 0.5
LOOKS_FOR_LOAD: Final = 50  # for a moment at which half of the senders wait for an answer
# What was sent later than this before the signal, or than half of what an answer takes, may not have been read: who
# stops may close connections on which it knows of no request.
SENT_S: Final = 0.01


@dataclass(frozen=True, kw_only=True, slots=True)
class Exchange:
    """One answer, or why there is none; ``headers`` have lower-case names, ``body`` is decompressed."""

    line: int = 0
    status: int = 0
    headers: Mapping[str, str] = field(default_factory=dict)
    body: bytes = b""
    failure: Failure | None = None


class Answers:
    """The answers of one server, in the order in which it was asked; their bodies lie in a file.

    Args:
        path: a new file.
        count: requests of one pass; what was asked after that is the same requests again.
    """

    def __init__(self, path: Path, count: int) -> None:
        self._file = path.open("w+b")
        self.count = count
        self._kept: list[tuple[Exchange, int, int]] = []

    def append(self, exchange: Exchange) -> None:
        offset = self._file.seek(0, 2)
        self._file.write(exchange.body)
        self._kept.append((replace(exchange, body=b""), offset, len(exchange.body)))

    def passes(self) -> list[Iterator[Exchange]]:
        """Return the answers to each pass over the requests; the last may be shorter."""
        return [self._from(begin) for begin in range(0, len(self._kept), self.count)]

    def _from(self, begin: int) -> Iterator[Exchange]:
        for exchange, offset, length in self._kept[begin : begin + self.count]:
            self._file.seek(offset)
            yield replace(exchange, body=self._file.read(length))

    @property
    def statuses(self) -> list[int]:
        """Of the first pass; 0: no answer."""
        return [exchange.status for exchange, *_ in self._kept[: self.count]]

    @property
    def failures(self) -> Counter[Failure]:
        """Of all passes."""
        return Counter(exchange.failure for exchange, *_ in self._kept if exchange.failure is not None)

    def close(self) -> None:
        self._file.close()


@dataclass(frozen=True, kw_only=True, slots=True)
class Asked:
    """What came of asking: how the server ended meanwhile, how many it was sent, and its growth by parts."""

    ended: Ended | None = None
    count: int = 0
    last: int = 0
    growth: tuple[float, ...] = ()


def ask_all(
    server: Server,
    requests: Callable[[], Iterable[TrafficRequest]],
    answers: Answers,
    *,
    deadline_s: float,
    step: Callable[[], None],
) -> Asked:
    """Send all requests one by one, then again, and go on until it can be told whether memory grows."""
    return asyncio.run(_ask_all(server, requests, answers, deadline_s, step))


def stop_under_load(server: Server, requests: Sequence[tuple[TrafficRequest, int]], *, deadline_s: float) -> Stop:
    """Tell a server to stop while requests, each with its usual status, are in flight."""
    return asyncio.run(_stop_under_load(server, requests, deadline_s))


@asynccontextmanager
async def _session(deadline_s: float, *, reused: bool = False) -> AsyncIterator[aiohttp.ClientSession]:
    """Yield a session with a connection for each request: that it waits for an answer is seen from outside then."""
    async with aiohttp.ClientSession(
        connector=aiohttp.TCPConnector(limit=0, force_close=not reused),
        timeout=aiohttp.ClientTimeout(total=deadline_s),
        cookie_jar=aiohttp.DummyCookieJar(),
        skip_auto_headers=("User-Agent", "Accept", "Accept-Encoding", "Content-Type"),
    ) as session:
        yield session


async def _ask(session: aiohttp.ClientSession, port: int, request: TrafficRequest) -> Exchange:
    url = yarl.URL(f"http://{HOST}:{port}{request.path}", encoded=True)
    body = request.body or None
    try:
        async with session.request(
            request.method, url, data=body, headers=request.headers, allow_redirects=False
        ) as answer:
            content = await answer.read()
            headers = {name.lower(): value for name, value in answer.headers.items()}
            return Exchange(line=request.line, status=answer.status, headers=headers, body=content)
    except TimeoutError:
        failure = Failure.TIMEOUT
    except aiohttp.ClientConnectorError:
        failure = Failure.REFUSED
    except aiohttp.ClientPayloadError:
        failure = Failure.CUT_OFF
    except (aiohttp.ServerDisconnectedError, aiohttp.ClientOSError):
        failure = Failure.DROPPED
    except (aiohttp.ClientError, ValueError):
        failure = Failure.NO_HTTP
    return Exchange(line=request.line, failure=failure)


async def _watched(
    server: Server, session: aiohttp.ClientSession, request: TrafficRequest, deadline_s: float
) -> Exchange:
    """Ask once; where an answer takes long, somebody looks what the server does meanwhile."""
    began = time.monotonic()
    task = asyncio.create_task(_ask(session, server.port, request))
    try:
        while not (await asyncio.wait({task}, timeout=min(PATIENCE_S, deadline_s)))[0]:
            looked = await asyncio.to_thread(server.look)
            if task.done():
                break
            if looked.hung or time.monotonic() - began > deadline_s:
                return Exchange(line=request.line, failure=Failure.HANG if looked.hung else Failure.TIMEOUT)
        return task.result()
    finally:
        task.cancel()


async def _ask_all(
    server: Server,
    requests: Callable[[], Iterable[TrafficRequest]],
    answers: Answers,
    deadline_s: float,
    step: Callable[[], None],
) -> Asked:
    count = last = lacking = 0
    took: list[float] = []
    ended: Ended | None = None

    async def send(request: TrafficRequest) -> bool:
        """Return whether the server can be asked more."""
        nonlocal count, last, lacking, ended
        began = time.monotonic()
        exchange = await _watched(server, session, request, deadline_s)
        took.append(time.monotonic() - began)
        answers.append(exchange)
        count, last = count + 1, request.line
        step()
        lacking += exchange.failure is Failure.TIMEOUT
        if exchange.failure is not None and exchange.failure is not Failure.TIMEOUT:
            await asyncio.to_thread(server.wait_for_end, AGAIN_S if sum(answers.failures.values()) <= 3 else 0.0)
        ended = Ended.HANG if exchange.failure is Failure.HANG else server.ended()
        return ended is None and lacking < MOST_TIMEOUTS

    async with _session(2 * deadline_s + PATIENCE_S) as session:
        for request in requests():
            if not await send(request):
                return Asked(ended=ended, count=count, last=last)
        each_s = statistics.median(took)  # the first ones may have waited for a model to be loaded
        total = max(count, min(REPEATED, int(REPEATED_S / each_s)))
        marks = [round(total * part / PARTS) for part in range(PARTS + 1)]
        memory = [server.tree.memory()[1]]
        again = itertools.chain.from_iterable(requests() for _ in itertools.count())
        for number, request in enumerate(itertools.islice(again, total), start=1):
            if not await send(request):
                return Asked(ended=ended, count=count, last=last)
            if number in marks[1:]:
                memory.append(server.tree.memory()[1])
    sizes = [end - begin for begin, end in itertools.pairwise(marks)]
    grown = [(after - before) / size for (before, after), size in zip(itertools.pairwise(memory), sizes, strict=True)]
    return Asked(count=count, last=last, growth=tuple(grown) if total >= LEAST_REPEATED else ())


async def _stop_under_load(server: Server, requests: Sequence[tuple[TrafficRequest, int]], deadline_s: float) -> Stop:
    sent: dict[int, float] = {}
    outcomes: dict[int, bool | None] = {}
    took: list[float] = []
    numbers = itertools.count()
    stopping = asyncio.Event()

    async def send() -> None:
        async with _session(deadline_s, reused=True) as session:  # its own connection, closed with the last answer
            while not stopping.is_set():
                number = next(numbers)
                request, status = requests[number % len(requests)]
                sent[number] = time.monotonic()
                exchange = await _ask(session, server.port, request)
                outcomes[number] = None if exchange.failure is not None else exchange.status == status
                took.append(time.monotonic() - sent[number])
                if exchange.failure is not None:
                    await asyncio.sleep(0.02)

    def in_flight() -> list[int]:
        surely = time.monotonic() - max(SENT_S, statistics.median(took) / 2 if took else 0.0)
        return [number for number, at in sent.items() if number not in outcomes and at <= surely]

    senders = [asyncio.create_task(send()) for _ in range(SENDERS if requests else 0)]
    if requests:
        await asyncio.sleep(UNDER_LOAD_S)
        for _ in range(LOOKS_FOR_LOAD):
            if len(in_flight()) >= SENDERS / 2:
                break
            await asyncio.sleep(POLL_S)
    now = time.monotonic()
    server.tell_to_stop()  # nothing is received between the signal and the next line
    flying = in_flight()
    stopping.set()
    stop = await asyncio.to_thread(server.wait_until_stopped, now)
    if senders:
        await asyncio.wait(senders, timeout=AGAIN_S)
    for sender in senders:
        sender.cancel()
    await asyncio.gather(*senders, return_exceptions=True)
    ends = Counter(outcomes.get(number) for number in flying)
    return replace(stop, in_flight=len(flying), answered=ends[True], refused=ends[False], dropped=ends[None])
