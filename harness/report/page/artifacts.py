"""What pages about a fleet share: causes with owners, and artifacts as data of which a script makes rows in sight."""

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from harness.core.text import prose, visible
from harness.core.verdict import Cause
from harness.report.page.parts import Fact, cause_tone
from harness.report.words.fleet import owners_words
from harness.report.words.phrases import shorten
from harness.verdict.counting import cause_word

TITLE, TEXT, REASON = 160, 600, 300
NAMED = 5


@dataclass(frozen=True, kw_only=True, slots=True)
class ArtifactCauseView:
    """One cause; ``owners`` are numbers of owners, by which the script shows one owner's alone."""

    id: str
    status: str
    tone: str
    title: str
    count: str
    brief: str
    evidence: tuple[Fact, ...]
    commands: tuple[Fact, ...]
    named: tuple[str, ...]
    owners: str


@dataclass(frozen=True, kw_only=True, slots=True)
class CountView:
    """How many artifacts have the same fate."""

    number: int
    word: str
    tone: str


def artifact_cause(
    cause: Cause, owners: Mapping[str, int], numbers: Mapping[str, int], count: str
) -> ArtifactCauseView:
    """Return the view of a cause; ``count``: how many artifacts it stops, in words."""
    evidence = [("owners", owners_words(owners, len(owners))), *cause.evidence]
    evidence += [("cure", cause.cure)] if cause.cure else []
    return ArtifactCauseView(
        id=visible(cause.id),
        status=cause_word(cause),
        tone=cause_tone(cause),
        title=shorten(prose(cause.title), TITLE),
        count=count,
        brief=shorten(prose(f"cure: {cause.cure}" if cause.cure else owners_words(owners)), TITLE),
        evidence=tuple((visible(label), shorten(prose(text), TEXT)) for label, text in evidence if text),
        commands=tuple((visible(label), visible(command)) for label, command in cause.commands),
        named=tuple(shorten(visible(name), 80) for name in cause.models[:NAMED]),
        owners=numbers_of(owners, numbers),
    )


def numbers_of(owners: Iterable[str], numbers: Mapping[str, int]) -> str:
    """Return the numbers of owners, as the script knows them."""
    return " ".join(str(numbers[owner]) for owner in owners if owner in numbers)


def short(text: str) -> str:
    """Return a text of a row."""
    return shorten(prose(text), REASON)


def artifact_data(
    columns: Sequence[str],
    rows: Iterable[Sequence[str]],
    *,
    status: str,
    owners: Sequence[str],
    tones: Mapping[str, str],
    changes: Mapping[str, str],
) -> str:
    """Return the artifacts as JSON that may stand in a page: ASCII, and without any ``<`` or ``&``.

    ``texts`` has every text once; a row is numbers of texts.

    Args:
        columns: that are shown, the name and the owner first.
        rows: texts as in ``columns``, then ids of causes, what has changed, and what the name's title says.
        status: the column that is shown as a word with a tone; ``tones`` and ``changes`` are by such words.
    """
    texts: dict[str, int] = {}
    made = [[texts.setdefault(short(text), len(texts)) for text in row] for row in rows]
    found = {
        "columns": columns,
        "status": status,
        "owners": [short(owner) for owner in owners],
        "tones": tones,
        "changes": changes,
        "texts": list(texts),
        "rows": made,
    }
    text = json.dumps(found, separators=(",", ":"))
    for sign in "<>&":
        text = text.replace(sign, f"\\u{ord(sign):04x}")
    return text
