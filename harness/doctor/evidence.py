"""Opinions on what a crash or a hang would leave here, and on the container around it. Pure."""

from collections.abc import Iterator

from harness.domain.machine import CheckStatus, Container, Forensics, Limits, MachineCheck

AREA = "evidence"
FILTER = 2


def evidence_checks(forensics: Forensics, container: Container, limits: Limits) -> Iterator[MachineCheck]:
    """Yield what is to be said of core dumps, of looking into processes, and of the container."""
    if forensics.core_pattern:
        yield _core_dumps(forensics.core_pattern, limits.core_bytes)
    yield _ptrace(forensics, container)
    if not forensics.debuggers:
        yield MachineCheck(
            name="debuggers",
            area=AREA,
            read="none of pystack, py-spy, eu-stack, gdb",
            status=CheckStatus.WARN,
            so_what="A hang is shown by the process's own stacks only, with few names inside C++.",
            do_this="Run pip install pystack py-spy, or apt-get install elfutils.",
        )
    else:
        yield MachineCheck(name="debuggers", area=AREA, read=", ".join(forensics.debuggers))
    version = f"cgroup v{container.cgroup_version}" if container.cgroup_version else "no control groups seen"
    yield MachineCheck(name="container", area=AREA, read=f"{container.kind or 'none seen'}, {version}")


def _core_dumps(pattern: str, limit: int | None) -> MachineCheck:
    if not pattern.startswith("|"):
        ulimit = "unlimited" if limit is None else f"{limit}"
        read = f"to files ({pattern}), ulimit -c {ulimit}; workers write none"
        return MachineCheck(name="core dumps", area=AREA, read=read)
    # A limit of 0 holds for files only: the kernel ignores it for pipes (fs/coredump.c; core(5)).
    program = pattern[1:].split(maxsplit=1)[0].rpartition("/")[2] if pattern[1:].split() else pattern
    return MachineCheck(
        name="core dumps",
        area=AREA,
        read=f"piped to {program}, which no limit of a worker prevents",
        status=CheckStatus.WARN,
        so_what="A crashed worker lives on until its gigabytes are piped away: a crash may look like a hang.",
        do_this="On the host, for the time of the run: sysctl -w kernel.core_pattern=core.",
    )


def _ptrace(forensics: Forensics, container: Container) -> MachineCheck:
    scope = forensics.ptrace_scope
    shown = "no yama" if scope is None else f"yama scope {scope}"
    capability = {None: "", True: ", CAP_SYS_PTRACE", False: ", no CAP_SYS_PTRACE"}[forensics.may_ptrace]
    filtered = ", seccomp filter" if forensics.seccomp == FILTER else ""
    read = f"{shown}{capability}{filtered}"
    # Workers allow it themselves (PR_SET_PTRACER) where yama's scope is 1; from 2 on only the capability counts.
    if scope is not None and (scope == 3 or (scope == 2 and not forensics.may_ptrace)):
        return MachineCheck(
            name="ptrace",
            area=AREA,
            read=read,
            status=CheckStatus.WARN,
            so_what="No debugger may look into a hung worker: its own stacks are all that a report will have.",
            do_this="On the host: sysctl -w kernel.yama.ptrace_scope=1.",
        )
    if container.kind and forensics.seccomp == FILTER and not forensics.may_ptrace:
        return MachineCheck(
            name="ptrace",
            area=AREA,
            read=read,
            status=CheckStatus.UNKNOWN,
            so_what="The container's filter may forbid it (Docker's before Linux 4.8): hangs then lack a debugger.",
            do_this="Start the container with --cap-add SYS_PTRACE where hangs lack C++ names.",
        )
    return MachineCheck(name="ptrace", area=AREA, read=read)
