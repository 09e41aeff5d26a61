"""What cures a red cell: settings with their costs and lines to paste, rewrites, and what does not help."""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from harness.core.diagnosis import Cure, CureAnswer, Curing
from harness.core.measurement import RatioEstimate
from harness.core.text import counted, prose, visible
from harness.report.text.grid import draw, filled
from harness.report.text.rewrites import rewrite_lines
from harness.serving.settings.paste_lines import CPP, ENVIRONMENT, PYTHON, TRITON

LABEL = 12
# Quantity -> its words; throughput is the inverse of the time per request.
COSTS: Mapping[str, str] = {
    "steady": "latency",
    "request": "throughput",
    "request_cpu": "CPU per request",
    "first_calls": "first calls",
    "peak_rss": "memory",
}
BRIEF = ("steady", "request", "first_calls", "peak_rss")
WAYS = {
    PYTHON: "Python",
    CPP: "C++",
    TRITON: "Triton, config.pbtxt",
    ENVIRONMENT: "environment",
}
UNKNOWN = "-"


def cure_lines(cures: Sequence[Cure]) -> Iterator[tuple[str, str]]:
    """Yield (label, text) of what was tried, in short: what cures with its price, then what does not and why."""
    for found in cures:
        if found.cures:
            priced = ", ".join(
                f"{COSTS[name]} {_change(name, price.to_old)}"
                for name in BRIEF
                if (price := found.price(name)) is not None and price.to_old is not None
            )
            note = f" ({prose(found.note)})" if found.note else ""
            yield "cure", f"{found.name}{f': {priced}' if priced else ''}{note}"
    for why, names in _in_vain(cures).items():
        yield "no cure", f"{', '.join(names)}: {why}"
    for found in cures:
        if found.untestable:
            yield "untestable", f"{found.name}: {prose(found.note)}"


def _in_vain(cures: Sequence[Cure]) -> dict[str, list[str]]:
    """Return why -> the sets that do not cure for that reason."""
    reasons: dict[str, list[str]] = {}
    for found in cures:
        if not found.cures and not found.untestable:
            reasons.setdefault(prose(found.note) or "the symptom is still there", []).append(found.name)
    return reasons


def render_curing(found: Curing, *, directory: str, width: int = 80) -> str:
    """Return the whole answer, ending with a newline; ``directory`` is the run's as a reader types it."""
    head = f"{prose(found.model)}, {found.old} -> {found.new}, {found.words}: {_head(found)}"
    lines = _wrapped("", visible(head), width)
    curing = [one for one in found.cures if one.cures]
    for text in found.symptom[:3]:
        lines += _wrapped("symptom", prose(text), width)
    lines += ["", *_wrapped("", _legend(curing), width)] if curing else []
    if found.price_note:
        lines += _wrapped("", f"Note: {prose(found.price_note)}.", width)
    rewrites = rewrite_lines(found.rewrites, old=found.old, new=found.new, directory=directory)
    rest = [*rewrites, *_rest(found), *(("note", prose(note)) for note in found.notes)]
    if found.ended:
        rest.append(("ended early", prose(found.ended)))
    lines += [""] if curing and rest else []
    for label, text in rest:
        lines += _wrapped(label or " ", text, width)
    for number, one in enumerate(curing, start=1):
        lines += ["", *_cured(number, one)]
    lines += [""] if curing else []
    lines += _wrapped("written", f"{directory}/mitigate.json", width)
    return "\n".join(lines) + "\n"


def _head(found: Curing) -> str:
    curing = sum(one.cures for one in found.cures) + sum(one.cures for one in found.rewrites)
    if found.answer is CureAnswer.CURED:
        return f"{counted(curing, 'cure')}"
    return found.answer.value


def _rest(found: Curing) -> Iterator[tuple[str, str]]:
    yield from cure_lines([one for one in found.cures if not one.cures])
    for one in found.cures:
        if one.cures and one.note:
            yield "note", f"{one.name}: {prose(one.note)}"
        if one.cures and not one.minimal:
            yield "note", f"{one.name}: a smaller set may do, which could not be tested"


def _legend(curing: Sequence[Cure]) -> str:
    """Return what the costs are changes of, and how many processes told them."""
    pairs = [price.to_old.pairs for one in curing for price in one.prices if price.to_old is not None]
    if not pairs:
        return "No price was measured."
    return (
        f"Costs are changes against the old release, and against the new one without the cure where that answers; "
        f"means of {counted(min(pairs), 'pair')} of fresh processes with their 95 % intervals. More is in "
        "mitigate.json."
    )


def _cured(number: int, one: Cure) -> Iterator[str]:
    """Yield the number of a cure, what it costs, and what to paste."""
    times = f", {one.repeats} clean runs" if one.repeats > 1 else ""
    yield f"{number} {visible(one.name)}{times}"
    yield from _costs(one)
    for way, words in WAYS.items():
        if way in one.paste:
            yield f"  {words}:"
            yield from (f"      {visible(line)}".rstrip() for line in one.paste[way].splitlines())
    without = [words for way, words in WAYS.items() if way not in one.paste]
    if without and ENVIRONMENT not in one.paste:  # which every server has
        yield f"  no way known: {', '.join(without)}"


def _costs(one: Cure) -> Iterator[str]:
    prices = [(name, price) for name in COSTS if (price := one.price(name)) is not None]
    rows = [(COSTS[name], _change(name, price.to_old), _change(name, price.to_new)) for name, price in prices]
    if rows:
        table = draw([("cost", "to old", "to new"), *rows], heads=1, gap=2, right=())
        yield from (f"  {line}" for line in table.splitlines())


def _change(name: str, ratio: RatioEstimate | None) -> str:
    """Return a cost with its interval."""
    if ratio is None:
        return UNKNOWN
    if name != "request":
        return ratio.words
    low, high = (1 / bound if bound > 0 else math.inf for bound in (ratio.high, ratio.low))
    return replace(ratio, ratio=1 / ratio.ratio, low=low, high=high).words


def _wrapped(label: str, text: str, width: int) -> list[str]:
    """Return a text beside its label, or across the whole width without one."""
    wide = LABEL if label else 0
    lines = filled(text, width - wide) or [""]
    return [f"{label if index == 0 else '':<{wide}}{line}" for index, line in enumerate(lines)]
