"""A search for the first bad release, as text and as JSON: the result, the tested releases, and what to do next."""

from collections.abc import Sequence

import msgspec

from harness import __version__
from harness.core.releases import Ending, FirstBad, ReleaseAnswer, ReleaseResult
from harness.core.text import counted, prose, visible
from harness.report.json.text import json_text
from harness.report.text.grid import draw, filled, needed
from harness.report.words.phrases import seconds, shorten
from harness.verdict.first_bad import exit_code, reads_otherwise

SCHEMA_VERSION = 1
HEAD = ("answer", "runs", "time", "environment")
LEAST_STEP = 12


def dump_first_bad(found: FirstBad) -> str:
    """Return indented JSON with a fixed order of keys, ending with a newline."""
    content = {
        "schema_version": SCHEMA_VERSION,
        "harness_version": __version__,
        "exit_code": int(exit_code(found)),
        "answer": answer_words(found),
        **msgspec.to_builtins(found),
    }
    return json_text(content)


def render_first_bad(found: FirstBad, *, width: int = 100) -> str:
    """Return the whole text, ending with a newline; ``width`` in columns."""
    lines = [*_paragraph(f"{found.model}: {_line_words(found)}", width), ""]
    order = {name: place for place, name in enumerate(found.releases)}
    asked = sorted(found.asked, key=lambda item: order[item.release])
    lines += [_table(asked, width), ""]
    for item in asked:
        if item.reason:
            lines += _paragraph(f"{item.release}: {item.reason}", width)
    lines += [f"note  {line}" for note in found.notes for line in _paragraph(note, width - 6)]
    lines += _doubts(found, width)
    lines += [
        "",
        *_paragraph(answer_words(found), width),
        *_paragraph(_count_words(found), width),
    ]
    if found.command:
        lines.append(f"next  {visible(found.command)}")
    return "\n".join(lines) + "\n"


def _table(asked: Sequence[ReleaseResult], width: int) -> str:
    """Return the result of each release; its name is cut to fit, and given in full below."""
    rows = [[str(item.answer), str(item.runs or "-"), *_times(item)] for item in asked]
    room = max(LEAST_STEP, width - needed([HEAD, *rows], gap=2) - 2)
    names = [shorten(visible(item.release), room) for item in asked]
    named_rows = [[name, *row] for name, row in zip(names, rows, strict=True)]
    head = ["torch", *HEAD]
    return draw([head, *named_rows], heads=1, gap=2, right=(2, 3))


def answer_words(found: FirstBad) -> str:
    """Return the answer in one sentence."""
    ends = found.conclusion
    good = f"torch {ends.last_good}"
    match ends.ending:
        case Ending.FOUND:
            return f"first bad: torch {ends.first_bad} ({found.kind}); {good} is good"
        case Ending.ONE_OF:
            why = [f"{', '.join(ends.untestable)} could not be tested"] if ends.untestable else []
            if ends.not_asked:
                why.append(
                    f"{', '.join(ends.not_asked)} would need more environments than the {found.build_limit} allowed: "
                    "--builds N allows more"
                )
            return f"first bad: one of torch {', '.join(ends.one_of)} ({found.kind}); {good} is good; {'; '.join(why)}"
        case Ending.NOT_BAD:
            return (
                f"nothing to search for: {good} is good, alone in a process; "
                "latency and initialization are not part of this search"
            )
        case Ending.OLD_NOT_GOOD:
            return f"nothing to search from: torch {found.releases[0]} is not good itself"
        case Ending.END_UNTESTABLE:
            return f"undecided: torch {', '.join(ends.untestable)}, an end, could not be tested"


def _line_words(found: FirstBad) -> str:
    """Return how long the way is, and where its releases come from."""
    first, last = found.releases[0], found.releases[-1]
    return f"{counted(len(found.releases), 'release')} from {first} to {last} ({found.source})"


def _times(item: ReleaseResult) -> Sequence[str]:
    if item.remembered:
        return "-", "known from an earlier search"
    if item.build_s:
        return seconds(item.seconds), f"built in {seconds(item.build_s)}"
    return seconds(item.seconds), "found" if item.runs else "-"


def _doubts(found: FirstBad, width: int) -> list[str]:
    lines: list[str] = []
    for bad, good in found.conclusion.good_again:
        doubt = f"not one switch: torch {bad} is bad and torch {good} after it is good again; the last switch is told"
        lines += _paragraph(doubt, width)
    if reads_otherwise(found):
        first, end = found.conclusion.first_bad, found.releases[-1]
        doubt = f"torch {first} fails with another error than torch {end}: there may be two breaks, this is the first"
        lines += _paragraph(doubt, width)
    return lines


def _count_words(found: FirstBad) -> str:
    asked = [item for item in found.asked if not item.remembered]
    untestable = sum(item.answer is ReleaseAnswer.UNTESTABLE for item in asked)
    parts = [f"{len(asked)} of {counted(len(found.releases), 'release')} asked"]
    if len(asked) < len(found.asked):
        parts.append(f"{len(found.asked) - len(asked)} known from earlier searches")
    if untestable:
        parts.append(f"{untestable} untestable")
    ahead = f" ({', '.join(found.unused)} ahead and not needed)" if found.unused else ""
    parts.append(f"{counted(len(found.built), 'environment')} built{ahead}")
    parts.append(seconds(found.wall_s))
    return ", ".join(parts)


def _paragraph(text: str, width: int) -> list[str]:
    return filled(prose(text), width, rest="    ") or [""]
