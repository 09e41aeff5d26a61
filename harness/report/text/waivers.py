"""Waivers as text for a terminal: what each covers, until when, its owner, and what it did in a run."""

from collections.abc import Iterator, Sequence

from harness.core.findings import MEASURES
from harness.core.text import joined, prose, visible
from harness.core.verdict import Waiver, WaiverState, WaiverUse
from harness.report.text.grid import filled
from harness.report.words.phrases import scenario_words
from harness.verdict.waivers.apply import range_words, size_words
from harness.verdict.waivers.uses import days_words

_INDENT = "    "
_STATE = {
    WaiverState.USED: "needed",
    WaiverState.EXCEEDED: "exceeded",
    WaiverState.EXPIRED: "expired",
    WaiverState.OTHER_PAIR: "for other releases",
    WaiverState.UNUSED: "not needed",
    WaiverState.NOT_JUDGED: "nothing that could show it was judged",
}


def render_waivers(uses: Sequence[WaiverUse], title: str, *, in_a_run: bool, width: int = 100) -> str:
    """Return a block of lines per waiver below a title; ``in_a_run``: whether a run says what they did."""
    head = filled(visible(title), width)
    blocks = ["\n".join(head)]
    blocks += ["\n".join(_lines(use, in_a_run=in_a_run, width=width)) for use in uses]
    return "\n\n".join(blocks) + "\n"


def _lines(use: WaiverUse, *, in_a_run: bool, width: int) -> Iterator[str]:
    waiver = use.waiver
    yield f"{visible(waiver.kind)} of {visible(waiver.model)}"
    texts = [
        joined(place_words(waiver), bound_words(waiver), f"torch {range_words(waiver)}"),
        f"until {waiver.expires} ({days_words(use.days_left)}), {waiver.owner}: {waiver.reason}",
        waiver.issue,
        _done(use) if in_a_run else "",
        f"broader than needed: {', '.join(use.broad)}" if use.broad else "",
    ]
    for text in texts:
        yield from filled(prose(text), width, first=_INDENT, rest=_INDENT)


def place_words(waiver: Waiver) -> str:
    """Return where a waiver counts: scenario, device, profile."""
    scenario = scenario_words(waiver.scenario) if waiver.scenario else "every scenario"
    profile = f"profile {waiver.profile}" if waiver.profile else ""
    return ", ".join(part for part in (scenario, waiver.device, profile) if part)


def bound_words(waiver: Waiver) -> str:
    """Return up to which size a waiver covers; empty where its kind has none."""
    if waiver.kind not in MEASURES:
        return ""
    return "any size" if waiver.bound is None else f"up to {size_words(waiver.kind, waiver.bound, None)[0]}"


def _done(use: WaiverUse) -> str:
    seen = f"; {size_words(use.waiver.kind, use.waiver.bound, use.size)[1]} was seen" if use.size is not None else ""
    cells = f" in {', '.join(use.cells)}" if use.cells else ""
    return f"{_STATE[use.state]}{cells}{seen}"
