"""Resource limits of one worker, set before any artifact is touched; what the kernel refuses is told, never hidden.

Memory is limited by ``RLIMIT_DATA``: private writable mappings, as they are asked for. The address space is not: torch
and CUDA reserve far more of it than they use. The network is closed by a seccomp filter, the results of other probes
by Landlock; so is everything else, where what is loaded runs code of its own (``confinement.py``).

``limits.py LIMITS_JSON PROGRAM ARGUMENTS...`` runs a program under them: a reproducer has none of its own, for it is
run by hand; where the controller runs it, the archive in it may be hostile.
"""

import ctypes
import json
import os
import platform
import resource
import runpy
import struct
import sys

PR_SET_NO_NEW_PRIVS = 38
SECCOMP_SET_MODE_FILTER = 1
# Else kernels before 5.16 would slow the process down against Spectre v4, and it is measured.
SECCOMP_FILTER_FLAG_SPEC_ALLOW = 4
# Time between SIGXCPU, which can be told from everything else, and SIGKILL.
GRACE_S = 5

AF_UNIX, AF_NETLINK = 1, 16
IO_URING_SETUP = 425
# Of a 64-bit process: the audit name of its architecture, and the numbers of seccomp and socket.
ARCHITECTURES = {
    "x86_64": (0xC000003E, 317, 41),
    "aarch64": (0xC00000B7, 277, 198),
}
X32 = 0x40000000  # the second way into an x86-64 kernel
LOAD, JUMP_EQUAL, JUMP_FROM, RETURN = 0x20, 0x15, 0x35, 0x06
ALLOW, REFUSE = 0x7FFF0000, 0x00050000 | 13  # EACCES


LOCK = ".lock"  # in the folder of every run
# linux/landlock.h; the numbers of its calls are those of every architecture.
CREATE_RULESET, ADD_RULE, RESTRICT_SELF = 444, 445, 446
RULESET_VERSION, PATH_BENEATH = 1, 1
WRITE_FILE, REMOVE_AND_MAKE, RENAME_ELSEWHERE, TRUNCATE = 1 << 1, 0x1FF0, 1 << 13, 1 << 14
# Before it (Linux 5.19), a rename into another folder would be refused everywhere.
LEAST_LANDLOCK = 2
# Signals to processes that are not confined alike: from version 6 (Linux 6.12).
SCOPE_SIGNAL, SCOPES_SINCE = 1 << 1, 6
# What any program may write to.
DEVICES = ("/dev/null", "/dev/zero", "/dev/full", "/dev/tty")


def apply(limits, own=None):
    """Apply what ``limits`` of the request asks for; return name -> why, of what could not be applied.

    ``own`` is the folder of the probe, the only one of its run that stays open for writing.
    """
    refused = {}
    steps = (
        ("memory", lambda: lower(resource.RLIMIT_DATA, limits["memory_bytes"])),
        ("cpu", lambda: lower(resource.RLIMIT_CPU, limits["cpu_s"], GRACE_S)),
        ("file", lambda: lower(resource.RLIMIT_FSIZE, limits["file_bytes"])),
        ("killed_first", be_killed_first),
        ("network", lambda: None if limits["network"] else close_network()),
        ("results", lambda: None if own is None else close_results(own)),
    )
    for name, step in steps:
        try:
            step()
        except (OSError, ValueError) as error:
            refused[name] = str(error)
    return refused


def lower(kind, limit, grace=0):
    """Lower a limit for good, never raise it. Too large a file is EFBIG: Python ignores SIGXFSZ."""
    if limit is None:
        return
    soft, hard = resource.getrlimit(kind)
    limits = (int(limit), int(limit) + grace)
    resource.setrlimit(kind, tuple(_least(new, old, hard) for new, old in zip(limits, (soft, hard))))


def _least(*limits):
    return min(limit for limit in limits if limit != resource.RLIM_INFINITY)


def be_killed_first():
    """Where the machine has no memory left, let the kernel end this process before any that we did not start."""
    with open("/proc/self/oom_score_adj", "w") as stream:
        stream.write("1000")


