"""Runs debuggers, each with a deadline and ended with its whole process group; and c++filt."""

import contextlib
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from harness.checks.hang.symbols import plain_demangled
from harness.machine import processes
from harness.machine.files import text_of

_POLL_S: Final = 0.002
_DEMANGLE_S: Final = 2.0
_YAMA: Final = Path("/proc/sys/kernel/yama/ptrace_scope")
_PENDING = re.compile(r"^(?:SigPnd|ShdPnd):\t([0-9a-f]+)$", re.MULTILINE)
_FORBIDDEN: Final = ("not permitted", "permission denied", "permitted")

_GDB: Final = (
    *("-iex", "set auto-load off", "-iex", "set debuginfod enabled off", "-iex", "set print frame-arguments none"),
    *("-iex", "set print entry-values no", "-ex", "thread apply all bt 250"),
)


@dataclass(frozen=True, slots=True)
class Debugger:
    """One program, ``{pid}`` in its arguments; ``deadline_s``: per sample; ``again``: a second one is worth it."""

    name: str
    arguments: tuple[str, ...]
    suffix: str
    deadline_s: float
    again: bool
    install: str


PYSTACK: Final = Debugger(
    "pystack", ("remote", "--no-color", "--native-all", "{pid}"), "txt", 2.0, True, "pip install pystack"
)
PY_SPY: Final = Debugger(
    "py-spy", ("dump", "--native", "--json", "-p", "{pid}"), "json", 2.0, True, "pip install py-spy"
)
EU_STACK: Final = Debugger("eu-stack", ("-q", "-b", "-m", "-p", "{pid}"), "txt", 2.0, True, "apt-get install elfutils")
# They read memory without stopping the process, and see Python's frames alone.
PY_SPY_ASIDE: Final = Debugger("py-spy", ("dump", "--nonblocking", "--json", "-p", "{pid}"), "json", 2.0, True, "")
PYSTACK_ASIDE: Final = Debugger("pystack", ("remote", "--no-color", "--no-block", "{pid}"), "txt", 2.0, True, "")
GDB: Final = Debugger("gdb", ("-batch", "-nx", *_GDB, "-p", "{pid}"), "txt", 40.0, False, "apt-get install gdb")


@dataclass(frozen=True, slots=True)
class Sample:
    """One run of a debugger.

    ``problem`` where it gave nothing usable; ``forbidden``: the kernel did not allow it; ``stopped_s``: the longest
    that one thread stood still for it, as far as looks every 2 ms can tell, rounded up; 0: none was seen to.
    """

    text: str = ""
    file: str = ""
    problem: str = ""
    forbidden: bool = False
    stopped_s: float = 0.0


def find(name: str) -> str | None:
    """Return the path of a program: beside the controller's interpreter, else on PATH, else None."""
    beside = Path(sys.executable).parent / name
    if os.access(beside, os.X_OK):
        return str(beside)
    return shutil.which(name)


def sample(debugger: Debugger, program: str, pid: int, folder: Path, number: int) -> Sample:
    """Return what ``debugger`` sees in ``pid`` now; its output stays in ``folder``."""
    file = f"stacks-{number}.{debugger.name}.{debugger.suffix}"
    command = (program, *(argument.replace("{pid}", str(pid)) for argument in debugger.arguments))
    was_stopped = _is_stopped(pid)
    try:
        status, errors, stopped_s = _run(command, folder / file, debugger.deadline_s, pid)
    except OSError as error:
        return Sample(problem=f"{debugger.name} could not be started: {error.strerror}")
    text = (folder / file).read_text(errors="replace")
    if not text.strip():
        (folder / file).unlink()
        file = ""
    if status is None:
        if not was_stopped and (_is_stopped(pid) or _will_stop(pid)):  # the debugger has left it so
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGCONT)
        problem = f"{debugger.name} did not end within {debugger.deadline_s:g} s and was ended"
        return Sample(text, file, problem, stopped_s=stopped_s)
    complaint = errors.strip().splitlines()[-1] if errors.strip() else f"exit code {status}"
    forbidden = any(word in errors.lower() for word in _FORBIDDEN)
    problem = f"{debugger.name}: {complaint}" if status or not text else ""
    return Sample(text, file, problem, forbidden, stopped_s)


def _is_stopped(pid: int) -> bool:
    return _state(Path(f"/proc/{pid}")) == "T"


def _will_stop(pid: int) -> bool:
    """Whether a SIGSTOP waits for some thread: who traced one that is uninterruptible has sent it, and was ended."""
    pending = [word for thread in _threads(pid) for word in _PENDING.findall(text_of(thread / "status"))]
    return any(int(word, 16) >> (signal.SIGSTOP - 1) & 1 for word in pending)


def _threads(pid: int) -> list[Path]:
    try:
        return list(Path(f"/proc/{pid}/task").iterdir())
    except OSError:
        return []


def _state(folder: Path) -> str:
    return (text_of(folder / "stat").rpartition(")")[2].split() or [""])[0]


def _traced(pid: int) -> set[str]:
    """Return the threads that stand still for a debugger now."""
    return {thread.name for thread in _threads(pid) if _state(thread) == "t"}


def _run(command: Sequence[str], out: Path, deadline_s: float, pid: int) -> tuple[int | None, str, float]:
    """Return exit status (None: it was ended past its deadline), what it wrote to standard error, and ``stopped_s``."""
    environment = {**os.environ, "DEBUGINFOD_URLS": "", "NO_COLOR": "1"}  # no downloads of symbols
    with out.open("wb") as sink, tempfile.TemporaryFile() as errors:
        process = processes.start(command, stdout=sink, stderr=errors, env=environment)
        limit = time.monotonic() + deadline_s
        before, stopped_s = time.monotonic(), 0.0
        since: dict[str, float] = {}
        try:
            while (status := process.poll()) is None and time.monotonic() < limit:
                now, traced = time.monotonic(), _traced(pid)
                since = {thread: since.get(thread, before) for thread in traced}
                stopped_s = max([stopped_s, *(now - begin + _POLL_S for begin in since.values())])
                before = now
                time.sleep(_POLL_S)
        finally:
            processes.reap(process)
        errors.seek(0)
        said = errors.read(4000).decode("utf-8", "replace")
        return status, said, stopped_s


def why_forbidden() -> str:
    try:
        scope = _YAMA.read_text().strip()
    except OSError:
        scope = "0"
    if scope in ("2", "3"):
        return f"ptrace is forbidden: kernel.yama.ptrace_scope is {scope}; sysctl -w kernel.yama.ptrace_scope=1"
    return "ptrace is forbidden here; in a container: docker run --cap-add SYS_PTRACE"


def demangled(names: Iterable[str]) -> Mapping[str, str]:
    """Return mangled name -> readable one: by one run of ``c++filt``, else without arguments."""
    mangled = sorted({name for name in names if name.startswith("_Z")})
    program = find("c++filt")
    if mangled and program is not None:
        with contextlib.suppress(OSError, subprocess.SubprocessError):
            lines = processes.run((program,), text="\n".join(mangled) + "\n", limit_s=_DEMANGLE_S).stdout.splitlines()
            if len(lines) == len(mangled):
                return dict(zip(mangled, lines, strict=True))
    return {name: plain_demangled(name) for name in mangled}
