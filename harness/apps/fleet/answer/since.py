"""What became of every artifact since an earlier answer over the same store, and the trend of several. Pure."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace

from harness.core.fleet import FleetChange, FleetOutline, FleetReport, FleetRow, FleetSince, WaveKind
from harness.core.outcome import Status
from harness.core.report import CellTrend

RED = (Status.FAIL, Status.XFAIL)
GOOD = (Status.PASS, Status.XPASS)
OPEN = (None, Status.INCONCLUSIVE)
SAME_CONTENT = "the same was asked in the same environments: it comes and goes, or policy has changed"


def with_since(report: FleetReport, earlier: Sequence[FleetReport]) -> FleetReport:
    if not earlier:
        return report
    other = earlier[-1]
    before, now = _by_place(other), _by_place(report)
    for path, member in sorted(now.keys() - before.keys()):
        if (path, "") in before.keys() - now.keys():  # rows did not always say which model of an archive they are of
            before[path, member] = before.pop((path, ""))
    changes = [_change(before.get(place), now.get(place)) for place in sorted({*before, *now})]
    order = list(CellTrend)
    notable = sorted(
        (item for item in changes if item.change is not CellTrend.UNCHANGED or item.why),
        key=lambda item: (order.index(item.change), item.owner, item.name),
    )
    causes, others = (
        {item.cause.id: item.cause.title for item in answer.causes if item.cause.status is Status.FAIL}
        for answer in (report, other)
    )
    since = FleetSince(
        old=other.old,
        new=other.new,
        decision=other.decision,
        counts=dict(sorted(Counter(item.change.value for item in changes).items())),
        changes=tuple(notable),
        new_causes=tuple(title for key, title in causes.items() if key not in others),
        ended_causes=tuple(title for key, title in others.items() if key not in causes),
        trend=tuple(outline(answer) for answer in (*earlier, report)),
    )
    return replace(report, since=since)


def _by_place(report: FleetReport) -> dict[tuple[str, str], FleetRow]:
    """Return the rows by where their artifacts lie: names depend on what else the store holds."""
    return {(row.path, row.member): row for row in report.rows}


def outline(report: FleetReport) -> FleetOutline:
    """Return an answer in numbers: how many artifacts wait for what."""
    counts = Counter({kind.value: 0 for kind in WaveKind})
    for wave in report.waves:
        counts[wave.kind.value] += len(wave.artifacts)
    return FleetOutline(old=report.old, new=report.new, decision=report.decision, waves=dict(counts))


def _change(before: FleetRow | None, now: FleetRow | None) -> FleetChange:
    row = now or before
    if row is None:
        raise ValueError("an artifact of neither answer")
    change, why = _trend(before, now)
    return FleetChange(
        name=row.name,
        owner=row.owner,
        change=change,
        was=before.status if before is not None else None,
        now=now.status if now is not None else None,
        why=why,
    )


def _trend(before: FleetRow | None, now: FleetRow | None) -> tuple[CellTrend, str]:
    if before is None or now is None:
        return (CellTrend.ADDED if before is None else CellTrend.GONE), ""
    same = bool(now.content) and now.content == before.content
    if before.status in RED and now.status in RED:
        if before.cause == now.cause:
            waived = {Status.XFAIL: "waived before", Status.FAIL: "waived now"}
            return CellTrend.UNCHANGED, waived[before.status] if before.status is not now.status else ""
        why = f"fails otherwise: {now.cause or now.reason}; before: {before.cause or before.reason}"
        return (CellTrend.FLAKY if same else CellTrend.NEW), why
    for red, good, change in ((now, before, CellTrend.NEW), (before, now, CellTrend.FIXED)):
        if red.status in RED and good.status in GOOD:
            return (CellTrend.FLAKY, SAME_CONTENT) if same else (change, "")
    if before.status in OPEN and now.status not in OPEN:
        return CellTrend.UNDECIDED, "the earlier answer does not say whether it fails"
    if now.status in OPEN and before.status not in OPEN:
        return CellTrend.UNDECIDED, now.reason
    return CellTrend.UNCHANGED, ""
