"""Opinions on disk, memory, shared memory, the installer and the compiler. Pure."""

from collections.abc import Iterator, Sequence

from harness.domain.machine import Candidate, CheckStatus, Disk, Limits, MachineCheck, Memory, Tools

AREA = "resources"
GB = 1e9
# Environments of 2.1 to 2.15 were 4.6 to 5.3 GB unpacked; the download of one is about half of that.
UNPACKED_BYTES = 5.3e9
# A worker with torch and a small model held 0.4 GB; two zygotes and the controller come on top.
JOB_BYTES = 0.5e9
# Tens of threads per worker: its pools, its callers, the libraries that it loads. A rough bound, not a measurement.
JOB_TASKS = 64
OPEN_FILES = 1024
# What Docker gives by default.
SHARED_BYTES = 64 << 20


def resource_checks(
    candidates: Sequence[Candidate], *, disk: Disk, memory: Memory, tools: Tools, jobs: int, wants_native: bool
) -> Iterator[MachineCheck]:
    """Yield what is to be said of what a run uses up, and of the programs it starts.

    Args:
        jobs: probes at the same time.
        wants_native: whether the C++ worker was asked for by name.
    """
    missing = [one.name for one in candidates if not one.built and not one.trouble]
    yield _disk(missing, disk)
    if missing and disk.cache and disk.same_filesystem is not None:
        yield _links(disk)
    yield from memory_checks(memory, jobs)
    yield _installer(missing, tools)
    yield _compiler(tools, [one.name for one in candidates] if wants_native else [])


def memory_checks(memory: Memory, jobs: int) -> Iterator[MachineCheck]:
    """Yield what is to be said of memory; nothing of this takes time."""
    if memory.usable is not None:
        yield _memory(memory.usable, memory.available, jobs)
    if memory.shared is None:
        yield MachineCheck(
            name="shared memory",
            area=AREA,
            read="there is no /dev/shm",
            status=CheckStatus.WARN,
            so_what="Models and libraries that pass tensors between processes fail.",
            do_this="Mount a tmpfs there, or start the container with --shm-size=1g.",
        )
    elif memory.shared <= SHARED_BYTES:
        yield MachineCheck(
            name="shared memory",
            area=AREA,
            read=f"{memory.shared / GB:.2f} GB in /dev/shm",
            status=CheckStatus.WARN,
            so_what="Models and libraries that pass tensors between processes die there with a bus error.",
            do_this="Start the container with --shm-size=1g or --ipc=host.",
        )
    else:
        yield MachineCheck(name="shared memory", area=AREA, read=f"{memory.shared / GB:.1f} GB in /dev/shm")


def limit_checks(limits: Limits, jobs: int) -> Iterator[MachineCheck]:
    """Yield what is to be said of limits on processes and files; nothing of this takes time."""
    needed = (jobs + 3) * JOB_TASKS
    tasks = "no limit on processes" if limits.tasks is None else f"{limits.tasks} processes and threads"
    files = "no limit on files" if limits.open_files is None else f"{limits.open_files} open files"
    few_tasks = limits.tasks is not None and limits.tasks < needed
    few_files = limits.open_files is not None and limits.open_files < OPEN_FILES
    if not few_tasks and not few_files:
        yield MachineCheck(name="limits", area=AREA, read=f"{tasks}, {files}")
        return
    yield MachineCheck(
        name="limits",
        area=AREA,
        read=f"{tasks}, {files}; {jobs} jobs take up to {needed} and {OPEN_FILES}",
        status=CheckStatus.WARN,
        so_what="Threads or files cannot be made in the midst of a run, which looks like a fault of the release.",
        do_this="Lower --jobs, or raise ulimit -u, ulimit -n and the container's --pids-limit.",
    )


