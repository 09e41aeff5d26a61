"""What ``pack`` wrote, as text: a line per model, and why some have no bundle."""

import textwrap

from harness.domain.bundle import Packing
from harness.render.text_grid import draw
from harness.render.words import counted, prose, size, visible

INDENT = "    "


def render_packing(packing: Packing, *, width: int = 100) -> str:
    """Return the whole text, ending with a newline; ``width`` in columns."""
    table = [["model", "bundle", "size"]]
    table += [
        [visible(row.model), visible(row.path) or "-", size(row.size_bytes) if row.path else "-"]
        for row in packing.rows
    ]
    lines = [draw(table, heads=1, gap=2, right=(2,)), ""]
    for row in packing.rows:
        told = [f"not packed: {row.why}"] if row.why else []
        told += [f"inputs {row.note}"] if row.note and row.note not in row.why else []
        if told:
            lines.append(visible(row.model))
            lines += [
                textwrap.fill(prose(text), width, initial_indent=INDENT, subsequent_indent=INDENT) for text in told
            ]
    lines += [
        textwrap.fill(f"note  {prose(note)}", width, subsequent_indent=" " * len("note  ")) for note in packing.notes
    ]
    done = sum(bool(row.path) for row in packing.rows)
    made = f"golden outputs of torch {visible(packing.producer.torch)} on {packing.device}"
    lines.append(f"{done} of {counted(len(packing.rows), 'model')} packed: {made}")
    if packing.evidence:
        lines.append(f"what the workers left: {visible(packing.evidence)}")
    return "\n".join(lines) + "\n"
