"""Applies waivers to a cell: XFAIL if they cover all that fails it, else the reasons why they do not."""

import math
from collections.abc import Iterator, Sequence
from dataclasses import replace
from datetime import date
from typing import NamedTuple

from packaging.specifiers import SpecifierSet
from packaging.version import InvalidVersion

from harness.core.findings import MEASURES, Severity, weight
from harness.core.outcome import Status
from harness.core.plan import Plan
from harness.core.text import joined
from harness.core.verdict import CellVerdict, Finding, Waived, Waiver
from harness.verdict.causes import is_same, subject_of
from harness.verdict.waivers.entries import WAIVER_KINDS


class Ran(NamedTuple):
    """What a waiver may be limited to: torch versions of both sides, device and serving profile of a run."""

    old: str
    new: str
    device: str = ""
    profile: str = ""


def ran_under(plan: Plan, versions: tuple[str, str]) -> Ran:
    """Return what a run of ``plan`` was, with these versions of torch in its old and new environment."""
    return Ran(*versions, plan.device, plan.profile_name)


def concerns(waiver: Waiver, cell: CellVerdict, ran: Ran) -> bool:
    if waiver.model != cell.model or waiver.scenario not in ("", cell.scenario):
        return False
    return waiver.device in ("", ran.device) and waiver.profile in ("", ran.profile)


def is_for(waiver: Waiver, ran: Ran) -> bool:
    """Whether a waiver is for these releases; one with a range is not for an unknown release."""
    return _is_in(ran.old, waiver.old) and _is_in(ran.new, waiver.new)


def has_expired(waiver: Waiver, today: date) -> bool:
    return waiver.expires < today


def counting(waivers: Sequence[Waiver], cell: CellVerdict, ran: Ran, today: date) -> list[Waiver]:
    """Return the waivers that count today for this cell and these releases, whatever they cover of it."""
    return [
        item for item in waivers if concerns(item, cell, ran) and is_for(item, ran) and not has_expired(item, today)
    ]


def _is_in(version: str, specifiers: str) -> bool:
    try:
        return not specifiers or SpecifierSet(specifiers).contains(version, prereleases=True)
    except InvalidVersion:
        return False


def is_about(waiver: Waiver, finding: Finding) -> bool:
    """Whether a finding is of the kind that a waiver covers, and of what it was made for."""
    return finding.kind == waiver.kind and (not waiver.about or is_same(waiver.about, finding, waiver.model))


def is_within(waiver: Waiver, finding: Finding) -> bool:
    """Whether a finding is no larger than a waiver covers; one whose size is not known is not."""
    return waiver.bound is None or (finding.size is not None and finding.size <= waiver.bound)


def failing_findings(cell: CellVerdict) -> list[Finding]:
    return [finding for finding in cell.findings if weight(cell, finding.kind) is Severity.FAIL]


def apply_waivers(cell: CellVerdict, waivers: Sequence[Waiver], ran: Ran, today: date) -> CellVerdict:
    """Return the verdict: XFAIL if every failing finding is covered by a waiver that counts today for this run.

    Else it stays FAIL and says of each waiver of these findings why it does not count. ``cell``: as the policy has it;
    what earlier waivers left in it was taken out (``without_waivers``).
    """
    mine = [waiver for waiver in waivers if concerns(waiver, cell, ran)]
    failing = failing_findings(cell)
    if cell.status is not Status.FAIL or not mine or not failing:
        return cell
    valid = counting(mine, cell, ran, today)
    covering = [(finding, covering_waiver(finding, valid)) for finding in failing]
    used = list(dict.fromkeys(waiver for _, waiver in covering if waiver is not None))
    if all(waiver is not None for _, waiver in covering):
        known = _noted(cell, f"waived {_words(used)}")
        return replace(known, status=Status.XFAIL, judged=cell.judged or Status.FAIL, waived=tuple(map(_waived, used)))
    open_still = [finding for finding, waiver in covering if waiver is None]
    reasons = tuple(_why_not(open_still, mine, ran, today))
    sentences = [reason.message for reason in reasons[:1]]
    if used:
        covered, rest = _kinds([waiver.kind for waiver in used]), _kinds([finding.kind for finding in open_still])
        sentences.append(f"waived in part: {covered} {_words(used)}; not {rest}")
    return replace(_noted(cell, *sentences), findings=cell.findings + reasons)