def close_network():
    """Refuse this thread, and all that it starts, sockets other than local ones, and io_uring, which could open them.

    Raises ``OSError``: the kernel has no such filter, or does not allow one here.
    """
    machine = platform.machine()
    if machine not in ARCHITECTURES:
        raise OSError("no filter is known for %s" % machine)
    audit, seccomp, socket = ARCHITECTURES[machine]
    filters = program(audit, socket)
    kept = ctypes.create_string_buffer(filters, len(filters))
    header = ctypes.create_string_buffer(struct.pack("HP", len(filters) // 8, ctypes.addressof(kept)))
    libc = ctypes.CDLL(None, use_errno=True)
    _check(libc.prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0))
    # A kernel that does not know the flag does not slow anything down either.
    if libc.syscall(seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_SPEC_ALLOW, header) != 0:
        _check(libc.syscall(seccomp, SECCOMP_SET_MODE_FILTER, 0, header))


def close_results(own):
    """Refuse this thread, and all that it starts, to write into the run's folder elsewhere than below ``own``.

    Landlock only allows, so all that lies beside the way from / to the run is allowed by name; nothing new can be made
    directly in a folder on that way. Raises ``OSError``: the kernel has no Landlock, or an old one.
    """
    run = next((folder for folder in _above(own) if os.path.exists(os.path.join(folder, LOCK))), None)
    if run is not None:
        _write_only_below([own] + [path for folder in _above(run) for path in _beside(folder, run)], alone=False)


def close_elsewhere(own, others=()):
    """Refuse this thread, and all that it starts, to write elsewhere than below ``own`` and ``others``.

    Nor may it send signals to a process that is not confined alike, where the kernel can refuse that. Raises
    ``OSError``: the kernel has no Landlock, or an old one.
    """
    _write_only_below([own] + list(DEVICES) + list(others), alone=True)


def _write_only_below(paths, *, alone):
    libc = ctypes.CDLL(None, use_errno=True)
    version = libc.syscall(CREATE_RULESET, None, 0, RULESET_VERSION)
    _check(min(version, 0))
    if version < LEAST_LANDLOCK:
        raise OSError("this kernel has version %d of Landlock, and %d is needed" % (version, LEAST_LANDLOCK))
    of_files = WRITE_FILE | (TRUNCATE if version > LEAST_LANDLOCK else 0)
    of_folders = of_files | REMOVE_AND_MAKE | RENAME_ELSEWHERE
    handled = struct.pack("Q", of_folders)
    if alone and version >= SCOPES_SINCE:
        handled = struct.pack("QQQ", of_folders, 0, SCOPE_SIGNAL)
    ruleset = libc.syscall(CREATE_RULESET, handled, len(handled), 0)
    _check(min(ruleset, 0))
    try:
        for path in paths:
            _allow(libc, ruleset, path, of_folders, of_files)
        _check(libc.prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0))
        _check(libc.syscall(RESTRICT_SELF, ruleset, 0))
    finally:
        os.close(ruleset)


def _above(path):
    """Yield the folders above ``path``, the nearest first."""
    path = os.path.realpath(path)
    while path != os.path.dirname(path):
        path = os.path.dirname(path)
        yield path


def _beside(folder, run):
    """Return what lies in a folder above ``run`` beside the way to it; a link is no place of its own."""
    try:
        with os.scandir(folder) as entries:
            paths = [entry.path for entry in entries if not entry.is_symlink()]
    except OSError:  # which may not be listed, and is not to be written
        return []
    return [path for path in paths if path != run and not run.startswith(path + os.sep)]


def _allow(libc, ruleset, path, of_folders, of_files):
    try:
        place = os.open(path, os.O_PATH | os.O_NOFOLLOW | os.O_CLOEXEC)
    except OSError:  # gone since
        return
    try:
        rights = of_folders if os.path.isdir("/proc/self/fd/%d" % place) else of_files
        libc.syscall(ADD_RULE, ruleset, PATH_BENEATH, struct.pack("=Qi", rights, place), 0)
    finally:
        os.close(place)


def program(audit, socket):
    """Return the filter as instructions of 8 bytes: code, jump if true, jump if false, operand."""
    return b"".join(
        struct.pack("HBBI", *instruction)
        for instruction in (
            (LOAD, 0, 0, 4),  # the architecture
            (JUMP_EQUAL, 0, 7, audit),
            (LOAD, 0, 0, 0),  # the number of the call
            (JUMP_FROM, 5, 0, X32),
            (JUMP_EQUAL, 4, 0, IO_URING_SETUP),
            (JUMP_EQUAL, 0, 4, socket),
            (LOAD, 0, 0, 16),  # its first argument: the family
            (JUMP_EQUAL, 2, 0, AF_UNIX),
            (JUMP_EQUAL, 1, 0, AF_NETLINK),
            (RETURN, 0, 0, REFUSE),
            (RETURN, 0, 0, ALLOW),
        )
    )


def _check(status):
    if status != 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))


if __name__ == "__main__":
    apply(json.loads(sys.argv[1]))
    sys.argv = sys.argv[2:]
    sys.path[0] = os.path.dirname(sys.argv[0])
    runpy.run_path(sys.argv[0], run_name="__main__")
