"""What the waivers did in a whole run: which were used, were not needed, are too broad, or expire soon."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from datetime import date

from harness.core.findings import MEASURES, Severity
from harness.core.outcome import Status
from harness.core.report import RunReport
from harness.core.text import counted, first_few
from harness.core.verdict import CellVerdict, Finding, Waiver, WaiverState, WaiverUse
from harness.verdict.waivers.apply import Ran, concerns, failing_findings, has_expired, is_about, is_for, is_within

# Chosen: two weeks' notice leaves the owner time for one more release with a fix.
SOON_DAYS = 14
# Chosen: after more than a year, the owner will not remember the reason.
LONG_DAYS = 366
# Chosen: a bound so many times what was seen (of a ratio: of what it is above 1) lets another defect through.
FAR_ABOVE = 10.0
# These hide what a model would have answered, and each other.
HIDES = ("load_error", "call_error", "out_of_memory", "crash", "hang", "concurrent_error")
# These show, or can show, only while a server starts.
BROUGHT_UP = ("crash", "exit_crash", "hang", "concurrent_error", "race", "graph_replay", "capture_error")
TIMED = ("memory_growth", "recompilation", "quantity_lost")
JUDGED = (Status.PASS, Status.XPASS, Status.FAIL, Status.XFAIL)
NAMED = 4


def waiver_uses(
    cells: Sequence[CellVerdict], waivers: Sequence[Waiver], ran: Ran, today: date
) -> tuple[WaiverUse, ...]:
    """Return what each waiver did in a run, in the order of the file; ``cells``: all of the run, waivers applied."""
    of_model: dict[str, list[CellVerdict]] = {}
    for cell in cells:
        of_model.setdefault(cell.model, []).append(cell)
    return tuple(_use(waiver, of_model.get(waiver.model, ()), ran, today) for waiver in waivers)


def uses_without_run(waivers: Sequence[Waiver], today: date) -> tuple[WaiverUse, ...]:
    """Return what can be said of waivers without a run."""
    return tuple(
        WaiverUse(
            waiver=waiver,
            state=WaiverState.EXPIRED if has_expired(waiver, today) else WaiverState.NOT_JUDGED,
            broad=tuple(too_broad(waiver, today)),
            days_left=(waiver.expires - today).days,
        )
        for waiver in waivers
    )


def ran_by(report: RunReport) -> Ran:
    """Return what a run was; a version of torch is empty where its report does not know it."""
    old, new = (side.fingerprint.torch if side.fingerprint is not None else "" for side in (report.old, report.new))
    return Ran(old, new, report.device, report.profile)


def _use(waiver: Waiver, cells: Sequence[CellVerdict], ran: Ran, today: date) -> WaiverUse:
    own = [cell for cell in cells if concerns(waiver, cell, ran)]
    red = [cell for cell in own if _is_red(cell) and _covered(waiver, cell)]
    covered = [finding for cell in red for finding in _covered(waiver, cell)]
    size = max((finding.size for finding in covered if finding.size is not None), default=None)
    if has_expired(waiver, today):
        state = WaiverState.EXPIRED
    elif not is_for(waiver, ran):
        state = WaiverState.OTHER_PAIR
    elif not all(is_within(waiver, finding) for finding in covered):
        state = WaiverState.EXCEEDED
    elif red:
        state = WaiverState.USED
    else:
        state = WaiverState.UNUSED if _was_looked_for(waiver, own) else WaiverState.NOT_JUDGED
    return WaiverUse(
        waiver=waiver,
        state=state,
        cells=tuple(cell.cell for cell in red),
        size=size,
        broad=tuple(too_broad(waiver, today, size=size)),
        days_left=(waiver.expires - today).days,
    )


def _is_red(cell: CellVerdict) -> bool:
    return cell.status in (Status.FAIL, Status.XFAIL) or bool(cell.waived)


def _covered(waiver: Waiver, cell: CellVerdict) -> list[Finding]:
    return [finding for finding in failing_findings(cell) if is_about(waiver, finding)]


def _was_looked_for(waiver: Waiver, own: Sequence[CellVerdict]) -> bool:
    places = [cell for cell in own if (cell.scenario == "latency") is _is_timed(waiver)]
    if waiver.kind in BROUGHT_UP and not waiver.scenario and all(cell.scenario == "alone" for cell in places):
        return False
    return bool(places) and all(_shows(cell, waiver.kind) for cell in places)


def _is_timed(waiver: Waiver) -> bool:
    """Whether a waiver is for what only a latency cell can show."""
    return MEASURES.get(waiver.kind) == "ratio" or waiver.kind in TIMED


def _shows(cell: CellVerdict, kind: str) -> bool:
    """Whether a cell says that nothing of this kind fails it: not where the policy lets that pass."""
    let_pass = any(item.kind == kind and item.was == Severity.FAIL and not item.why for item in cell.ruled)
    return cell.status in JUDGED and not let_pass and not any(finding.kind in HIDES for finding in cell.findings)


def too_broad(waiver: Waiver, today: date, *, size: float | None = None) -> Iterator[str]:
    """Yield what makes a waiver broader than needed; ``size``: the largest finding it was needed for, if known."""
    measure = MEASURES.get(waiver.kind)
    if measure is not None and waiver.bound is None:
        yield "no bound"
    elif measure is not None and waiver.bound is not None and size is not None:
        zero = 1.0 if measure == "ratio" else 0.0
        if waiver.bound - zero > FAR_ABOVE * (size - zero):
            yield f"a bound of {waiver.bound:.3g} where {size:.3g} was seen"
    if not waiver.old and not waiver.new:
        yield "any pair of releases"
    days = (waiver.expires - today).days
    if days > LONG_DAYS:
        yield f"{days} days long"


def fail_unused(
    cells: Sequence[CellVerdict], waivers: Sequence[Waiver], ran: Ran, today: date
) -> tuple[CellVerdict, ...]:
    """Return the cells, XPASS for needless waivers; without a green cell there, one waived otherwise takes it."""
    judged = list(cells)
    for use in waiver_uses(cells, waivers, ran, today):
        if use.state is not WaiverState.UNUSED:
            continue
        own = [(index, cell) for index, cell in enumerate(judged) if concerns(use.waiver, cell, ran)]
        expected = [(index, cell) for index, cell in own if _expects(use.waiver, cell)]
        green = (Status.PASS, Status.XPASS, Status.XFAIL)
        place = min(expected, key=lambda item: green.index(item[1].status), default=None)
        if place is not None:
            judged[place[0]] = _unexpected(place[1], use.waiver)
    return tuple(judged)


def _expects(waiver: Waiver, cell: CellVerdict) -> bool:
    if (cell.scenario == "latency") is not _is_timed(waiver):
        return False
    return cell.status in (Status.PASS, Status.XPASS, Status.XFAIL)


def _unexpected(cell: CellVerdict, waiver: Waiver) -> CellVerdict:
    message = f"the waiver of {waiver.owner} for {waiver.kind} is needed no more"
    finding = Finding(kind="waiver_unused", message=message)
    judged = cell.judged or cell.status
    return replace(cell, status=Status.XPASS, findings=(finding, *cell.findings), judged=judged, decides=True)


def waiver_notes(uses: Sequence[WaiverUse]) -> tuple[str, ...]:
    """Return what a reader of a run should know of its waivers: a line for each matter, none where all is well."""
    live = [use for use in uses if use.state in (WaiverState.USED, WaiverState.EXCEEDED, WaiverState.UNUSED)]
    unused = [_name(use.waiver) for use in live if use.state is WaiverState.UNUSED]
    soon = [f"{_name(use.waiver)}: {days_words(use.days_left)}" for use in live if use.days_left <= SOON_DAYS]
    broad = [f"{_name(use.waiver)}: {', '.join(use.broad)}" for use in live if use.broad]
    over = [_name(use.waiver) for use in uses if use.state is WaiverState.EXPIRED and use.cells]
    notes = (
        (unused, "not needed in this run; waivers prune removes those that never are"),
        (over, "expired, and still needed"),
        (soon, "about to expire"),
        (broad, "broader than needed"),
    )
    return tuple(
        f"{counted(len(names), 'waiver')} {what}: {first_few(names, NAMED, '; ')}" for names, what in notes if names
    )


def days_words(days: int) -> str:
    if days < 0:
        return f"expired {counted(-days, 'day')} ago"
    return "today is its last day" if days == 0 else f"{counted(days, 'day')} left"


def _name(waiver: Waiver) -> str:
    place = f" {waiver.scenario}" if waiver.scenario else ""
    return f"{waiver.kind} of {waiver.model}{place} ({waiver.owner})"
