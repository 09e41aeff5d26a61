"""What an installer's output means: one clear sentence, a hint, and the installer's own decisive line.

The patterns come from real output of uv 0.13 (and its older, framed layout) and of
pip 23; ``tests/unit/runtime/test_environments.py`` keeps the originals.
"""

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Final, NamedTuple

from harness.errors import EnvironmentUnavailable
from harness.planning.pythons import LAST_KNOWN_RELEASE

UNREACHABLE: Final = "the package index could not be reached"
_LINE_LIMIT: Final = 320


class _Rule(NamedTuple):
    pattern: str
    message: str
    hint: str


# The first rule that matches anywhere in the output decides; the line it matched is quoted.
_RULES: Final[Sequence[_Rule]] = (
    _Rule(
        r"No space left on device|Disk quota exceeded|os error (28|122)\b|Errno (28|122)\b",
        "the disk is full",
        "free some space (one environment takes about 5 GB), or set TORCHSCRIPT_GATE_ENVS to a folder on a larger disk",
    ),
    _Rule(
        r"Permission denied|Read-only file system|os error (13|30)\b|Errno (13|30)\b",
        "a file could not be written",
        "check who owns that folder, or set TORCHSCRIPT_GATE_ENVS to one you may write to",
    ),
    _Rule(
        r"has no wheels with a matching",
        "the index has no wheel of {what} for Python {python} on this machine",
        "choose another Python or another release{tags}",
    ),
    _Rule(
        r"there (is|are) no versions? of|only \S+ is available",
        "the index has no {what}",
        f"check the release; the newest this gate knows of is {LAST_KNOWN_RELEASE}",
    ),
    _Rule(
        r"was not found in the (package registry|provided package locations)",
        "the index does not know the package {what}",
        "check its spelling and the index arguments",
    ),
    _Rule(
        r"\(from versions: \d",
        "the index has no {what} for Python {python}",
        "it has {nearby}",
    ),
    _Rule(
        r"Connection refused|dns error|failed to lookup|Temporary failure in name resolution|tcp connect error"
        r"|Failed to establish a new connection|Network is unreachable|invalid peer certificate"
        r"|CERTIFICATE_VERIFY_FAILED|operation timed out|Read timed out|ConnectTimeout|error sending request"
        r"|HTTP status \w+ error|\b[45]\d\d (Client|Server) Error|Failed to fetch",
        UNREACHABLE,
        "check the network, proxy and index arguments",
    ),
    _Rule(
        r"\(from versions: none\)",
        "the index offers no torch for Python {python}, or could not be reached",
        "check the network, proxy and index arguments",
    ),
    _Rule(
        r"requirements are unsatisfiable|ResolutionImpossible|conflicting dependencies",
        "the requirements contradict each other",
        "check the extra requirements",
    ),
)


class Explanation(NamedTuple):
    """What an installer's output means: a sentence, the line that says so, and what to do."""

    message: str
    line: str
    hint: str

    @property
    def is_unreachable(self) -> bool:
        """Whether the index did not answer, rather than say no."""
        return self.message == UNREACHABLE


def explained(output: str, *, status: int, release: str, python: str) -> Explanation:
    """Return what the output of an installer that ended with ``status`` means."""
    text = _plain("\n".join(line for line in output.splitlines() if not line.startswith("$ ")))
    for rule in _RULES:
        match = re.search(rule.pattern, text, re.IGNORECASE)
        if match is None:
            continue
        line = _line_around(text, match.start())
        words = {"what": _what(line, release), "python": python, "tags": _tags(text), "nearby": _nearby(line, release)}
        return Explanation(rule.message.format(**words), _cut(line), rule.hint.format(**words))
    lines = [line for line in text.splitlines() if line.strip()]
    decisive = next(
        (line for line in lines if re.match(r"\s*error\b", line, re.IGNORECASE)), lines[-1] if lines else ""
    )
    return Explanation(f"the installer ended with status {status}", _cut(decisive), "read the log")


def explain_failure(name: str, log: Path, *, status: int, release: str, python: str) -> EnvironmentUnavailable:
    """Return the exception for an installer that ended with ``status`` and whose output is in ``log``.

    The message starts with ``name`` and quotes the decisive line; the hint names the full log.
    """
    output = log.read_text(encoding="utf-8", errors="replace")
    found = explained(output, status=status, release=release, python=python)
    said = f' (the installer says: "{found.line}")' if found.line else ""
    return EnvironmentUnavailable(f"{name}: {found.message}{said}", f"{found.hint}; full log: {log}")


def _cut(line: str) -> str:
    quoted = line.strip()
    return quoted[:_LINE_LIMIT] + " ..." if len(quoted) > _LINE_LIMIT else quoted


def _plain(output: str) -> str:
    """Return the output without colours, frames and the wrapping of older uv's."""
    text = re.sub(r"\x1b\[[0-9;]*m", "", output)
    text = re.sub(r"\n\s*[\u2502|]?\s{6,}(?=\S)", " ", text)
    return re.sub(r"[\u00d7\u2500-\u257f\u25b6]+", " ", text)


def _line_around(text: str, index: int) -> str:
    start = text.rfind("\n", 0, index) + 1
    end = text.find("\n", index)
    line = text[start : end if end >= 0 else len(text)]
    return re.sub(r"^\s*(cause|error|caused by)\s*:\s*", "", line, flags=re.IGNORECASE)


def _what(line: str, release: str) -> str:
    """Return the requirement the line complains about, ``"torch 99.0"``."""
    match = (
        re.search(r"Because ([\w.\-]+(?:==[^\s,]+)?) (?:has no wheels|was not found)", line)
        or re.search(r"no versions? of ([^\s,]+)", line)
        or re.search(r"requirement ([^\s,]+) \(from", line)
    )
    return match[1].replace("==", " ") if match else f"torch {release}"


def _tags(text: str) -> str:
    tags = re.findall(r"`cp(\d)(\d+)`", text.partition("ABI tags:")[2] or text.partition("ABI tag:")[2])
    return f" (it has wheels for Python {', '.join(f'{a}.{b}' for a, b in dict.fromkeys(tags))})" if tags else ""


def _nearby(line: str, release: str) -> str:
    """Return the offered releases of the same line, else the newest five, from pip's list."""
    match = re.search(r"from versions: ([^)]*)", line)
    offered = match[1].split(", ") if match else []
    same_line = [version for version in offered if version.split(".")[:2] == release.split(".")[:2]]
    return ", ".join(same_line or offered[-5:])
