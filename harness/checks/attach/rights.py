"""Why this user may not trace a process, by what the kernel says of both."""

import os
import re
from pathlib import Path

from harness.core.attach import Attached
from harness.machine.files import text_of

_YAMA = Path("/proc/sys/kernel/yama/ptrace_scope")
_SYS_PTRACE = 1 << 19
ROOT = "run it as root (sudo), in the container with --cap-add SYS_PTRACE, or beside it:"
BESIDE = "kubectl debug POD --target CONTAINER --profile=sysadmin"


def why_not(process: Attached) -> str:
    """Return in one line what this user lacks to see what the process's threads wait for."""
    found = re.search(r"^CapEff:\s*([0-9a-f]+)", text_of(Path("/proc/self/status")), re.MULTILINE)
    capable = found is not None and bool(int(found[1], 16) & _SYS_PTRACE)
    lacks = f"who holds what in process {process.pid} cannot be told: "
    return lacks + _reason(capable=capable, root=os.geteuid() == 0, scope=text_of(_YAMA).strip())


def _reason(*, capable: bool, root: bool, scope: str) -> str:
    if scope == "3":
        return "kernel.yama.ptrace_scope is 3, so that nobody traces anything before the machine starts anew"
    if capable:
        return (
            "this user has SYS_PTRACE here and may not trace it all the same: it is in another user namespace, or a"
            " security module forbids it; run this on the host"
        )
    if root:
        return f"this root lacks the capability SYS_PTRACE: docker run --cap-add SYS_PTRACE, or {BESIDE}"
    yama = f" (kernel.yama.ptrace_scope is {scope})" if scope in ("1", "2") else ""
    return f"this user may not trace it{yama}; {ROOT} {BESIDE}"
