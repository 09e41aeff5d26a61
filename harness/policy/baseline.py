"""A run beside an earlier one: what is new, fixed, the same, or not to be compared. It tells, never decides. Pure."""

from collections import Counter
from collections.abc import Iterator, Mapping

from harness.domain.baseline import BaselineReport, CellChange, Change
from harness.domain.measurement import RatioEstimate
from harness.domain.report import ModelReport, RunReport, SideReport
from harness.domain.verdict import CellVerdict
from harness.policy.baseline_cells import MoreOften, Seen, Stand, change_of
from harness.policy.words import counted

# What a fingerprint has beside torch: a change of these can change a verdict, and is not the models' doing.
MACHINE = ("gpu", "driver", "cpu", "isa", "cuda", "cudnn", "glibc", "python", "intra_op_threads", "inter_op_threads")
ORDER = tuple(Change)


def since(before: RunReport, now: RunReport, more_often: MoreOften) -> BaselineReport:
    """Return what ``now`` has that ``before`` had not, cell by cell; cells are paired by their ids.

    Findings are compared as they were before severities and waivers, which may change between two runs.

    Args:
        more_often: whether so many failures in so many rounds are clearly more frequent than others.
    """
    changes = [*_changes(before, now, more_often)]
    told = [one for one in changes if one.change is not Change.UNCHANGED or one.why]
    return BaselineReport(
        run=before.run,
        started_at=before.started_at,
        decision=before.judgement.decision,
        differences=tuple(_differences(before, now)),
        other_artifacts=tuple(_other_artifacts(before, now)),
        changes=tuple(sorted(told, key=lambda one: ORDER.index(one.change))),
        counts={change.value: count for change, count in sorted(Counter(one.change for one in changes).items())},
    )


def _changes(before: RunReport, now: RunReport, more_often: MoreOften) -> Iterator[CellChange]:
    """Yield one change per cell: those of this run in its order, then those that only the other one had."""
    had, has = _cells(before), _cells(now)
    elsewhere = {_place(seen.cell): id_ for id_, seen in had.items() if id_ not in has}
    same = _same_asked(before, now)
    matched = set()
    for id_, seen in has.items():
        was = had.get(id_)
        other = elsewhere.get(_place(seen.cell)) if was is None else None
        if was is not None:
            asked = _is_same(seen.cell, same, now)
            change, why = change_of(was, seen, same_asked=asked, more_often=more_often)
        elif other is not None:
            matched.add(other)
            was, change = had[other], Change.NOT_COMPARABLE
            why = f"the other run had it as {other}"
        else:
            change, why = _only_here(seen, before)
        yield _told(seen.cell, change, why, was=was, now=seen)
    for id_, seen in had.items():
        if id_ not in has and id_ not in matched:
            yield _told(seen.cell, Change.GONE, _why_gone(seen, now), was=seen)


def _told(cell: CellVerdict, change: Change, why: str, *, was: Seen | None, now: Seen | None = None) -> CellChange:
    return CellChange(
        cell=cell.cell,
        model=cell.model,
        scenario=cell.scenario,
        change=change,
        was=was.cell.status if was is not None else None,
        now=now.cell.status if now is not None else None,
        why=why,
    )


def _cells(report: RunReport) -> dict[str, Seen]:
    facts = {model.model: model for model in report.models}
    return {cell.cell: Seen(cell=cell, steady=_steady(facts.get(cell.model))) for cell in report.judgement.cells}


def _steady(model: ModelReport | None) -> RatioEstimate | None:
    return model.latency.steady if model is not None and model.latency is not None else None


def _place(cell: CellVerdict) -> tuple[str, str, str]:
    """Return what two ids share where direction, device or profile is another one."""
    return cell.model, cell.scenario, cell.cell.rpartition("/")[2]


def _only_here(seen: Seen, before: RunReport) -> tuple[Change, str]:
    known = any(row.model == seen.cell.model for row in before.judgement.rows)
    why = "the other run did not ask this of the model" if known else "the other run did not have the model"
    return (Change.NEW if seen.stand is Stand.RED else Change.ADDED), why


def _why_gone(seen: Seen, now: RunReport) -> str:
    row = next((row for row in now.judgement.rows if row.model == seen.cell.model), None)
    why = "this run does not have the model" if row is None else "this run did not ask this of the model"
    return f"{why}; it failed, and gone is not fixed" if seen.stand is Stand.RED else why


def _same_asked(before: RunReport, now: RunReport) -> frozenset[str]:
    """Return the models of which the same was asked, in the same environments on the same machine."""
    if (before.old.fingerprint, before.new.fingerprint) != (now.old.fingerprint, now.new.fingerprint):
        return frozenset()
    asked = {model.model: model.asked for model in before.models}
    return frozenset(model.model for model in now.models if model.asked and asked.get(model.model) == model.asked)


def _is_same(cell: CellVerdict, same: frozenset[str], now: RunReport) -> bool:
    """Whether the same was asked of a model, and of those that were in its process."""
    if not cell.rounds:
        return cell.model in same
    group = next((model.group for model in now.models if model.model == cell.model), "")
    return all(model.model in same for model in now.models if model.group == group)


def _other_artifacts(before: RunReport, now: RunReport) -> Iterator[str]:
    digests = {model.model: model.artifact_digest for model in before.models}
    for model in now.models:
        was = digests.get(model.model, "")
        if was and model.artifact_digest and was != model.artifact_digest:
            yield model.model


def _differences(before: RunReport, now: RunReport) -> Iterator[str]:
    """Yield what a reader must know before believing a change, a sentence each."""
    pairs = {
        "old release": (_torch(before.old), _torch(now.old)),
        "new release": (_torch(before.new), _torch(now.new)),
        "device": (before.device, now.device),
        "direction": (before.direction, now.direction),
        "profile": (before.profile, now.profile),
        "harness": (before.harness_version, now.harness_version),
        **{name: (_said(before, name), _said(now, name)) for name in MACHINE},
        **{f"limit of {name}": pair for name, pair in _limits(before.limits, now.limits).items()},
    }
    yield from (f"{name}: {was} before, {is_} now" for name, (was, is_) in pairs.items() if was != is_)
    if before.policy is not None and now.policy is not None and before.policy.settings != now.policy.settings:
        yield "the policy is another one"
    if before.run == now.run:
        yield "it is the same run"
    if before.judgement.of_cell:
        yield "the other run repeated one cell only"
    missed = sum(not canary.caught for canary in before.judgement.canaries)
    if missed:
        yield f"the other run missed {counted(missed, 'canary', 'canaries')}: it was blind"
    if before.judgement.vacuous:
        yield f"the other run could not be green: {before.judgement.vacuous}"


def _torch(side: SideReport) -> str:
    name = side.fingerprint.torch if side.fingerprint is not None else side.name
    return f"golden outputs of {name}" if side.golden else name


def _said(report: RunReport, name: str) -> str:
    """Return what the environments of a run say of the machine; both, where they do not say the same."""
    told = [str(getattr(side.fingerprint, name)) for side in (report.old, report.new) if side.fingerprint is not None]
    return " and ".join(dict.fromkeys(told)) or "unknown"


def _limits(before: Mapping[str, float], now: Mapping[str, float]) -> dict[str, tuple[str, str]]:
    names = [*before, *(name for name in now if name not in before)]
    return {name: (_limit(before.get(name)), _limit(now.get(name))) for name in names}


def _limit(value: float | None) -> str:
    return "none" if value is None else f"{value:g}"
