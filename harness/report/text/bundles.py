"""What ``pack`` wrote, as text: a line per model, and why some have no bundle."""

from harness.core.golden import Packed, Packing
from harness.core.text import counted, prose, visible
from harness.report.text.grid import draw, filled
from harness.report.words.phrases import ending, shorten, size

INDENT = "    "
LEAST_MODEL, LEAST_PATH = 20, 32


def render_packing(packing: Packing, *, width: int = 100) -> str:
    """Return the whole text, ending with a newline; ``width`` in columns."""
    table = _table(packing, width)
    lines = [draw(table, heads=1, gap=2, right=(2,)), ""]
    for row, (_, shown, _) in zip(packing.rows, table[1:], strict=True):
        reasons = [f"not packed: {row.why}"] if row.why else []
        reasons += [f"inputs {row.note}"] if row.note and row.note not in row.why else []
        whole = [f"{INDENT}{visible(row.path)}"] if row.path and shown != visible(row.path) else []
        if reasons or whole:
            lines += [visible(row.model), *whole]
            lines += [line for text in reasons for line in filled(prose(text), width, first=INDENT, rest=INDENT)]
    for note in packing.notes:
        lines += filled(f"note  {prose(note)}", width, rest=" " * len("note  "))
    done = sum(bool(row.path) for row in packing.rows)
    made = f"golden outputs of torch {visible(packing.producer.torch)} on {packing.device}"
    lines += filled(f"{done} of {counted(len(packing.rows), 'model')} packed: {made}", width)
    if packing.evidence:
        lines.append(f"what the workers left: {visible(packing.evidence)}")
    return "\n".join(lines) + "\n"


def _table(packing: Packing, width: int) -> list[list[str]]:
    """Return head and rows; where they do not fit, names are cut in the middle and paths before their end."""
    rows = [(visible(row.model), visible(row.path) or "-", _size(row)) for row in packing.rows]
    heads = ("model", "bundle", "size")
    names, paths, sizes = (max(map(len, column)) for column in zip(heads, *rows, strict=True))
    room = width - sizes - 4
    name = min(names, max(LEAST_MODEL, room - max(paths, LEAST_PATH)))
    path = max(room - name, LEAST_PATH) if names + paths > room else paths
    cut = [[shorten(model, name), ending(where, path), note] for model, where, note in rows]
    return [[*heads], *cut]


def _size(row: Packed) -> str:
    return size(row.size_bytes) if row.path else "-"
