"""Finds the processes that a user means: by id, name, port or container."""

import contextlib
import os
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from harness.checks.attach.sockets import LISTEN, inodes_of, listening
from harness.core.errors import ConfigError
from harness.machine.files import text_of
from harness.machine.proc_files import numbers_in, read, status_in

MOST_PROCESSES = 64
PORTS = 65536
LIST_THEM = "list processes with: ps -ef"
# In a path of a control group: docker-<id>.scope, cri-containerd-<id>.scope, /docker/<id>, /kubepods/.../<id>.
_ID = re.compile(r"[0-9a-f]{4,64}")
_CONTAINER = re.compile(r"[0-9a-f]{64}")


class NotThere(ConfigError):
    """Raised when what was named does not run, or not yet."""


@dataclass(frozen=True, slots=True)
class Asked:
    """Processes, and how the user named them."""

    words: str
    pids: tuple[int, ...]


def asked_for(
    *, pid: str | None = None, name: str | None = None, port: int | None = None, container: str | None = None
) -> Asked:
    """Return the processes that one of these means.

    Raises:
        NotThere: there is none.
        ConfigError: there are too many, or nothing can be named so.
    """
    if pid is not None:
        return _process(pid)
    if name is not None:
        return _some(f"--name {name}", (one for one in _others() if _is_named(one, name)))
    if port is not None:
        if not 0 < port < PORTS:
            raise ConfigError(f"--port {port} is no TCP port", "name one from 1 to 65535")
        return _some(f"--port {port}", _listeners(port))
    if not _ID.fullmatch(container or ""):
        raise ConfigError(f"--container {container} is no id of a container", "docker ps or crictl ps show ids")
    return _some(f"--container {container}", (one for one in _others() if _is_in(one, container or "")))


def _process(word: str) -> Asked:
    if not word.isdecimal():
        raise ConfigError(f"{word} is no number of a process", f"{LIST_THEM}; a name goes behind --name")
    pid = int(word)
    if pid == os.getpid():
        raise ConfigError(f"process {pid} is this command itself", LIST_THEM)
    if not Path(f"/proc/{pid}").exists():
        a_port = f"a port? --port {pid}; " if pid < PORTS else ""
        raise NotThere(f"no process {pid} here", f"{a_port}{LIST_THEM}; a container counts its processes anew")
    if text_of(Path(f"/proc/{pid}/status")).find(f"\nTgid:\t{pid}\n") < 0:
        leader = re.search(r"^Tgid:\t(\d+)", text_of(Path(f"/proc/{pid}/status")), re.MULTILINE)
        raise ConfigError(f"{pid} is a thread", f"name its process: {leader[1] if leader else LIST_THEM}")
    status = status_in(read(f"/proc/{pid}/stat"))
    if status is not None and status.is_kernel_thread:
        raise ConfigError(f"process {pid} is a kernel thread: it has no stacks, locks or connections here", LIST_THEM)
    below = sorted(_same_program(pid))
    looked_at = below[: MOST_PROCESSES - 1]
    more = f" and {len(looked_at)} of the {len(below)} below it" if len(below) > len(looked_at) else ""
    return Asked(f"process {pid}{more}", (pid, *looked_at))


def _some(words: str, pids: Iterable[int]) -> Asked:
    found = tuple(sorted(set(pids)))
    if not found:
        raise NotThere(f"{words}: no process that can be seen here", f"{LIST_THEM}, or run as root, on the host")
    if len(found) > MOST_PROCESSES:
        raise ConfigError(f"{words}: {len(found)} processes", f"name one: at most {MOST_PROCESSES} are looked at")
    return Asked(words, found)


def _others() -> Iterator[int]:
    """Yield what is neither this command nor one of those that started it, whose command lines have its words."""
    own = {os.getpid()}
    parent = os.getppid()
    while parent > 1 and parent not in own:
        own.add(parent)
        parent = _parent(parent)
    return (pid for pid in numbers_in("/proc") if pid not in own)


def _parent(pid: int) -> int:
    status = status_in(read(f"/proc/{pid}/stat"))
    return status.parent if status is not None else 0


def _command(pid: int) -> str:
    return text_of(Path(f"/proc/{pid}/cmdline")).replace("\0", " ").strip()


def _is_named(pid: int, name: str) -> bool:
    return name == text_of(Path(f"/proc/{pid}/comm")).strip() or name in _command(pid)


def _is_in(pid: int, container: str) -> bool:
    return any(one.startswith(container) for one in container_ids(text_of(Path(f"/proc/{pid}/cgroup"))))


def container_ids(groups: str) -> list[str]:
    """Return the containers around a process; ``groups``: the text of its ``/proc/PID/cgroup``."""
    return _CONTAINER.findall(groups)


def _same_program(pid: int) -> Iterator[int]:
    """Yield the processes below this one that run the same program: what a prefork server has forked."""
    children: dict[int, list[int]] = {}
    for one in numbers_in("/proc"):
        children.setdefault(_parent(one), []).append(one)
    own, waiting = _program(pid), [*children.get(pid, ())]
    while waiting:
        child = waiting.pop()
        if child != os.getpid() and own and _program(child) == own:
            yield child
            waiting += children.get(child, ())


def _program(pid: int) -> str:
    with contextlib.suppress(OSError):
        return str(Path(f"/proc/{pid}/exe").readlink())
    return ""


def _listeners(port: int) -> Sequence[int]:
    inodes = {one.inode for one in listening() if one.port == port and one.state == LISTEN}
    return [pid for pid in _others() if inodes & inodes_of(f"/proc/{pid}")]
