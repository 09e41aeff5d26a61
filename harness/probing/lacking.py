"""What a machine lacked where a probe failed: room, a compiler. Another day it may have it. Pure."""

import re
from collections.abc import Sequence
from typing import NamedTuple

from harness.core.outcome import Outcome
from harness.core.probe import ProbeRequest, ProbeResult


class Lack(NamedTuple):
    """How it shows in an error, a stable word for it, and what to do."""

    said: re.Pattern[str]
    kind: str
    cure: str


KILLED = "signal SIGKILL"
"""How a process ends, where not we ended it, when the kernel is short of memory."""
IS_UNPACKED = "a package is unpacked when it is loaded, by 2.6.0 and 2.11.0 in /tmp"
LACKS: Sequence[Lack] = (
    Lack(
        re.compile(r"InvalidCxxCompiler|No working C\+\+ compiler|No such file or directory: '?(?:g\+\+|clang)"),
        "no compiler",
        "install a C++ compiler, such as Debian's g++, or name one in CXX",
    ),
    Lack(
        re.compile(r"No space left on device|ENOSPC|mz_zip error string: (?:write callback failed|file write failed)"),
        "no space left",
        f"make room where the results lie, and in /tmp: {IS_UNPACKED}",
    ),
    Lack(
        re.compile(r"temporary directory: (?:Permission denied|Read-only)"),
        "no temporary folder",
        f"let /tmp be writable, and --out not lie below it: {IS_UNPACKED}",
    ),
    Lack(
        re.compile(r"No module named 'setuptools'"),
        "no setuptools",
        "the compiler needs it: install it beside that torch, as in PYTHON -m pip install 'setuptools<82'",
    ),
)


def lack(said: str) -> Lack | None:
    """Return what the machine lacked by the words of an error, None where they tell of nothing such."""
    return next((one for one in LACKS if one.said.search(said)), None)


def lacked(request: ProbeRequest, found: ProbeResult) -> bool:
    """Return whether the same request may end otherwise today, for the machine has more or others use less of it."""
    if Outcome.OUT_OF_MEMORY in found.outcomes and _may_have_more_memory(request, found):
        return True
    failures = [found.failure, *(model.failure for model in found.models)]
    return any(lack(f"{one.type}: {one.message}") is not None for one in failures if one is not None)


def _may_have_more_memory(request: ProbeRequest, found: ProbeResult) -> bool:
    """Whether more memory may be had than when a process ran out of it.

    What reaches a limit that is no higher today reaches it again: two loaders of packages in a race take whatever there
    is (docs/guide/migrate.md, "Packages, served"). A GPU, and a machine whose kernel had to end the process, were
    shared with others.
    """
    if request.limits is None or not request.limits.memory_is_derived:
        return False
    then, now = found.memory_limit_bytes, request.limits.memory_bytes
    shared = not request.device.is_cpu or found.exit_detail == KILLED
    return shared or then is None or now is None or now > then
