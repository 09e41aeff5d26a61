"""A search for the first bad release, as text and as JSON: the result, the tested releases, and what to do next."""

from collections.abc import Sequence

import msgspec

from harness import __version__
from harness.domain.releases import Ending, FirstBad, ReleaseAnswer, ReleaseResult
from harness.domain.text import counted, prose, visible
from harness.releases.judging import DEPENDENCIES, RELEASES, exit_code, reads_otherwise
from harness.report.json.text import json_text
from harness.report.text.grid import draw, filled, needed
from harness.report.words.phrases import seconds, shorten

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
    lines += [_table(found, asked, width), ""]
    for item in asked:
        if item.reason:
            lines += _paragraph(f"{item.release}: {item.reason}", width)
    lines += [f"note  {line}" for note in found.notes for line in _paragraph(note, width - 6)]
    lines += _doubts(found, width)
    lines += [
        "",
        *_paragraph(answer_words(found), width),
        *_checks(found, width),
        *_paragraph(_count_words(found), width),
    ]
    if found.command:
        lines.append(f"next  {visible(found.command)}")
    return "\n".join(lines) + "\n"


def _table(found: FirstBad, asked: Sequence[ReleaseResult], width: int) -> str:
    """Return the result of each step; the name of a step is cut to fit, and given in full below."""
    rows = [[str(item.answer), str(item.runs or "-"), *_times(item)] for item in asked]
    room = max(LEAST_STEP, width - needed([HEAD, *rows], gap=2) - 2)
    names = [shorten(visible(item.release), room) for item in asked]
    named_rows = [[name, *row] for name, row in zip(names, rows, strict=True)]
    head = ["torch" if found.over == RELEASES else "step", *HEAD]
    return draw([head, *named_rows], heads=1, gap=2, right=(2, 3))


def answer_words(found: FirstBad) -> str:
    """Return the answer in one sentence."""
    ends = found.conclusion
    good = named(found, ends.last_good)
    match ends.ending:
        case Ending.FOUND if ends.first_bad == found.rest_step:
            return _rest_words(found)
        case Ending.FOUND:
            return f"first bad: {named(found, ends.first_bad)} ({found.kind}); {good} is good"
        case Ending.ONE_OF:
            why = [f"{', '.join(ends.untestable)} could not be tested"] if ends.untestable else []
            if ends.not_asked:
                why.append(
                    f"{', '.join(ends.not_asked)} would need more environments than the {found.build_limit} allowed: "
                    "--builds N allows more"
                )
            several = named(found, ", ".join(ends.one_of))
            return f"first bad: one of {several} ({found.kind}); {good} is good; {'; '.join(why)}"
        case Ending.NOT_BAD:
            return (
                f"nothing to search for: {good} is good, alone in a process; "
                "latency and initialization are not part of this search"
            )
        case Ending.OLD_NOT_GOOD:
            return f"nothing to search from: {named(found, found.releases[0])} is not good itself"
        case Ending.END_UNTESTABLE:
            return f"undecided: {named(found, ', '.join(ends.untestable))}, an end, could not be tested"


def named(found: FirstBad, step: str) -> str:
    """Return how a sentence calls a step: a release of torch is named as one, another step is named whole."""
    return f"torch {step}" if found.over == RELEASES else step


def _rest_words(found: FirstBad) -> str:
    """Return the answer where it is none of what was searched over."""
    step, old = found.conclusion.first_bad, found.releases[0]
    if found.over == DEPENDENCIES:
        return f"torch itself: {step} is bad ({found.kind}) with everything that can be left as it was in {old}"
    well = f"with {step}, as in {old}, it is bad ({found.kind}) as well"
    return f"not {found.over}: {well}; it is torch or another dependency"


def _line_words(found: FirstBad) -> str:
    """Return how long the way is, and where its steps come from."""
    count, first, last = len(found.releases), found.releases[0], found.releases[-1]
    if found.over == DEPENDENCIES:
        return f"{counted(count, 'step')}, each with one more change ({found.source})"
    return f"{counted(count, _kind(found))} from {first} to {last} ({found.source})"


def _kind(found: FirstBad) -> str:
    return "release" if found.over == RELEASES else "step"


def _times(item: ReleaseResult) -> Sequence[str]:
    if item.remembered:
        return "-", "known from an earlier search"
    if item.build_s:
        return seconds(item.seconds), f"built in {seconds(item.build_s)}"
    return seconds(item.seconds), "found" if item.runs else "-"


def _doubts(found: FirstBad, width: int) -> list[str]:
    lines: list[str] = []
    for again in found.conclusion.good_again:
        bad, good = (named(found, step) for step in again)
        doubt = f"not one switch: {bad} is bad and {good} after it is good again; the last switch is told"
        lines += _paragraph(doubt, width)
    if reads_otherwise(found):
        first, end = named(found, found.conclusion.first_bad), named(found, found.releases[-1])
        doubt = f"{first} fails with another error than {end}: there may be two breaks, this is the first"
        lines += _paragraph(doubt, width)
    return lines


def _checks(found: FirstBad, width: int) -> list[str]:
    """Return what was asked to be sure, and what it means where it did not say what was expected."""
    lines: list[str] = []
    for check in found.checks:
        match check.asked.answer:
            case check.expected:
                result = f"{check.asked.answer}, as it should be"
            case ReleaseAnswer.UNTESTABLE:
                result = f"could not be tested: {check.asked.reason}"
            case _:
                result = f"{check.asked.answer}: {check.otherwise}"
        lines += _paragraph(f"check: {check.what}: {result}", width)
    return lines


def _count_words(found: FirstBad) -> str:
    asked = [item for item in found.asked if not item.remembered]
    untestable = sum(item.answer is ReleaseAnswer.UNTESTABLE for item in asked)
    parts = [f"{len(asked)} of {counted(len(found.releases), _kind(found))} asked"]
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
