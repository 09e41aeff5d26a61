"""What a machine lacked where a probe failed: room, a compiler. A later run may succeed. Pure."""

import re
from collections.abc import Sequence
from typing import NamedTuple

from harness.core.outcome import Outcome
from harness.core.probe import ProbeRequest, ProbeResult


class Lack(NamedTuple):
    """How it shows in an error, a stable word for it, and what to do."""

    words: re.Pattern[str]
    kind: str
    advice: str


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


def lack(words: str) -> Lack | None:
    """Return what the machine lacked by the words of an error, None where they tell of nothing such."""
    return next((kind for kind in LACKS if kind.words.search(words)), None)


def lacked(request: ProbeRequest, result: ProbeResult) -> bool:
    """Return whether the same request may end otherwise today, for the machine has more or others use less of it."""
    if Outcome.OUT_OF_MEMORY in result.outcomes and _may_have_more_memory(request, result):
        return True
    failures = [result.failure, *(model.failure for model in result.models)]
    return any(lack(f"{failure.type}: {failure.message}") is not None for failure in failures if failure is not None)


def _may_have_more_memory(request: ProbeRequest, result: ProbeResult) -> bool:
    """Whether more memory may be had than when a process ran out of it.

    What reaches a limit that is no higher today reaches it again: two loaders of packages in a race take whatever there
    is (docs/guide/migrate.md, "Packages, served"). A GPU, and a machine whose kernel had to end the process, were
    shared with others.
    """
    if request.limits is None or not request.limits.memory_is_derived:
        return False
    then, now = result.memory_limit_bytes, request.limits.memory_bytes
    # The kernel does that where it is short of memory; what we have ended ourselves has no evidence of a signal.
    killed = result.evidence is not None and result.evidence.signal == "SIGKILL"
    shared = not request.device.is_cpu or killed
    return shared or then is None or now is None or now > then
