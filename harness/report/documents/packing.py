"""What ``pack`` wrote as a document: a line per model, and why some have no bundle."""

from harness.core.golden import Packed, Packing
from harness.core.text import counted
from harness.report.document import Document, Part, Row, Table, Verdict, facts
from harness.report.words.phrases import size


def packing_document(packing: Packing) -> Document:
    """Return the document."""
    rows = tuple(
        Row(cells=(row.model, row.path or "-", size(row.size_bytes) if row.path else "-")) for row in packing.rows
    )
    done = sum(bool(row.path) for row in packing.rows)
    made = f"golden outputs of torch {packing.producer.torch} on {packing.device}"
    return Document(
        title="pack",
        verdict=Verdict(means=f"{done} of {counted(len(packing.rows), 'model')} packed: {made}"),
        parts=(
            Part(
                title="",
                blocks=(
                    *facts(("note", note) for note in packing.notes),
                    *facts([("left", packing.evidence)], form="path"),
                ),
            ),
            Part(title="Models", blocks=tuple(part for row in packing.rows for part in _parts_of(row))),
            Part(title="Bundles", blocks=(Table(heads=("model", "bundle", "size"), rows=rows, numbers=(2,)),)),
        ),
    )


def _parts_of(row: Packed) -> list[Part]:
    """Return the path in full, and what there is to know of a bundle or of why there is none."""
    lines = [
        *facts([("bundle", row.path)], form="path"),
        *facts([("not packed", row.why), ("inputs", row.note if row.note not in row.why else "")]),
    ]
    return [Part(title=row.model, blocks=tuple(lines))] if row.why or row.note else []
