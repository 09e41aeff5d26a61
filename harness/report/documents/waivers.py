"""Waivers as a document: what each covers, until when, its owner, and what it did in a run."""

from collections.abc import Sequence

from harness.core.findings import MEASURES
from harness.core.text import joined
from harness.core.verdict import Waiver, WaiverState, WaiverUse
from harness.report.document import BAD, GOOD, OPEN, QUIET, Document, Part, Verdict, facts
from harness.report.words.phrases import scenario_words
from harness.verdict.waivers.apply import range_words, size_words
from harness.verdict.waivers.uses import SOON_DAYS, days_words

WORDS = {
    WaiverState.USED: "needed",
    WaiverState.EXCEEDED: "exceeded",
    WaiverState.EXPIRED: "expired",
    WaiverState.OTHER_PAIR: "for other releases",
    WaiverState.UNUSED: "not needed",
    WaiverState.NOT_JUDGED: "nothing that could show it was judged",
}
TONES = {
    WaiverState.USED: GOOD,
    WaiverState.EXCEEDED: BAD,
    WaiverState.EXPIRED: BAD,
    WaiverState.OTHER_PAIR: QUIET,
    WaiverState.UNUSED: OPEN,
    WaiverState.NOT_JUDGED: QUIET,
}


def waivers_document(uses: Sequence[WaiverUse], title: str, *, in_a_run: bool) -> Document:
    """Return an entry per waiver; ``in_a_run``: whether a run says what they did."""
    entries = tuple(_entry(use, in_a_run=in_a_run) for use in uses)
    return Document(title="Waivers", verdict=Verdict(means=title), parts=(Part(title="Waivers", blocks=entries),))


def _entry(use: WaiverUse, *, in_a_run: bool) -> Part:
    waiver = use.waiver
    lines = [
        ("covers", joined(waiver.about, place_words(waiver), bound_words(waiver), f"torch {range_words(waiver)}")),
        ("until", f"{waiver.expires} ({days_words(use.days_left)}), {waiver.owner}: {waiver.reason}"),
    ]
    seen = f"; {size_words(waiver.kind, waiver.bound, use.size)[1]} was seen" if use.size is not None else ""
    cells = f" in {', '.join(use.cells)}" if use.cells else ""
    done = [("in the run", f"{WORDS[use.state]}{cells}{seen}")] if in_a_run else []
    broad = [("broad", f"broader than needed: {', '.join(use.broad)}")] if use.broad else []
    return Part(
        title=f"{waiver.kind} of {waiver.model}",
        blocks=(*facts(lines), *facts([("issue", waiver.issue)], form="path"), *facts([*done, *broad])),
    )


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


def waiver_tone(use: WaiverUse) -> str:
    """Return the tone of what a waiver did; one that has expired and that nothing needed is only to be removed."""
    return OPEN if use.state is WaiverState.EXPIRED and not use.cells else TONES[use.state]


def is_soon(use: WaiverUse) -> bool:
    """Return whether a waiver ends within days."""
    return 0 <= use.days_left <= SOON_DAYS


def known_waivers(uses: Sequence[WaiverUse]) -> list[str]:
    """Return which model each waiver that is needed covers, whose it is, and until when."""
    needed = [use.waiver for use in uses if use.state is WaiverState.USED]
    return list(dict.fromkeys(f"{item.model} ({item.owner}, until {item.expires.isoformat()})" for item in needed))
