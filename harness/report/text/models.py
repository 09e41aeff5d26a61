"""The models that a run would test: what ``--list`` prints."""

import os
from collections.abc import Sequence

from harness.core.models import GivenArtifact, ModelDeclaration
from harness.core.text import visible
from harness.report.text.grid import filled

_WIDEST = 44
_LEAST_TAGS = 24


def render_models(models: Sequence[ModelDeclaration], notes: Sequence[str] = (), *, width: int | None = None) -> str:
    """Return a line per model: name, how it becomes an artifact, tags, what a given one is asked with, where it is.

    Args:
        models: in the order of the run.
        notes: what was left out; they come last.
        width: columns of a terminal: where a line does not fit, its last column stands below, and whole, because it
            is copied. None: one line per model, for ``grep``.
    """
    rows = [[visible(text) for text in _row(model)] for model in models]
    widths = [min(max(map(len, column)), _WIDEST) for column in zip(*rows, strict=True)]
    lines = [line for row in rows for line in _lines(row, widths, width)]
    for note in notes:
        text = f"note: {visible(note)}"
        lines += [text] if width is None else filled(text, width, rest="  ")
    return "".join(f"{line}\n" for line in lines)


def _lines(row: Sequence[str], widths: Sequence[int], width: int | None) -> list[str]:
    """Return the columns in one line if they fit, else the last ones below."""
    texts = [f"{text:<{wide}}" for text, wide in zip(row, widths, strict=True)]
    whole = "  ".join(texts).rstrip()
    if width is None or len(whole) <= width:
        return [whole]
    begin = "  ".join(texts[:2])
    room = max(width - len(begin) - 2, _LEAST_TAGS)
    below = [line for text in row[2:] for line in filled(text, room)]
    if len(begin) + 2 + _LEAST_TAGS > width:
        return [begin.rstrip(), *(f"  {line}" for line in below)]
    first, *rest = below or [""]
    return [f"{begin}  {first}".rstrip(), *(" " * (len(begin) + 2) + line for line in rest)]


def asked_with(given: GivenArtifact) -> str:
    """Return where the requests of a given artifact come from, in words."""
    if given.bundle:
        return "its own requests"
    methods = f" to {', '.join(given.methods)}" if given.methods else ""
    if given.inputs:
        beside = os.path.dirname(given.inputs) == os.path.dirname(given.path)  # noqa: PTH120
        return f"requests of {os.path.basename(given.inputs) if beside else given.inputs}{methods}"  # noqa: PTH119
    if given.requests:
        return f"{len(given.requests)} request{'s' if len(given.requests) > 1 else ''} of its manifest"
    return f"no requests{methods}: guessed"


def _row(model: ModelDeclaration) -> tuple[str, str, str, str]:
    begin = (model.name, model.how, " ".join(model.tags))
    if model.given is None:
        return (*begin, model.where)
    return (*begin, f"{asked_with(model.given)}  {model.given.path}")