def _disk(missing: Sequence[str], disk: Disk) -> MachineCheck:
    needed = len(missing) * UNPACKED_BYTES
    free = "free space unknown" if disk.free is None else f"{disk.free / GB:.0f} GB free"
    read = f"{free} in {disk.folder}; {len(missing)} to build, {needed / GB:.0f} GB"
    if not missing:
        return MachineCheck(name="disk", area=AREA, read=f"{free} in {disk.folder}; nothing to build")
    if not disk.writable or (disk.free is not None and disk.free < needed):
        why = "is full before all of them are built" if disk.writable else "may not be written"
        fitting = int((disk.free or 0) // UNPACKED_BYTES) if disk.writable else 0
        return MachineCheck(
            name="disk",
            area=AREA,
            read=read,
            status=CheckStatus.FAIL,
            so_what=f"The folder of the environments {why}.",
            do_this="Free some space, or set TORCHSCRIPT_GATE_ENVS to a folder on a larger disk.",
            blocks=tuple(missing[fitting:]),
        )
    return MachineCheck(name="disk", area=AREA, read=read)


def _links(disk: Disk) -> MachineCheck:
    if disk.same_filesystem:
        return MachineCheck(
            name="uv's cache", area=AREA, read=f"{disk.cache}, on the same filesystem: linked, not copied"
        )
    return MachineCheck(
        name="uv's cache",
        area=AREA,
        read=f"{disk.cache} is on another filesystem than {disk.folder}",
        status=CheckStatus.WARN,
        so_what="Every environment is copied out of the cache: 5 GB more on disk each, and minutes instead of seconds.",
        do_this="Set UV_CACHE_DIR or TORCHSCRIPT_GATE_ENVS so that both are on one filesystem.",
    )


def _memory(usable: int, available: int | None, jobs: int) -> MachineCheck:
    needed = (jobs + 3) * JOB_BYTES
    left = "" if available is None else f", {min(available, usable) / GB:.1f} GB of it available"
    read = f"{usable / GB:.1f} GB{left}, for {jobs} jobs"
    if min(usable, usable if available is None else available) >= needed:
        return MachineCheck(name="memory", area=AREA, read=read)
    return MachineCheck(
        name="memory",
        area=AREA,
        read=read,
        status=CheckStatus.WARN,
        so_what=f"{jobs} probes at once need about {needed / GB:.1f} GB before any model: the kernel may end workers.",
        do_this="Lower --jobs, stop other programs, or raise the container's limit.",
    )


def _installer(missing: Sequence[str], tools: Tools) -> MachineCheck:
    if tools.installer.startswith("uv") or (tools.installer and not missing):
        return MachineCheck(name="installer", area=AREA, read=tools.installer)
    if tools.installer:
        return MachineCheck(
            name="installer",
            area=AREA,
            read=f"{tools.installer}, no uv",
            status=CheckStatus.WARN,
            so_what="pip takes minutes for an environment where uv takes 20 s, and links nothing from its cache.",
            do_this="Run pip install uv.",
        )
    return MachineCheck(
        name="installer",
        area=AREA,
        read="neither uv nor pip",
        status=CheckStatus.FAIL if missing else CheckStatus.WARN,
        so_what="No environment can be built here.",
        do_this="Run pip install uv, or give ready-made interpreters with --env NAME=PYTHON.",
        blocks=tuple(missing),
    )


def _compiler(tools: Tools, needing: Sequence[str]) -> MachineCheck:
    if tools.compiler:
        return MachineCheck(name="C++ compiler", area=AREA, read=tools.compiler)
    why, _, cure = tools.no_compiler.rpartition(": ")
    return MachineCheck(
        name="C++ compiler",
        area=AREA,
        read=why,
        status=CheckStatus.FAIL if needing else CheckStatus.WARN,
        so_what="Models are brought up by Python threads, which the GIL lets load only one after the other."
        if not needing
        else 'The C++ worker was asked for (runtime = "libtorch"), so a run ends before it begins.',
        do_this=f"{cure[:1].upper()}{cure[1:]}.",
        blocks=tuple(needing),
    )
