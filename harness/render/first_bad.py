"""A search for the first bad release, as text and as JSON: the answer, what was asked, and what to do next."""

import textwrap
from collections.abc import Sequence

import msgspec

from harness import __version__
from harness.domain.first_bad import Asked, Ending, FirstBad, ReleaseAnswer
from harness.policy.first_bad import exit_code, reads_otherwise
from harness.render.json_text import json_text
from harness.render.static_json import without_surrogates
from harness.render.text_grid import draw
from harness.render.words import counted, prose, seconds, visible

SCHEMA_VERSION = 1
HEAD = ("torch", "answer", "runs", "time", "environment")


def dump_first_bad(found: FirstBad) -> str:
    """Return indented JSON with a fixed order of keys, ending with a newline."""
    told = {
        "schema_version": SCHEMA_VERSION,
        "harness_version": __version__,
        "exit_code": int(exit_code(found)),
        "answer": answer_words(found),
        **msgspec.to_builtins(found),
    }
    return json_text(without_surrogates(told))


def render_first_bad(found: FirstBad, *, width: int = 100) -> str:
    """Return the whole text, ending with a newline; ``width`` in columns."""
    lines = [f"{visible(found.model)}: {_line_words(found)}", ""]
    order = {name: place for place, name in enumerate(found.releases)}
    asked = sorted(found.asked, key=lambda item: order[item.release])
    rows = [[visible(item.release), str(item.answer), str(item.runs or "-"), *_times(item)] for item in asked]
    lines += [draw([list(HEAD), *rows], heads=1, gap=2, right=(2, 3)), ""]
    for item in asked:
        if item.reason:
            lines += _paragraph(f"{item.release}: {item.reason}", width)
    lines += [f"note  {line}" for note in found.notes for line in _paragraph(note, width - 6)]
    lines += _doubts(found, width)
    lines += ["", *_paragraph(answer_words(found), width), *_paragraph(_count_words(found), width)]
    if found.command:
        lines.append(f"next  {found.command}")
    return "\n".join(lines) + "\n"


def answer_words(found: FirstBad) -> str:
    """Return the answer in one sentence."""
    ends = found.conclusion
    match ends.ending:
        case Ending.FOUND:
            return f"first bad: torch {ends.first_bad} ({found.kind}); torch {ends.last_good} is good"
        case Ending.ONE_OF:
            why = [f"{_listed(ends.untestable)} could not be tested"] if ends.untestable else []
            if ends.not_asked:
                why.append(
                    f"{_listed(ends.not_asked)} would need more environments than the {found.build_limit} allowed: "
                    "--builds N allows more"
                )
            return (
                f"first bad: one of torch {_listed(ends.one_of)} ({found.kind}); torch {ends.last_good} is good; "
                + "; ".join(why)
            )
        case Ending.NOT_BAD:
            return (
                f"nothing to search for: torch {ends.last_good} is good, alone in a process; "
                "latency and initialization are not part of this search"
            )
        case Ending.OLD_NOT_GOOD:
            return f"nothing to search from: torch {found.releases[0]} is not good itself"
        case Ending.END_UNTESTABLE:
            return f"undecided: torch {_listed(ends.untestable)}, an end, could not be tested"


def _line_words(found: FirstBad) -> str:
    first, last = found.releases[0], found.releases[-1]
    return f"{counted(len(found.releases), 'release')} from {first} to {last} ({found.source})"


def _times(item: Asked) -> Sequence[str]:
    if item.remembered:
        return "-", "known from an earlier search"
    if item.build_s:
        return seconds(item.seconds), f"built in {seconds(item.build_s)}"
    return seconds(item.seconds), "found" if item.runs else "-"


def _doubts(found: FirstBad, width: int) -> list[str]:
    lines: list[str] = []
    for bad, good in found.conclusion.good_again:
        told = f"not one switch: torch {bad} is bad and torch {good} after it is good again; the last switch is told"
        lines += _paragraph(told, width)
    if reads_otherwise(found):
        first, end = found.conclusion.first_bad, found.releases[-1]
        told = f"torch {first} fails with another error than torch {end}: there may be two breaks, this is the first"
        lines += _paragraph(told, width)
    return lines


def _count_words(found: FirstBad) -> str:
    asked = [item for item in found.asked if not item.remembered]
    untestable = sum(item.answer is ReleaseAnswer.UNTESTABLE for item in asked)
    parts = [f"{len(asked)} of {counted(len(found.releases), 'release')} asked"]
    if len(asked) < len(found.asked):
        parts.append(f"{len(found.asked) - len(asked)} known from earlier searches")
    if untestable:
        parts.append(f"{untestable} untestable")
    ahead = f" ({_listed(found.unused)} ahead and not needed)" if found.unused else ""
    parts.append(f"{counted(len(found.built), 'environment')} built{ahead}")
    parts.append(seconds(found.wall_s))
    return ", ".join(parts)


def _listed(names: Sequence[str]) -> str:
    return ", ".join(names)


def _paragraph(text: str, width: int) -> list[str]:
    return textwrap.wrap(prose(text), width, subsequent_indent="    ", break_on_hyphens=False) or [""]
