"""What a search for settings found, as an answer and an exit code; and a fix in words, its price first."""

import math
from collections.abc import Iterable

from harness.core.diagnosis import MitigationAnswer, Rewritten
from harness.core.outcome import Status
from harness.core.text import amount, counted, joined
from harness.core.verdict import CellVerdict, Fix, Mitigation, Provenance

WELL = (Status.PASS, Status.XPASS)


def answer_of(
    cell: CellVerdict | None, mitigations: Iterable[Mitigation], *, searched: bool, rewrites: Iterable[Rewritten] = ()
) -> tuple[MitigationAnswer, str]:
    """Return the answer, and why there was nothing to search for, in words; empty where there was.

    ``cell``: the one that was asked about; None: there is none; ``searched``: whether it is red, so that settings were
    tried; ``rewrites``: and these.
    """
    if searched:
        tried = tuple(mitigations)
        if any(mitigation.mitigates for mitigation in tried) or any(item.fixes for item in rewrites):
            return MitigationAnswer.FOUND, ""
        undecided = bool(tried) and all(mitigation.untestable for mitigation in tried)
        return (MitigationAnswer.UNDECIDED if undecided else MitigationAnswer.NOT_FOUND), ""
    if cell is None:
        return MitigationAnswer.UNDECIDED, "there is no such cell: the model was not tested there"
    if cell.status in WELL:
        return MitigationAnswer.NOTHING, "it passes"
    if cell.status is Status.SAME_FAIL:
        return (
            MitigationAnswer.NOTHING,
            "both releases fail alike, so it is no regression; --anyway searches all the same",
        )
    why = "".join(f" ({finding.message})" for finding in cell.findings[:1])
    return MitigationAnswer.UNDECIDED, f"the cell is {cell.status}: nobody could tell that a symptom is gone{why}"


SLOWER_FROM = 2.0
"""From this ratio on a price is a factor in words: few see at once that +866 % is 9.7 times as long."""


def fix_of(mitigation: Mitigation) -> Fix:
    """Return a mitigation that mitigates as a fix."""
    steady = mitigation.price_of("steady")
    price = mitigation.price if steady is None or steady.to_old is None else steady.to_old
    return Fix(name=mitigation.name, price=price, call_s=mitigation.call_s, breaks=mitigation.breaks)


def fix_of_rewrite(rewritten: Rewritten) -> Fix:
    return Fix(
        name=rewritten.rule,
        rewrites=True,
        what=rewritten.what,
        needs=rewritten.needs,
        price=rewritten.steady,
        call_s=rewritten.call_s,
    )


def price_words(fix: Fix) -> str:
    """Return what a fix costs, the call with it last: ``latency +8.5 % [-4.7, +23.4] (120 us -> 130 us a call)``, or
    ``9.7 times slower [8.4, 11.1] (120 us -> 1.16 ms a call)``; of an interval with 1 in it, that nothing was found.
    """
    price = fix.price
    if price is None:
        return "price not measured"
    call = f" ({' -> '.join(amount(time_s, 's') for time_s in fix.call_s)} a call)" if fix.call_s is not None else ""
    if price.low < 1 < price.high < SLOWER_FROM:
        slower = f"{100 * (price.high - 1):.2g} % slower"
        return f"latency: no difference found (between {100 * (1 - price.low):.2g} % faster and {slower}){call}"
    if price.ratio < SLOWER_FROM:
        return f"latency {price.words}{call}"
    surely = (
        f"[{price.low:.1f}, {price.high:.1f}]" if math.isfinite(price.high) else f"({counted(price.pairs, 'pair')})"
    )
    return f"{price.ratio:.1f} times slower {surely}{call}"


def provenance_words(provenance: Provenance) -> str:
    """Return what a rewritten file is, and what no latency of a run shows in which both releases call it."""
    fix = provenance.fix
    price = (
        f"{price_words(fix)} against the original in {provenance.old}, when it was verified for {provenance.new}"
        if fix.price is not None
        else "at a price that only NAME.provenance.json beside it tells"
    )
    origin = f"{provenance.origin} ({provenance.from_digest[:8]})" if provenance.origin else provenance.from_digest[:8]
    return (
        f"a rewrite of {origin} by {fix.name}, with the answers of {provenance.old}, {price}; "
        "no latency here has that price in it: both releases call the rewrite"
    )


def conditions(fix: Fix) -> str:
    """Return what else to know before a fix is deployed; empty for nothing."""
    return joined(
        f"but breaks {', '.join(fix.breaks)}" if fix.breaks else "",
        f"needs: {fix.needs}" if fix.needs else "",
        "the old release loads it too" if fix.rewrites else "",
        f"verified in {fix.run}" if fix.run else "",
    )


def fix_line(fix: Fix) -> str:
    """Return a fix that a search has found, on one line."""
    what = f" ({fix.what})" if fix.what else ""
    return joined(f"{price_words(fix)}: {fix.name}{what}", conditions(fix))


def fix_words(fix: Fix, many: str, *, restores: bool) -> str:
    """Return a fix in one sentence, its price first; ``many``: of how much of its cause it is known.

    ``restores``: the answers were what changed, and it brings the old ones back: somebody may prefer the new ones.
    """
    name = f"rewrite {fix.name}" if fix.rewrites else fix.name
    whose = f"{name} {many}".rstrip() + (", with the old answers" if restores and not fix.rewrites else "")
    return joined(f"{price_words(fix)}: {whose}", conditions(fix), fix.what)
