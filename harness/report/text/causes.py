"""The causes of a run on a terminal: a block for each while there is room, then a line for each, then their number."""

import textwrap
from collections.abc import Callable, Sequence

from harness.core.text import counted, first_few, prose, slug, visible
from harness.core.verdict import Cause
from harness.report.words.phrases import shorten
from harness.verdict.counting import cause_word

MODELS_NAMED = 5
LABEL = 10
# Lines of evidence that blocks may have: fewer where they would not all fit otherwise.
DETAILS = (4, 2, 1)
# A text may have so many lines in a block.
LINES_OF_TEXT = 2
ONE_LINERS = 6
LEAST_OF_A_TITLE = 16


def models_words(cause: Cause) -> str:
    """Return how many models a cause has and which, in how many cells where these are more."""
    many = len(cause.models)
    cells = f" in {counted(len(cause.cells), 'cell')}" if len(cause.cells) > many else ""
    names = [shorten(visible(name), 40) for name in cause.models]
    return f"{many}{cells}: {first_few(names, MODELS_NAMED)}"


def _alone(cause: Cause) -> str:
    """Return the name of a cause's only model, empty where it has more."""
    return f"{shorten(visible(cause.models[0]), 40)}: " if len(cause.models) == 1 else ""


def cause_block(cause: Cause, width: int, paint: Callable[[str], str], *, details: int = DETAILS[0]) -> list[str]:
    """Return one cause; its commands stand whole on their own lines."""
    alone = _alone(cause)
    lines = [f"{paint(cause_word(cause))}  {alone}{visible(cause.title)}"]
    evidence = [(label, text) for label, text in cause.evidence if text != cause.title][:details]
    models = [("models", models_words(cause))] if not alone or len(cause.cells) > 1 else []
    for label, text in (*models, *evidence, *([("cure", cause.cure)] if cause.cure else [])):
        lines += short_lines(label, text, width, indent="  ")
    return [*lines, *[f"  {visible(label):<{LABEL}}{visible(command)}" for label, command in cause.commands]]


def cause_line(cause: Cause, width: int, paint: Callable[[str], str]) -> str:
    """Return one cause on one line: its status, its id, how many models it has and what happened.

    Where the id says what the title says, the title stands for both, and after the model where that is a single one.
    """
    title, many = visible(cause.title), f" ({counted(len(cause.models), 'model')})"
    if cause.id.startswith(slug(cause.title)):
        alone = _alone(cause)
        parts = [alone or title, title if alone else many]
    else:
        parts = [cause.id, many, f": {title}"]
    head = f"{cause_word(cause)}  {parts[0]}"
    for text in parts[1:]:
        room = width - len(head)
        head += text if len(text) <= room else f"{text[: room - 4]} ..." if room > LEAST_OF_A_TITLE else ""
    return head.replace(cause_word(cause), paint(cause_word(cause)), 1)


def cause_blocks(
    causes: Sequence[Cause], *, width: int, room: int, more: str, paint: Callable[[str], str] = str
) -> list[list[str]]:
    """Return the causes in at most ``room`` lines, an empty one after each block counted.

    Args:
        more: the command that shows all of them.
    """
    blocks = list[list[str]]()
    for details in DETAILS:
        blocks = [cause_block(cause, width, paint, details=details) for cause in causes]
        if _height(blocks) <= room:
            return blocks
    whole = len(blocks)
    while whole > 1 and _height(blocks[:whole]) + min(len(causes) - whole, ONE_LINERS) + 2 > room:
        whole -= 1
    left = causes[whole:]
    most = max(1, room - _height(blocks[:whole]) - 2)
    lines = [cause_line(cause, width, paint) for cause in left[:most]]
    if len(left) > most:
        lines.append(f"and {counted(len(left) - most, 'more cause')}: {visible(more)}")
    return [*blocks[:whole], lines]


def _height(blocks: Sequence[Sequence[str]]) -> int:
    return sum(len(block) + 1 for block in blocks)


def short_lines(label: str, text: str, width: int, *, indent: str = "") -> list[str]:
    """Return a label and a text in two columns, the text cut where it needs more than ``LINES_OF_TEXT`` lines."""
    first = f"{indent}{visible(label):<{LABEL}}"
    room = width - len(first)
    wrapped = textwrap.wrap(prose(text), room, break_on_hyphens=False) or [""]
    if len(wrapped) > LINES_OF_TEXT:
        last = wrapped[LINES_OF_TEXT - 1][: room - 4].rstrip()
        wrapped = [*wrapped[: LINES_OF_TEXT - 1], f"{last} ..."]
    return [f"{first}{wrapped[0]}".rstrip(), *[" " * len(first) + line for line in wrapped[1:]]]
