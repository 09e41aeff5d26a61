"""What several sections share: their shapes, a tone per status and decision, an anchor per model, paths as links."""

import hashlib
import re
from dataclasses import dataclass
from urllib.parse import quote

from harness.core.outcome import Decision, Status
from harness.core.report import CellTrend
from harness.core.verdict import Cause

Fact = tuple[str, str]
"""A label and what is to be said under it."""

LINES_SHOWN = 100
"""Of one table; report.json has all."""


@dataclass(frozen=True, kw_only=True, slots=True)
class TableLine:
    """A row of a plain table, its last text a status with a tone."""

    texts: tuple[str, ...]
    status: str
    tone: str


BAD, OPEN, QUIET, GOOD = "bad", "open", "quiet", "good"

_STATUS = {
    Status.FAIL: BAD,
    Status.XPASS: BAD,
    Status.INCONCLUSIVE: OPEN,
    Status.SAME_FAIL: QUIET,
    Status.UNSUPPORTED: QUIET,
    Status.XFAIL: QUIET,
    Status.PASS: GOOD,
}
_DECISION = {
    Decision.UPGRADE_OK: GOOD,
    Decision.CELL_OK: GOOD,
    Decision.OK_WITH_MITIGATION: OPEN,
    Decision.BLOCKED: BAD,
    Decision.INCONCLUSIVE: OPEN,
    Decision.NOTHING_TESTED: BAD,
}
CHANGE_TONES = {
    CellTrend.NEW: BAD,
    CellTrend.FLAKY: OPEN,
    CellTrend.UNDECIDED: OPEN,
    CellTrend.FIXED: GOOD,
    CellTrend.GONE: QUIET,
    CellTrend.ADDED: QUIET,
    CellTrend.NOT_COMPARABLE: OPEN,
    CellTrend.UNCHANGED: QUIET,
}


def tone(status: Status | None) -> str:
    """Return the tone of a status; of a model that nobody judged that of an open one."""
    return OPEN if status is None else _STATUS[status]


def cause_tone(cause: Cause) -> str:
    """Return the tone of a cause; one of what is over a limit needs a look, though its cells pass."""
    return OPEN if cause.status is Status.PASS else tone(cause.status)


def decision_tone(decision: Decision) -> str:
    """Return the tone of a decision."""
    return _DECISION[decision]


def anchor(model: str) -> str:
    """Return the id of a model's section: readable, safe in a URL, unique, and the same in every run."""
    readable = re.sub(r"[^A-Za-z0-9]+", "-", model)[:40].strip("-").lower()
    digest = hashlib.sha256(model.encode("utf-8", "surrogatepass")).hexdigest()[:8]
    return f"model-{readable}-{digest}" if readable else f"model-{digest}"


def place(cell: str) -> str:
    """Return the id of a cell's row: the cell id itself, so that whoever has one can link to it."""
    return quote(cell.encode("utf-8", "surrogatepass"))


def outside(url: str) -> str:
    """Return an address of the web as it stands; empty for anything else that a link could be."""
    plain = url.isascii() and url.isprintable() and " " not in url
    return url if plain and re.match(r"https?://[^/]", url) else ""


def link(path: str) -> str:
    """Return a path within the run's folder as a relative URL; empty for any other path."""
    inside = bool(path) and not path.startswith("/") and ".." not in path.split("/")
    return quote(path.encode("utf-8", "surrogatepass")) if inside else ""
