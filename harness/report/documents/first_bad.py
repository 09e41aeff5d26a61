"""A search for the first bad release as a document: the tested releases, why, and what to do next."""

from collections.abc import Iterator, Sequence

from harness.core.releases import Ending, FirstBad, ReleaseAnswer, ReleaseResult
from harness.core.text import counted
from harness.report.document import BAD, GOOD, OPEN, Cell, Document, Fact, Part, Row, Table, Verdict, commands, facts
from harness.report.words.phrases import seconds
from harness.verdict.first_bad import reads_otherwise

HEADS = ("torch", "runs", "time", "environment", "answer")
TONES = {ReleaseAnswer.GOOD: GOOD, ReleaseAnswer.BAD: BAD}


def first_bad_document(search: FirstBad) -> Document:
    """Return the document."""
    order = {name: place for place, name in enumerate(search.releases)}
    asked = sorted(search.asked, key=lambda item: order[item.release])
    rows = tuple(
        Row(
            cells=(
                item.release,
                str(item.runs or "-"),
                *_times(item),
                Cell(str(item.answer), tone=TONES.get(item.answer, OPEN)),
            )
        )
        for item in asked
    )
    first, last = search.releases[0], search.releases[-1]
    way = f"{search.model}: {counted(len(search.releases), 'release')} from {first} to {last} ({search.source})"
    notes = [("note", note) for note in (*search.notes, *_doubts(search))]
    return Document(
        title=f"{search.model}: first bad release",
        verdict=Verdict(means=answer_words(search)),
        parts=(
            Part(
                title="",
                blocks=(*facts([("asked", _count_words(search)), *notes]), *commands([("next", search.command)])),
            ),
            Part(
                title="Why", blocks=tuple(Fact("", f"{item.release}: {item.reason}") for item in asked if item.reason)
            ),
            Part(title="Releases", blocks=(Fact("", way), Table(heads=HEADS, rows=rows, numbers=(1, 2)))),
        ),
    )


def answer_words(search: FirstBad) -> str:
    """Return the answer in one sentence."""
    ends = search.conclusion
    good = f"torch {ends.last_good}"
    match ends.ending:
        case Ending.FOUND:
            return f"first bad: torch {ends.first_bad} ({search.kind}); {good} is good"
        case Ending.ONE_OF:
            why = [f"{', '.join(ends.untestable)} could not be tested"] if ends.untestable else []
            if ends.not_asked:
                why.append(
                    f"{', '.join(ends.not_asked)} would need more environments than the {search.build_limit} allowed: "
                    "--builds N allows more"
                )
            return f"first bad: one of torch {', '.join(ends.one_of)} ({search.kind}); {good} is good; {'; '.join(why)}"
        case Ending.NOT_BAD:
            return (
                f"nothing to search for: {good} is good, alone in a process; "
                "latency and initialization are not part of this search"
            )
        case Ending.OLD_NOT_GOOD:
            return f"nothing to search from: torch {search.releases[0]} is not good itself"
        case Ending.END_UNTESTABLE:
            return f"undecided: torch {', '.join(ends.untestable)}, an end, could not be tested"


def _times(item: ReleaseResult) -> Sequence[str]:
    if item.remembered:
        return "-", "known from an earlier search"
    if item.build_s:
        return seconds(item.seconds), f"built in {seconds(item.build_s)}"
    return seconds(item.seconds), "found" if item.runs else "-"


def _doubts(search: FirstBad) -> Iterator[str]:
    for bad, good in search.conclusion.good_again:
        yield f"not one switch: torch {bad} is bad and torch {good} after it is good again; the last switch is told"
    if reads_otherwise(search):
        first, end = search.conclusion.first_bad, search.releases[-1]
        yield f"torch {first} fails with another error than torch {end}: there may be two breaks, this is the first"


def _count_words(search: FirstBad) -> str:
    asked = [item for item in search.asked if not item.remembered]
    untestable = sum(item.answer is ReleaseAnswer.UNTESTABLE for item in asked)
    parts = [f"{len(asked)} of {counted(len(search.releases), 'release')}"]
    if len(asked) < len(search.asked):
        parts.append(f"{len(search.asked) - len(asked)} known from earlier searches")
    if untestable:
        parts.append(f"{untestable} untestable")
    ahead = f" ({', '.join(search.unused)} ahead and not needed)" if search.unused else ""
    parts.append(f"{counted(len(search.built), 'environment')} built{ahead}")
    parts.append(seconds(search.wall_s))
    return ", ".join(parts)
