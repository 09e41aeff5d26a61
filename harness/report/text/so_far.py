"""What is known before anything is timed, for a terminal: how many models are well, and each red cell in a line."""

from collections import Counter
from collections.abc import Sequence

from harness.core.findings import cell_reason
from harness.core.outcome import Status
from harness.core.text import counted, first_few, visible
from harness.core.verdict import CellVerdict, RowVerdict
from harness.report.words.phrases import scenario_words
from harness.verdict.inputs import is_guessed

RED = (Status.FAIL, Status.XPASS)
MOST_LINES = 12
NAMED = 5
_WORDS = {
    Status.FAIL: "FAIL",
    Status.XPASS: "XPASS",
    Status.INCONCLUSIVE: "not decided",
    Status.XFAIL: "waived",
    Status.SAME_FAIL: "failed before",
    Status.UNSUPPORTED: "unsupported",
    Status.PASS: "well",
}

_GUESSED = "alike on guessed requests"


def render_so_far(rows: Sequence[RowVerdict], *, missed: Sequence[str] = (), then: str = "", width: int) -> str:
    """Return the counts, then a line per red cell; the cells that say the same share one.

    Args:
        rows: of all models.
        missed: planted defects that were not found.
        then: what the run does next, in words.
        width: that no line exceeds.
    """
    said = Counter(_words(row) for row in rows)
    numbers = [f"{said[words]} {words}" for words in (*_WORDS.values(), _GUESSED) if said[words]]
    head = f"so far  {counted(len(rows), 'model')}: {', '.join(numbers) or 'none'}{'; ' if then else ''}{then}"
    lines = [head]
    if missed:
        lines.append(f"  BLIND  the gate missed its own planted defects: {first_few(missed, NAMED)}")
    alike = _alike([cell for row in rows for cell in row.cells if cell.decides and cell.status in RED])
    lines += [f"  {cells[0].status.value}  {_who(cells)}: {cell_reason(cells[0])}" for cells in alike[:MOST_LINES]]
    if len(alike) > MOST_LINES:
        lines.append(f"  and {len(alike) - MOST_LINES} more, which the report shows")
    return "".join(f"{_cut(visible(line), width)}\n" for line in lines)


def _words(row: RowVerdict) -> str:
    return _GUESSED if row.status is Status.PASS and is_guessed(row) else _WORDS[row.status]


def _alike(cells: Sequence[CellVerdict]) -> list[list[CellVerdict]]:
    """Return the cells that say the same together, those of most models first."""
    found: dict[tuple[str, str], list[CellVerdict]] = {}
    for cell in cells:
        kind = cell.findings[0].kind if cell.findings else ""
        found.setdefault((kind, cell_reason(cell)), []).append(cell)
    return sorted(found.values(), key=lambda same: -len({cell.model for cell in same}))


def _who(cells: Sequence[CellVerdict]) -> str:
    models, scenarios = ({getattr(cell, name): None for cell in cells} for name in ("model", "scenario"))
    where = f", {first_few([scenario_words(name) for name in scenarios], NAMED)}"
    if len(models) == 1:
        return f"{cells[0].model}{where}"
    return f"{len(models)} models ({first_few([*models], NAMED)}){where}"


def _cut(line: str, width: int) -> str:
    return line if len(line) <= width else f"{line[: width - 3]}..."
