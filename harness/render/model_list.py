"""The models that a run would test, one line each: what ``--list`` prints."""

import os
from collections.abc import Sequence

from harness.domain.fixture import GivenArtifact, ModelDeclaration
from harness.domain.plain_text import visible

_WIDEST = 44


def render_models(models: Sequence[ModelDeclaration], notes: Sequence[str] = ()) -> str:
    """Return a line per model: name, how it becomes an artifact, tags, what a given one is asked with, where it is.

    Args:
        models: in the order of the run.
        notes: what was left out; they come last.
    """
    rows = [_row(model) for model in models]
    widths = [min(max(map(len, column)), _WIDEST) for column in zip(*rows, strict=True)]
    lines = ["  ".join(f"{text:<{width}}" for text, width in zip(row, widths, strict=True)).rstrip() for row in rows]
    return "".join(f"{visible(line)}\n" for line in (*lines, *(f"note: {note}" for note in notes)))


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
