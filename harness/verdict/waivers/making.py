"""Makes the waivers for a red cell, with kinds, bounds and releases as they were seen."""

import datetime as dt
import decimal
import math
from collections.abc import Sequence
from dataclasses import replace

from packaging.version import InvalidVersion, Version

from harness.core.errors import ConfigError
from harness.core.findings import MEASURES, SEVERITY
from harness.core.measurement import LatencyMeasurement
from harness.core.outcome import Status
from harness.core.verdict import CellVerdict, Waiver
from harness.verdict.causes import subject_of
from harness.verdict.commands import PLACEHOLDERS
from harness.verdict.waivers.apply import Ran, failing_findings
from harness.verdict.waivers.entries import LINK, why_no_bound

# Chosen: a quarter is time to mend a model, and not to forget it.
DEFAULT_DAYS = 90
Sizes = dict[tuple[str, str], float | None]
"""Kind of a failure and what it is about -> its size, or the bound of it."""
WORDS_HINT = "say who answers for it, and why it is known"
WHY_NOT = {
    Status.PASS: ("passes: there is nothing to waive", "name one of the red cells of its report"),
    Status.XFAIL: ("is known already, by the policy or a waiver", "see why in its report"),
    Status.XPASS: ("passes, and its waiver is needed no more", "take that out: waivers prune"),
    Status.SAME_FAIL: ("fails in the old release too, and blocks nothing", "nothing to do"),
    Status.UNSUPPORTED: ("was not asked of this release", "nothing to do"),
    Status.INCONCLUSIVE: (
        "was not decided, and only what is known can be waived",
        "decide it first: rerun RUN CELL_ID, for a latency with --latency thorough",
    ),
}


def waivers_for(
    cell: CellVerdict,
    ran: Ran,
    *,
    owner: str,
    reason: str,
    issue: str,
    expires: dt.date | None,
    bound: float | None,
    today: dt.date,
    latency: LatencyMeasurement | None = None,
) -> tuple[Waiver, ...]:
    """Return a waiver per kind of finding that fails a cell and what it is about, no broader than what was seen.

    ``bound`` replaces the size that was seen, for the one kind that has a size. Raises ``ConfigError``: the cell is not
    red, or an argument is wrong; it says what to do.
    """
    _check_words(owner=owner, reason=reason, issue=issue)
    ends = expires if expires is not None else today + dt.timedelta(days=DEFAULT_DAYS)
    if ends < today:
        raise ConfigError(f"--expires {ends} is over", f"name a day from {today} on")
    if cell.status is not Status.FAIL:
        what, hint = WHY_NOT[cell.status]
        raise ConfigError(f"{cell.cell} {what}", hint)
    sizes = _sizes(cell)
    if not sizes:
        raise ConfigError(f"{cell.cell} has no finding that can be waived", "see its evidence in the report")
    for kind, _ in sizes:
        if kind not in SEVERITY:
            raise ConfigError(f"{cell.cell}: this harness knows no finding {kind}", "waive it with the one that ran")
    bounds = _bounds(sizes, bound, _highs(latency))
    old, new = line_of(ran.old), line_of(ran.new)
    return tuple(
        Waiver(
            model=cell.model,
            kind=kind,
            reason=reason,
            owner=owner,
            expires=ends,
            issue=issue,
            bound=bounds[kind, about],
            about=about,
            old=old,
            new=new,
            scenario=cell.scenario,
            device=ran.device,
            profile=ran.profile,
        )
        for kind, about in sizes
    )


def one_per_kind(waivers: Sequence[Waiver]) -> list[Waiver]:
    """Return one waiver per model and failure; of several scenarios one for any, with the largest bound."""
    groups: dict[tuple[str, str, str], list[Waiver]] = {}
    for waiver in waivers:
        groups.setdefault((waiver.model, waiver.kind, waiver.about), []).append(waiver)
    return [
        replace(
            same[0],
            scenario=same[0].scenario if len({item.scenario for item in same}) == 1 else "",
            bound=None if any(item.bound is None for item in same) else max(item.bound or 0.0 for item in same),
        )
        for same in groups.values()
    ]


