"""Records the requests that a server gets, between its clients and itself."""

import asyncio
import contextlib
import json
import queue
import random
import signal
import threading
import urllib.parse
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import uvloop

from harness.apps.record.tee import Tee
from harness.artifacts.traffic import TrafficWriter
from harness.core.errors import ConfigError, RunDirError
from harness.core.traffic import TrafficHeader, TrafficRequest
from harness.machine.clock import utc_now
from harness.project import Project

WAITING = 64 * 2**20
"""Bytes of requests that may wait for the disk; what comes then is passed on and not recorded."""
DRAIN_S = 10.0
EVERY_S = 1.0
NO_BODY = "a body whose fields cannot be removed, for it is no JSON"


@dataclass(frozen=True, kw_only=True)
class Recording:
    """What was recorded. ``lost``: why requests that were wanted are not in the file -> how many."""

    file: str
    to: str
    passed: int
    written: int
    size_bytes: int
    lost: Mapping[str, int]
    full: bool


@dataclass(frozen=True, kw_only=True)
class RecordingPlan:
    """What is to be recorded.

    Attributes:
        listen: host and port; to: host and port of the server.
        share: of the requests that are kept, above 0, at most 1.
        most_bytes: size of the file at which recording ends; requests are passed on still.
        redacted: names of fields of JSON, tensors and parameters of the query whose values are not stored.
    """

    listen: tuple[str, int]
    to: tuple[str, int]
    file: Path
    share: float
    most_bytes: int
    redacted: frozenset[str]
    protocol: str


def record(project: Project, plan: RecordingPlan) -> Recording:
    """Pass requests on, and write them, until SIGINT or SIGTERM.

    Raises ``ConfigError``: the address cannot be listened on, or the file is there already; ``RunDirError``: the disk
    is full, or the file cannot be written.
    """
    header = TrafficHeader(
        protocol=plan.protocol,
        source=f"http://{plan.to[0]}:{plan.to[1]}",
        started=utc_now().isoformat(timespec="seconds"),
        sampled=plan.share,
        redacted=tuple(sorted(plan.redacted)),
    )
    with TrafficWriter(plan.file, header) as writer:
        recorder = Recorder(writer, plan.file, plan.redacted, plan.most_bytes)
        drawn = random.Random()
        tee = Tee(*plan.to, wanted=lambda: drawn.random() < plan.share, keep=recorder.keep)
        try:
            uvloop.run(_serve(project, plan, tee, recorder))
        except OSError as error:
            plan.file.unlink()
            where = f"{plan.listen[0]}:{plan.listen[1]}"
            raise ConfigError(f"--listen {where}: {error.strerror or error}", "name another port, or address") from None
        finally:
            recorder.close()
        if recorder.error is not None:
            raise recorder.error
        return Recording(
            file=str(plan.file),
            to=header.source,
            passed=tee.passed,
            written=recorder.written,
            size_bytes=recorder.size_bytes,
            lost=tee.lost + recorder.lost,
            full=recorder.full,
        )


async def _serve(project: Project, plan: RecordingPlan, tee: Tee, recorder: "Recorder") -> None:
    ended = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        loop.add_signal_handler(number, ended.set)
    server = await tee.listen(*plan.listen)
    project.progress.stage(
        f"record what {plan.listen[0]}:{plan.listen[1]} gets for {plan.to[0]}:{plan.to[1]}; Ctrl-C ends it"
    )
    try:
        while not ended.is_set():
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(ended.wait(), EVERY_S)
            project.progress.tick(f"{tee.passed:,} requests, {recorder.written:,} written")
        server.close()
        await tee.drain(DRAIN_S)
    finally:
        project.progress.finish()


class Recorder:
    """Writes requests in a thread of its own, without the fields that are not to be stored."""

    def __init__(self, writer: TrafficWriter, file: Path, redacted: frozenset[str], most_bytes: int) -> None:
        self._writer, self._file = writer, file
        self._redacted = redacted
        self._most_bytes = most_bytes
        self._queue: queue.SimpleQueue[TrafficRequest | None] = queue.SimpleQueue()
        self._lock = threading.Lock()
        self._waiting = 0
        self.written = 0
        self.full = False
        self.error: RunDirError | None = None
        self.lost: Counter[str] = Counter()
        self._thread = threading.Thread(target=self._write_on, name="recorder", daemon=True)
        self._thread.start()

    def keep(self, request: TrafficRequest) -> None:
        """Take a request from the response path; returns at once."""
        if self._waiting > WAITING:
            self._lose("the disk was too slow")
            return
        with self._lock:
            self._waiting += len(request.body)
        self._queue.put(request)

    def close(self) -> None:
        """Write what waits."""
        self._queue.put(None)
        self._thread.join()

    @property
    def size_bytes(self) -> int:
        return self._file.stat().st_size

    def _write_on(self) -> None:
        while (request := self._queue.get()) is not None:
            with self._lock:
                self._waiting -= len(request.body)
            if self.full or self.error is not None:
                continue
            try:
                kept = without(request, self._redacted)
            except ValueError:
                self._lose(NO_BODY)
                continue
            if self.size_bytes + len(kept.body) > self._most_bytes:
                self.full = True
                continue
            try:
                self._writer.write(kept)
            except RunDirError as error:
                self.error = error
                continue
            self.written += 1

    def _lose(self, why: str) -> None:
        with self._lock:
            self.lost[why] += 1


def without(request: TrafficRequest, names: frozenset[str]) -> TrafficRequest:
    """Return a request whose query and JSON body have null for each field of ``names``, wherever it stands.

    Raises ``ValueError``: there are ``names``, and the body is no JSON, so that nobody knows what it holds.
    """
    if not names:
        return request
    parts = urllib.parse.urlsplit(request.path)
    query = urllib.parse.parse_qsl(parts.query, keep_blank_values=True)
    path = request.path
    if any(name in names for name, _ in query):
        kept = urllib.parse.urlencode([(name, "" if name in names else value) for name, value in query])
        path = parts._replace(query=kept).geturl()
    body = request.body
    if body:
        value = json.loads(body)
        if _emptied(value, names):
            body = json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode()
    return replace(request, path=path, body=body)


def _emptied(value: Any, names: frozenset[str]) -> bool:
    """Set the fields of ``names`` to None, in place; return whether there were any.

    An object of which a field ``name`` is one of ``names`` is a tensor of that name in Open Inference: its ``data``
    goes.
    """
    changed = False
    waiting = [value]
    while waiting:
        item = waiting.pop()
        if isinstance(item, list):
            waiting += item
        elif isinstance(item, dict):
            gone = {key for key in item if key in names}
            if isinstance(item.get("name"), str) and item["name"] in names and "data" in item:
                gone.add("data")
            for key in gone:
                item[key] = None
            changed = changed or bool(gone)
            waiting += [inner for key, inner in item.items() if key not in gone]
    return changed
