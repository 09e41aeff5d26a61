"""Starts one server as ``server.toml`` says, waits until it is ready, tells it to stop, and leaves nothing of it."""

import contextlib
import http.client
import os
import re
import secrets
import signal
import socket
import subprocess
import time
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from harness.artifacts.server_file import PLACEHOLDER
from harness.checks.shadow.tree import MARK, Tree, main_process
from harness.core.errors import ConfigError
from harness.core.shadow import Build, Ended, Life, Looked, ServerSettings, Stop
from harness.machine.files import last_lines
from harness.machine.processes import Stream, reap, start
from harness.probing.processes import describe_exit, worker_environment

HOST: Final = "127.0.0.1"
POLL_S: Final = 0.02
ANSWER_S: Final = 1.0  # what a question whether it is ready may take
FIRST_LOOK_S: Final = 10.0
LOOK_EVERY_S: Final = 10.0
LAST_LINES: Final = 8
LEFT_S: Final = 1.0  # what processes below the main one get to end after it

Look = Callable[[Collection[int]], Looked]
"""Reads off processes what they do; takes a few seconds."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Prepared:
    """One side of a shadow run: what placeholders stand for there.

    Attributes:
        values: all but the ports; ``environment``: on top of what the server inherits, with placeholders.
        folder: where its logs go.
    """

    values: Mapping[str, str]
    folder: Path
    inherited: Mapping[str, str] = field(default_factory=dict)

    def filled(self, words: Sequence[str], ports: Mapping[str, int]) -> list[str]:
        values = {**self.values, **{name: str(port) for name, port in ports.items()}}
        return [PLACEHOLDER.sub(lambda match: values[match[1]], word) for word in words]

    def variables(self, settings: ServerSettings, ports: Mapping[str, int]) -> dict[str, str]:
        texts = settings.environment
        own = dict(zip(texts, self.filled(list(texts.values()), ports), strict=True))
        return worker_environment({**self.inherited, **own})


def build(settings: ServerSettings, side: Prepared) -> Build:
    """Run a side's build, its output to ``build.log``. Raises ``ConfigError``: the command cannot be executed."""
    log, begin = side.folder / "build.log", time.monotonic()
    with log.open("wb") as output:
        process = _started(
            side.filled(settings.build, {}),
            settings,
            output,
            worker_environment(side.inherited),
            f"{settings.file}.build",
        )
        code: int | None = None
        try:
            with contextlib.suppress(subprocess.TimeoutExpired):
                code = process.wait(settings.build_deadline_s)
        finally:
            reap(process)
    seconds = time.monotonic() - begin
    return Build(code=code, seconds=seconds, log=() if code == 0 else last_lines(log, LAST_LINES))


