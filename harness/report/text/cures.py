"""Settings that were tried on a red cell: a table of cures and their cost, what does not help, and lines to paste."""

from collections.abc import Iterator, Mapping, Sequence

from harness.domain.diagnosis import Cure, CureAnswer, Curing, Price
from harness.domain.measurement import RatioEstimate
from harness.domain.text import counted, prose, visible
from harness.report.text.grid import draw, filled
from harness.report.words.phrases import percent, shorten
from harness.settings.paste_lines import CPP, ENVIRONMENT, PYTHON, TRITON

LABEL = 12
# Quantity -> the two lines of its head; throughput is the inverse of the time per request.
COLUMNS: Mapping[str, tuple[str, str]] = {
    "steady": ("", "latency"),
    "request": ("through-", "put"),
    "request_cpu": ("CPU per", "request"),
    "first_calls": ("first", "calls"),
    "peak_rss": ("", "memory"),
}
BRIEF = {"steady": "latency", "request": "time per request", "first_calls": "first calls", "peak_rss": "memory"}
WAYS = {
    PYTHON: "Python",
    CPP: "C++",
    TRITON: "Triton, config.pbtxt",
    ENVIRONMENT: "environment",
}
LONGEST_NAME = 24
UNKNOWN = "-"


def cure_lines(cures: Sequence[Cure]) -> Iterator[tuple[str, str]]:
    """Yield (label, text) of what was tried, in short: what cures with its price, then what does not and why."""
    for found in cures:
        if found.cures:
            priced = ", ".join(
                f"{words} {price.to_old.words if name == 'steady' else percent(price.to_old.ratio)}"
                for name, words in BRIEF.items()
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
    if curing:
        lines += ["", *_table(curing), ""]
        lines += _wrapped("", _legend(curing), width)
    if found.price_note:
        lines += _wrapped("", f"Note: {prose(found.price_note)}.", width)
    rest = [*_rest(found), *(("note", prose(note)) for note in found.notes)]
    if found.ended:
        rest.append(("ended early", prose(found.ended)))
    lines += [""] if curing and rest else []
    for label, text in rest:
        lines += _wrapped(label, text, width)
    for number, one in enumerate(curing, start=1):
        lines += ["", *_paste(number, one)]
    lines += [""] if curing else []
    lines += _wrapped("written", f"{directory}/mitigate.json", width)
    return "\n".join(lines) + "\n"


def _head(found: Curing) -> str:
    curing = sum(one.cures for one in found.cures)
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


def _table(curing: Sequence[Cure]) -> list[str]:
    heads = [("", "", *(head for head, _ in COLUMNS.values())), ("cure", "to", *(word for _, word in COLUMNS.values()))]
    rows: list[tuple[str, ...]] = []
    for number, one in enumerate(curing, start=1):
        names = [shorten(visible(name), LONGEST_NAME) for name in one.names]
        names = [f"{number} {names[0]}", *(f"+ {name}" for name in names[1:])]
        figures = [_figures(one, "to_old"), _figures(one, "to_new")]
        shown = [(side, cells) for side, cells in zip(("old", "new"), figures, strict=True) if set(cells) != {UNKNOWN}]
        for index in range(max(len(names), len(shown), 1)):
            name = names[index] if index < len(names) else ""
            side, cells = shown[index] if index < len(shown) else ("", ("",) * len(COLUMNS))
            rows.append((name, side, *cells))
    return draw([*heads, *rows], heads=2, gap=2, right=range(2, 2 + len(COLUMNS))).splitlines()


def _figures(one: Cure, side: str) -> tuple[str, ...]:
    return tuple(_figure(name, one.price(name), side) for name in COLUMNS)


def _figure(name: str, price: Price | None, side: str) -> str:
    ratio: RatioEstimate | None = getattr(price, side) if price is not None else None
    if ratio is None:
        return UNKNOWN
    unsure = "~" if ratio.low <= 1 <= ratio.high else ""
    return unsure + percent(1 / ratio.ratio if name == "request" else ratio.ratio)


def _legend(curing: Sequence[Cure]) -> str:
    """Return how sure the table is: the interval of the first latency, and how many processes."""
    price = curing[0].price("steady")
    if price is None or price.to_old is None:
        return "No price was measured."
    pairs = counted(price.to_old.pairs, "pair")
    uncured = ", to new: against the uncured new one" if price.to_new is not None else ""
    return (
        f"To old: change against the old release{uncured}; means of {pairs} of fresh processes. ~: its interval does "
        f"not exclude that nothing changes. Latency of the first: {price.to_old.words}. More is in mitigate.json."
    )


def _paste(number: int, one: Cure) -> Iterator[str]:
    times = f", {one.repeats} clean runs" if one.repeats > 1 else ""
    yield f"{number} {visible(one.name)}{times}"
    for way, words in WAYS.items():
        if way in one.paste:
            yield f"  {words}:"
            yield from (f"      {visible(line)}".rstrip() for line in one.paste[way].splitlines())
    without = [words for way, words in WAYS.items() if way not in one.paste]
    if without and ENVIRONMENT not in one.paste:  # which every server has
        yield f"  no way known: {', '.join(without)}"


def _wrapped(label: str, text: str, width: int) -> list[str]:
    """Return a text beside its label, or across the whole width without one."""
    wide = LABEL if label else 0
    lines = filled(text, width - wide) or [""]
    return [f"{label if index == 0 else '':<{wide}}{line}" for index, line in enumerate(lines)]
