"""How many models came to what, and what is over a limit though its model passes: for every format the same. Pure."""

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Final, NamedTuple

from harness.core.findings import MEASURES, Severity, weight
from harness.core.measurement import limit_words, signed_percent
from harness.core.outcome import Status
from harness.core.quantities import QUANTITIES, STEADY, brief_words
from harness.core.verdict import Cause, CellVerdict, Finding, RowVerdict

NO_VERDICT: Final = "no verdict"
OVER_LIMIT: Final = "over limit"
"""Of a model that passes: something is surely beyond a limit that does not block."""
UNDECIDED: Final = "undecided"
"""Of a model that passes: something could not be decided, and does not decide."""
# In the order in which they need somebody.
WORDS: Final = (
    NO_VERDICT,
    *(status.value for status in (Status.FAIL, Status.XPASS, Status.INCONCLUSIVE)),
    *(status.value for status in (Status.SAME_FAIL, Status.UNSUPPORTED, Status.XFAIL)),
    *(OVER_LIMIT, UNDECIDED, Status.PASS.value),
)
# What is known of these says nothing about a limit.
_NOT_JUDGED: Final = (Status.SAME_FAIL, Status.UNSUPPORTED)


class Exceeded(NamedTuple):
    """Something that is surely beyond its limit and does not block, and the cell that it is of."""

    cell: CellVerdict
    finding: Finding

    @property
    def words(self) -> str:
        finding, name = self.finding, self.finding.quantity
        known = name == STEADY or name.partition(":")[0] in QUANTITIES
        if finding.size is None or finding.limit is None or not known:
            return f"{self.cell.model}: {finding.message}"
        what = "steady latency" if name == STEADY else brief_words(name)
        return f"{self.cell.model}: {what} {signed_percent(finding.size)} %, limit {limit_words(finding.limit)}"


def is_over(cell: CellVerdict, finding: Finding) -> bool:
    """Whether a finding says that something is surely beyond a limit without blocking.

    That is what its kind does by default, or under the policy; and what would fail a cell that does not decide, as the
    latency of guessed inputs.
    """
    if cell.status in _NOT_JUDGED:
        return False
    weighs = weight(cell, finding.kind)
    aside = cell.status is Status.FAIL and not cell.decides and MEASURES.get(finding.kind) == "ratio"
    return weighs is Severity.NAMED or (aside and weighs is Severity.FAIL)


def exceeded(rows: Iterable[RowVerdict]) -> tuple[Exceeded, ...]:
    """Return what is surely beyond a limit and does not block, the furthest over its limit first."""
    beyond = [
        Exceeded(cell, finding)
        for row in rows
        for cell in row.cells
        for finding in cell.findings
        if is_over(cell, finding)
    ]
    return tuple(sorted(beyond, key=_rank))


def _rank(item: Exceeded) -> tuple[float, str]:
    size, limit = item.finding.size, item.finding.limit
    factor = (size - 1) / (limit - 1) if size is not None and limit is not None and limit > 1 else 0.0
    return -factor, item.cell.cell


def row_word(row: RowVerdict | None) -> str:
    """Return what one model counts as, one of ``WORDS``: its status, or what is to be said of one that passes."""
    if row is None:
        return NO_VERDICT
    if row.status is not Status.PASS:
        return row.status.value
    if exceeded((row,)):
        return OVER_LIMIT
    return UNDECIDED if is_open(row) else row.status.value


def cell_word(cell: CellVerdict) -> str:
    """Return what one cell is called: its status, but ``undecided`` where it is open and decides nothing."""
    return UNDECIDED if cell.status is Status.INCONCLUSIVE and not cell.decides else cell.status.value


def cause_word(cause: Cause) -> str:
    """Return what a cause is called: the status of its cells, or what is to be said of those that are green."""
    return OVER_LIMIT.upper() if cause.status is Status.PASS else cause.status.value


def is_open(row: RowVerdict) -> bool:
    return any(cell.status is Status.INCONCLUSIVE for cell in row.cells)


def counts_of(rows: Sequence[RowVerdict | None]) -> dict[str, int]:
    counts = Counter(map(row_word, rows))
    return {word: counts[word] for word in WORDS if counts[word]}