class Server:
    """One life of a server; ``running`` makes it.

    Attributes:
        port: on which it has to listen; ``command``: as it was executed.
        tree: its processes; ``begin``: monotonic seconds of its start.
        looked: what the last look at it saw.
    """

    def __init__(
        self, settings: ServerSettings, side: Prepared, log: Path, look: Look, limit_bytes: int | None
    ) -> None:
        self._settings, self._log, self._look = settings, log, look
        self.looked: Looked | None = None
        words = (*settings.command, *settings.environment.values())
        names = {match[1] for word in words for match in PLACEHOLDER.finditer(word) if match[1].startswith("port")}
        ports = _free_ports(sorted(names))
        self.port = ports["port"]
        self.command = side.filled(settings.command, ports)
        mark = secrets.token_hex(8)
        with log.open("wb") as output:
            self.begin = time.monotonic()
            variables = {**side.variables(settings, ports), MARK: mark}
            self.process = _started(self.command, settings, output, variables, f"{settings.file}.command")
        self._main = self.process.pid
        self.tree = Tree(self.process.pid, mark, limit_bytes)

    def wait_until_ready(self) -> Life:
        """Return the life so far: ready, or how it ended before it was."""
        settings = self._settings
        deadline, next_look = self.begin + settings.ready_deadline_s, self.begin + FIRST_LOOK_S
        pattern = re.compile(settings.ready_log) if settings.ready_log else None
        while True:
            ready = self._is_ready(pattern)
            now = time.monotonic()
            if (ended := self.ended()) is not None:
                return self._life(ended=ended)
            if ready:
                self._main = main_process(self.tree.pids(), self.process.pid)
                total, _ = self.tree.memory()
                self.tree.peak_bytes = max(self.tree.peak_bytes, total)
                return self._life(ready_s=now - self.begin)
            if now > min(deadline, next_look):
                hung = self.look().hung
                if hung or now > deadline:
                    return self._life(ended=Ended.HANG if hung else Ended.LATE)
                next_look = time.monotonic() + LOOK_EVERY_S
            time.sleep(POLL_S)

    def ended(self) -> Ended | None:
        """Return how it has ended by itself, None while it lives."""
        if self.tree.over_limit:
            return Ended.MEMORY
        return Ended.ITSELF if self.process.poll() is not None else None

    def wait_for_end(self, most_s: float) -> None:
        with contextlib.suppress(subprocess.TimeoutExpired):
            self.process.wait(most_s)

    def look(self) -> Looked:
        self.looked = self._look(self.tree.pids())
        return self.looked

    def end_facts(self, ended: Ended) -> dict[str, Any]:
        """Return what a ``Life`` says of an end that nobody asked for."""
        return {
            "ended": ended,
            "end": describe_exit(self.process.returncode) if ended is Ended.ITSELF else "",
            "looked": self.looked,
            "log": self.log_lines(),
        }

    def log_lines(self) -> tuple[str, ...]:
        return last_lines(self._log, LAST_LINES)

    def tell_to_stop(self) -> None:
        with contextlib.suppress(ProcessLookupError):
            os.kill(self._main, signal.Signals[self._settings.stop_signal])

    def wait_until_stopped(self, since: float) -> Stop:
        """Return how it ended after it was told to, at monotonic ``since``; killed after the deadline."""
        code: int | None = None
        with contextlib.suppress(subprocess.TimeoutExpired):
            code = self.process.wait(max(0.0, since + self._settings.stop_deadline_s - time.monotonic()))
        seconds = time.monotonic() - since
        left = self.tree.left() if code is not None else []
        until = time.monotonic() + LEFT_S
        while left and time.monotonic() < until:
            time.sleep(POLL_S)
            left = self.tree.left()
        end = describe_exit(code).removeprefix("signal ") if code is not None else ""
        return Stop(code=code, end=end, seconds=seconds, left=len(left))

    def _life(self, *, ready_s: float | None = None, ended: Ended | None = None) -> Life:
        return Life(
            port=self.port,
            ready_s=ready_s,
            peak_bytes=self.tree.peak_bytes,
            **(self.end_facts(ended) if ended is not None else {}),
        )

    def _is_ready(self, pattern: re.Pattern[str] | None) -> bool:
        if pattern is not None:
            return pattern.search(self._log.read_text(errors="replace")) is not None
        if not self._settings.ready_path:
            with contextlib.suppress(OSError), socket.create_connection((HOST, self.port), ANSWER_S):
                return True
            return False
        connection = http.client.HTTPConnection(HOST, self.port, timeout=ANSWER_S)
        try:
            connection.request("GET", self._settings.ready_path)
            return connection.getresponse().status == self._settings.ready_status
        except (OSError, http.client.HTTPException):
            return False
        finally:
            connection.close()


@contextlib.contextmanager
def running(
    settings: ServerSettings, side: Prepared, log: Path, look: Look, limit_bytes: int | None
) -> Iterator[Server]:
    """Yield a server that was started; nothing of it is left afterwards, however the block ends.

    Raises ``ConfigError``: the command cannot be executed.
    """
    server = Server(settings, side, log, look, limit_bytes)
    try:
        with server.tree:
            yield server
    finally:
        reap(server.process)
        server.tree.kill()


def _started(
    command: Sequence[str], settings: ServerSettings, output: Stream, env: Mapping[str, str], where: str
) -> "subprocess.Popen[bytes]":
    try:
        return start(command, stdout=output, stderr=subprocess.STDOUT, cwd=Path(settings.cwd), env=env)
    except OSError as error:
        raise ConfigError(
            f"{where}: {command[0]} cannot be executed: {error.strerror}",
            "write a program that is on the PATH, or its path",
        ) from None


def _free_ports(names: Sequence[str]) -> dict[str, int]:
    """Return a port of this machine for each name that nobody listens on now."""
    with contextlib.ExitStack() as opened:
        sockets = {name: opened.enter_context(socket.socket()) for name in names}
        for each in sockets.values():
            each.bind((HOST, 0))
        return {name: each.getsockname()[1] for name, each in sockets.items()}
