"""Looks at processes that run already, at the same time, and says of each what it comes to."""

import contextlib
import os
import re
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

from packaging.version import InvalidVersion, Version

from harness.apps.attach.find import Asked
from harness.apps.attach.probe import seen
from harness.checks.attach.cures import explained, groups_of
from harness.checks.attach.look import may_trace
from harness.checks.attach.rights import why_not
from harness.checks.hang.stack_words import short
from harness.core.attach import Attached, Attachment, ProcessState, Why
from harness.machine.files import text_of
from harness.project import Project, own_command
from harness.verdict.attach import HEALTHY, judged, worst_first

# Of how many processes stacks are taken, the worst first: the rest of a prefork server mostly does the same.
MOST_STACKS = 2
# Stand for a file that could not be read off the process, and for its release of torch.
A_MODEL, A_RELEASE = "MODEL.pt", "RELEASE"
HAPPENS_AGAIN = (ProcessState.BLOCKED, ProcessState.BUSY, ProcessState.EXITING, ProcessState.DEVICE)
NICE = -10
# The load for each CPU from which on this command would wait for its turn longer than it works.
CROWDED = 4
# On a crowded machine stacks take seconds, for which each thread stands still, and change nothing about ``starved``.
WITHOUT_STACKS = (ProcessState.STOPPED, ProcessState.ZOMBIE, ProcessState.STARVED)
# It narrows the pools itself.
OWN_POOLS = "small_pools"
INTER_OP = re.compile(r"ThreadPool::main_loop$")


@contextlib.contextmanager
def _ahead() -> Iterator[None]:
    """Get CPUs before others: a debugger that waits for one keeps a thread stopped meanwhile."""
    usual = os.getpriority(os.PRIO_PROCESS, 0)
    with contextlib.suppress(OSError):
        os.setpriority(os.PRIO_PROCESS, 0, min(NICE, usual))
    try:
        yield
    finally:
        with contextlib.suppress(OSError):
            os.setpriority(os.PRIO_PROCESS, 0, usual)


def attach(project: Project, asked: Asked, *, window_s: float, may_stop: bool = True, gdb: bool = False) -> Attachment:
    """Return what the processes do; about ``window_s`` and 1 s for stacks.

    ``may_stop``: whether debuggers may stop them, for 0.3 s at most where they are healthy; ``gdb``: that too, for
    many seconds.

    Raises:
        ConfigError: none of them is there any more, or the window is no time.
    """
    begin = time.monotonic()
    project.progress.stage(f"look at {asked.words}, {window_s:g} s")
    crowded = os.getloadavg()[0] > CROWDED * (os.cpu_count() or 1)
    with _ahead() if crowded else contextlib.nullcontext():
        processes = worst_first([judged(process) for process in seen(asked, window_s)])
    if may_stop:
        project.progress.stage("take stacks")
        with _ahead():
            looked_into = [_looked_into(process, gdb=gdb) for process in processes[:MOST_STACKS]]
        processes = worst_first([*looked_into, *processes[MOST_STACKS:]])
    project.progress.finish()
    processes = tuple(_finished(project, process) for process in processes)
    return Attachment(asked=asked.words, processes=processes, wall_s=time.monotonic() - begin)


def _looked_into(process: Attached, *, gdb: bool) -> Attached:
    if process.state in WITHOUT_STACKS or not process.threads:
        return process
    from harness.checks.attach.stacks import with_stacks  # noqa: PLC0415  it takes CPU, which a crowded machine lacks

    return judged(explained(with_stacks(process, may_stop_long=process.state not in HEALTHY, gdb=gdb)))


def _finished(project: Project, process: Attached) -> Attached:
    remarks = process.remarks if may_trace(process) else (why_not(process),)
    makes_again = process.scenario and process.state in HAPPENS_AGAIN
    return replace(
        process,
        groups=groups_of(process),
        remarks=remarks,
        next_command=_next(project, process),
        again=_again(project, process) if makes_again else "",
    )


def _next(project: Project, process: Attached) -> str:
    if process.state is ProcessState.BLOCKED:
        return f"{own_command(project.folder, 'attach', str(process.pid), '--format', 'json')} > attach.json"
    if process.why is Why.OTHERS:
        return own_command(project.folder, "attach", "--system", "--pid", str(process.pid))
    return ""


def _again(project: Project, process: Attached) -> str:
    """Return the command of the gate that makes such a hang again, away from production."""
    files = dict.fromkeys(text.partition(": ")[2] for text in process.artifacts)
    known = [file for file in files if Path(file).is_absolute()] or [A_MODEL]
    artifacts = [word for file in known for word in ("--artifact", file)]
    new = next((library.version.partition("+")[0] for library in process.torch if library.version), A_RELEASE)
    old = _release_before(project, new)
    same = ["--allow-same-torch"] if old == new else []
    sides = ["--old", old, "--new", new, *same]
    scenario = ["--scenario", process.scenario, *_pools(process)]
    return own_command(project.folder, "compat", *artifacts, *sides, *scenario, "--latency", "off")


def _release_before(project: Project, new: str) -> str:
    """Return the release to compare with: the project's, else the one before that is known, else the same."""
    from harness.checks.linking.known_symbols import known  # noqa: PLC0415  it takes a while, and few hang

    own = str(project.table.get("old", ""))
    if own and own != new:
        return own
    with contextlib.suppress(InvalidVersion):
        return max((name for name in known() if Version(name) < Version(new)), key=Version, default=new)
    return new


def _pools(process: Attached) -> list[str]:
    """Return the settings by which the gate has as many threads as the process has or, in a forked one, would have."""
    if process.scenario == OWN_POOLS:
        return []
    variable = re.search(r"(?:^|\0)OMP_NUM_THREADS=(\d+)", text_of(Path(f"/proc/{process.pid}/environ")))
    cpus = max(int(process.cpus), 1)
    intra_op = max(2, cpus) if process.parent else min(len(process.threads), cpus)
    intra_op = int(variable[1]) if variable is not None and int(variable[1]) else intra_op
    stacks = [thread.stack for thread in process.threads if thread.stack is not None]
    inter_op = sum(any(INTER_OP.search(short(frame.function)) for frame in stack.frames) for stack in stacks)
    words = [f"serving.intra_op_threads={intra_op}", *([f"serving.inter_op_threads={inter_op}"] if inter_op else [])]
    return [word for setting in words for word in ("--set", setting)]
