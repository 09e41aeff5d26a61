"""The models that a run would test, one line each: what ``--list`` prints."""

import os
from collections.abc import Sequence

from harness.domain.fixture import GivenArtifact, ModelDeclaration
from harness.domain.plain_text import visible


def render_models(models: Sequence[ModelDeclaration], notes: Sequence[str] = ()) -> str:
    """Return a line per model: name, how it becomes an artifact, tags, where it is, what a given one is asked with.

    Args:
        models: in the order of the run.
        notes: what was left out; they come last.
    """
    lines = [_line(model) for model in models]
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
    return f"no requests{methods}: guessed from its graph if they can be"


def _line(model: ModelDeclaration) -> str:
    begin = f"{model.name:34} {model.how:7} {' '.join(model.tags):44}"
    if model.given is None:
        return f"{begin} {model.where}"
    return f"{begin} {model.given.path}  {asked_with(model.given)}"
