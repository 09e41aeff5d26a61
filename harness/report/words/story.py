"""The story of a red cell: threads, stacks and what they mean, short enough for a terminal where it must be."""

from collections.abc import Sequence

from harness.core.text import counted, prose
from harness.core.verdict import Finding
from harness.report.words.phrases import shorten

Line = tuple[str, str]

LINES_SHOWN = 12
_LABEL_LIMIT = 9
# A thread gets one line or two of a terminal, a stack three; what they mean is shown in full.
_LIMITS = {"threads": 150, "frames": 160}

_CALLED_BY = " < "


def story_of(findings: Sequence[Finding]) -> tuple[Line, ...]:
    """Return the story of the first finding that has one; labels are short enough for their column."""
    lines = next((finding.story for finding in findings if finding.story), ())
    return tuple((shorten(prose(label), _LABEL_LIMIT), text) for label, text in lines)


def short_story(story: Sequence[Line]) -> tuple[Line, ...]:
    """Return at most ``LINES_SHOWN`` lines in their order, and one more that counts the rest.

    Each label keeps its first lines, so that thirty threads do not hide what they mean; a label that is repeated is
    left blank.
    """
    taken = _taken(story)
    lines: list[Line] = []
    before = ""
    for index in taken:
        label, text = story[index]
        limit = _LIMITS.get(label)
        shown = text if limit is None else _shorten(prose(text), limit)
        lines.append(("" if label == before else label, shown))
        before = label
    rest = len(story) - len(taken)
    return (*lines, ("", f"and {counted(rest, 'more line')}, in report.md")) if rest else tuple(lines)


def _shorten(text: str, limit: int) -> str:
    """Return ``text`` in at most ``limit`` characters: frames are left out of the middle of a stack, whole ones."""
    frames = text.split(_CALLED_BY)
    for kept in range(len(frames), 1, -1):
        head = frames[: (kept + 1) // 2]
        tail = frames[len(frames) - kept // 2 :]
        shown = _CALLED_BY.join([*head, *(["..."] if kept < len(frames) else []), *tail])
        if len(shown) <= limit:
            return shown
    return shorten(text, limit)


def _taken(story: Sequence[Line]) -> list[int]:
    """Return the numbers of the lines that are shown: the first of each label, then the second of each, ..."""
    nth: dict[str, int] = {}
    rank = []
    for index, (label, _) in enumerate(story):
        nth[label] = nth.get(label, 0) + 1
        rank.append((nth[label], index))
    return sorted(index for _, index in sorted(rank)[:LINES_SHOWN])
