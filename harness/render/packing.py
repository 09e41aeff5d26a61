"""What ``pack`` wrote, as text: a line per model, and why some have no bundle."""

import textwrap

from harness.domain.bundle import Packed, Packing
from harness.render.text_grid import draw
from harness.render.words import counted, prose, shorten, size, visible

INDENT = "    "
LEAST_MODEL, LEAST_PATH = 20, 32


def render_packing(packing: Packing, *, width: int = 100) -> str:
    """Return the whole text, ending with a newline; ``width`` in columns."""
    table = _table(packing, width)
    lines = [draw(table, heads=1, gap=2, right=(2,)), ""]
    for row, (_, shown, _) in zip(packing.rows, table[1:], strict=True):
        told = [f"not packed: {row.why}"] if row.why else []
        told += [f"inputs {row.note}"] if row.note and row.note not in row.why else []
        whole = [f"{INDENT}{visible(row.path)}"] if row.path and shown != visible(row.path) else []
        if told or whole:
            lines += [visible(row.model), *whole]
            lines += [_filled(prose(text), width, initial_indent=INDENT, subsequent_indent=INDENT) for text in told]
    lines += [_filled(f"note  {prose(note)}", width, subsequent_indent=" " * len("note  ")) for note in packing.notes]
    done = sum(bool(row.path) for row in packing.rows)
    made = f"golden outputs of torch {visible(packing.producer.torch)} on {packing.device}"
    lines.append(_filled(f"{done} of {counted(len(packing.rows), 'model')} packed: {made}", width))
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
    cut = [[shorten(model, name), _tail(where, path), told] for model, where, told in rows]
    return [[*heads], *cut]


def _size(row: Packed) -> str:
    return size(row.size_bytes) if row.path else "-"


def _tail(path: str, room: int) -> str:
    return path if len(path) <= room else f"...{path[3 - room :]}"


def _filled(text: str, width: int, *, initial_indent: str = "", subsequent_indent: str = "") -> str:
    """Return the text in lines; a word stays whole, because it may be a path."""
    return textwrap.fill(
        text,
        width,
        initial_indent=initial_indent,
        subsequent_indent=subsequent_indent,
        break_long_words=False,
        break_on_hyphens=False,
    )