def _check_words(*, owner: str, reason: str, issue: str) -> None:
    for name, text in (("--owner", owner), ("--reason", reason)):
        if not text.strip():
            raise ConfigError(f"{name} is empty", WORDS_HINT)
        if text == PLACEHOLDERS[name]:
            raise ConfigError(f"{name} {text} stands for words of yours", WORDS_HINT)
    if issue and not LINK.fullmatch(issue):
        raise ConfigError(f"--issue {issue}: not a link", "write one that begins with https://")


def _sizes(cell: CellVerdict) -> Sizes:
    """Return what fails a cell, each with its largest size; None where one of them has none."""
    failing: dict[tuple[str, str], list[float | None]] = {}
    for finding in failing_findings(cell):
        failing.setdefault((finding.kind, subject_of(finding, cell.model)), []).append(finding.size)
    return {failure: _largest(sizes) for failure, sizes in failing.items()}


def _largest(sizes: Sequence[float | None]) -> float | None:
    known = [size for size in sizes if size is not None and 0 < size < math.inf]
    return max(known) if len(known) == len(sizes) else None


def _highs(latency: LatencyMeasurement | None) -> dict[float, float]:
    """Return estimated ratio -> the upper end of its interval, where that has one."""
    if latency is None:
        return {}
    ratios = [latency.shown, *(quantity.ratio for quantity in latency.quantities.values())]
    return {item.ratio: item.high for item in ratios if item is not None and math.isfinite(item.high)}


def _bounds(sizes: Sizes, bound: float | None, highs: dict[float, float]) -> Sizes:
    """Return the bound of each: the one that was asked for, or a little above what was seen."""
    sized = [failure for failure in sizes if failure[0] in MEASURES]
    kinds = [kind for kind, _ in sized or sizes]
    if bound is None:
        seen = {failure: size for failure, size in sizes.items() if failure in sized and size is not None}
        bounds = {failure: at_most(size, MEASURES[failure[0]], highs.get(size, 0.0)) for failure, size in seen.items()}
        return {failure: bounds.get(failure) for failure in sizes}
    if len(sized) != 1:
        what = f"has {', '.join(kinds)}, each with a size of its own" if sized else f"has no size ({', '.join(kinds)})"
        raise ConfigError(f"--bound: what fails this cell {what}", "leave it out, and edit what was written")
    problem, size = why_no_bound(kinds[0], bound), sizes[sized[0]]
    if problem is not None:
        raise ConfigError(f"--bound {bound:g}{problem[0]}", problem[1])
    if size is not None and bound < size:
        raise ConfigError(f"--bound {bound:g} does not cover the {size:.3g} that was seen", "name a larger one")
    return {failure: bound if failure in sized else None for failure in sizes}


def at_most(size: float, measure: str, high: float = 0.0) -> float:
    """Return the bound for a size that was seen: a little above it, in a few digits.

    An error is rounded up to two digits. A ratio that is measured again is another one, so it gets a tenth of what it
    is above 1, and 0.03 at least; ``high``, the upper end of its interval, where that is more.
    """
    if measure == "ratio":
        size = max(size + max(0.03, 0.1 * (size - 1)), high)
    exact = decimal.Decimal(repr(size))
    places = 2 if measure == "ratio" else 1 - exact.adjusted()
    rounding = decimal.Context(prec=400, rounding=decimal.ROUND_UP)
    return float(exact.quantize(decimal.Decimal(1).scaleb(-places), context=rounding))


def line_of(version: str) -> str:
    """Return the range that a release is seen in: it and its later patch releases; a nightly stands for itself.

    Empty where the version is not known.
    """
    try:
        known = Version(version)
    except InvalidVersion:
        return ""
    final = len(known.release) == 3 and not known.is_prerelease and not known.is_postrelease
    return f"~={known.public}" if final else f"=={known.public}"