def without_waivers(cell: CellVerdict) -> CellVerdict:
    status = cell.judged or cell.status
    return replace(_as_if_new(cell), status=status, note=cell.own_note, judged=None, judged_note=None)


def before_waivers(cell: CellVerdict) -> CellVerdict:
    """Return a waived cell as the failure that it was; another one as it is."""
    return replace(_as_if_new(cell), status=Status.FAIL) if cell.waived else cell


def _as_if_new(cell: CellVerdict) -> CellVerdict:
    findings = tuple(finding for finding in cell.findings if finding.kind not in WAIVER_KINDS)
    return replace(cell, findings=findings, waived=())


def _noted(cell: CellVerdict, *sentences: str) -> CellVerdict:
    """Return the cell with more in its note; what was there before policy and waivers is kept apart."""
    if not sentences:
        return cell
    return replace(cell, note=joined(cell.note, *sentences), judged_note=cell.own_note)


def covering_waiver(finding: Finding, valid: Sequence[Waiver]) -> Waiver | None:
    """Return the first waiver of what a finding is about that covers its size."""
    return next((item for item in valid if is_about(item, finding) and is_within(item, finding)), None)


def _why_not(findings: Sequence[Finding], mine: Sequence[Waiver], ran: Ran, today: date) -> Iterator[Finding]:
    for waiver in mine:
        alike = [finding for finding in findings if finding.kind == waiver.kind]
        if not alike:
            continue
        who = f"the waiver of {waiver.owner}"
        if has_expired(waiver, today):
            yield Finding(kind="waiver_expired", message=f"{who} expired on {waiver.expires}")
        elif not is_for(waiver, ran):
            message = f"{who} is for torch {range_words(waiver)}, and this is {ran.old} to {ran.new}"
            yield Finding(kind="waiver_elsewhere", message=message)
        elif not all(is_about(waiver, item) for item in alike):
            others = dict.fromkeys(subject_of(item, waiver.model) for item in alike if not is_about(waiver, item))
            named = ", ".join(filter(None, others)) or "another difference"
            yield Finding(kind="waiver_elsewhere", message=f"{who} is for {waiver.about}, and this is {named}")
        else:
            worst = max((item.size for item in alike), key=lambda size: math.inf if size is None else size)
            limit, size = size_words(waiver.kind, waiver.bound, worst)
            message = f"{who} covers {limit} at most, and this is {size}"
            yield Finding(kind="waiver_exceeded", message=message, size=worst)


def size_words(kind: str, bound: float | None, size: float | None) -> tuple[str, str]:
    """Return a bound and a size in words, with as many digits as tell them apart."""
    known = [number for number in (bound, size) if number is not None]
    texts = [f"{number:.3g}" for number in known]
    if len(set(texts)) < len(set(known)):
        texts = [repr(number) for number in known]
    written = dict(zip(known, texts, strict=True))
    what = "{} of the largest value" if MEASURES.get(kind) == "error" else "{} times the old"
    bound_words = "any size" if bound is None else what.format(written[bound])
    return bound_words, "of a size that nobody knows" if size is None else what.format(written[size])


def range_words(waiver: Waiver) -> str:
    return f"{waiver.old or 'any release'} to {waiver.new or 'any release'}"


def _words(used: Sequence[Waiver]) -> str:
    links = [f" ({waiver.issue})" if waiver.issue else "" for waiver in used]
    reasons = [f"until {w.expires} by {w.owner}: {w.reason}{link}" for w, link in zip(used, links, strict=True)]
    return "; ".join(dict.fromkeys(reasons))


def _waived(waiver: Waiver) -> Waived:
    return Waived(
        kinds=(waiver.kind,),
        owner=waiver.owner,
        reason=waiver.reason,
        expires=waiver.expires.isoformat(),
        issue=waiver.issue,
        bound=waiver.bound,
    )


def _kinds(names: Sequence[str]) -> str:
    return ", ".join(dict.fromkeys(names))
