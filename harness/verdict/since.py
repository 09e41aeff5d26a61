"""Compares a run with an earlier one: what is new, fixed, the same, or not comparable. Pure.

It decides nothing but one thing, which no run can see by itself: a model that works in neither release and did before.
"""

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Final

from harness.core.findings import MEASURES, SEVERITY, Severity
from harness.core.measurement import RatioEstimate
from harness.core.outcome import Status
from harness.core.report import BaselineReport, CellChange, CellTrend, ModelReport, RunReport, SideReport
from harness.core.text import counted, first_few, joined, times_of
from harness.core.verdict import CellVerdict, Finding
from harness.verdict.causes import is_same, subject_of

# Sizes of one kind that lie within this factor count as the same failure.
GROWN = 2.0
BROKEN_SINCE: Final = "broken_since"
ROUNDS_MOST = 200
SAME_ASKED = "the same was asked in the same environments, and the answer is another one: it comes and goes"
NAMED = 3


class Stand(Enum):
    """What a run says of a cell before waivers and severities: policy may change between two runs, facts do not."""

    RED = "red"
    OPEN = "open"
    QUIET = "quiet"  # open, and it does not matter
    GOOD = "good"
    BROKEN = "broken"  # in the old release too
    UNASKED = "unasked"


@dataclass(frozen=True, kw_only=True, slots=True)
class Seen:
    """One cell as one run has it; ``steady`` is its model's latency where that was measured."""

    cell: CellVerdict
    steady: RatioEstimate | None = None

    @property
    def stand(self) -> Stand:
        status = self.cell.judged or self.cell.status
        if status in (Status.FAIL, Status.XFAIL):
            return Stand.RED
        if status in (Status.PASS, Status.XPASS):
            return Stand.GOOD
        if status is Status.UNSUPPORTED:
            return Stand.UNASKED
        if not self.cell.decides:
            return Stand.QUIET
        return Stand.BROKEN if status is Status.SAME_FAIL or "damaged_file" in self.cell.kinds else Stand.OPEN

    @property
    def failed(self) -> tuple[int, int]:
        """How many of how many rounds failed; of what is not counted, as of a race, the least that it can be."""
        least = 1 if self.stand is Stand.RED else 0
        return max(self.cell.failed_rounds, least), max(self.cell.rounds, 1)

    @property
    def kinds(self) -> frozenset[str]:
        """The kinds of its failing findings; of all of them where policy has made a failure of something else."""
        failing = {
            finding.kind for finding in self.cell.findings if SEVERITY.get(finding.kind, Severity.FAIL) is Severity.FAIL
        }
        return frozenset(failing or {finding.kind for finding in self.cell.findings})

    @property
    def failures(self) -> tuple[str, ...]:
        """What it fails by, in words, each once: ``load_error of aten::foo``."""
        return tuple(sorted({self._failure(item) for item in self.cell.findings if item.kind in self.kinds}))

    def unlike(self, before: "Seen") -> tuple[str, ...]:
        """Return its failures of a kind that ``before`` had not, or of another operator or error than all it had."""
        model = self.cell.model
        had = {
            kind: [subject_of(item, model) for item in before.cell.findings if item.kind == kind]
            for kind in before.kinds
        }
        new = (
            self._failure(item)
            for item in self.cell.findings
            if item.kind in self.kinds
            and (item.kind not in had or not any(not about or is_same(about, item, model) for about in had[item.kind]))
        )
        return tuple(sorted(set(new)))

    def _failure(self, finding: Finding) -> str:
        subject = subject_of(finding, self.cell.model)
        return f"{finding.kind} of {subject}" if subject else finding.kind


TrendAndReason = tuple[CellTrend, str]
# Failures and rounds, those of another run: whether the first clearly fails more often.
MoreOften = Callable[[int, int, int, int], bool]


def change_of(before: Seen, now: Seen, *, same_asked: bool, more_often: MoreOften) -> TrendAndReason:
    """Return how a cell that both runs have changed, and why.

    ``same_asked``: whether artifact, inputs, settings and environments are surely the same in both runs;
    ``more_often``: the test of rates, of ``harness/checks/startup/rates.py``.
    """
    stands = (before.stand, now.stand)
    if Stand.UNASKED in stands:
        both = stands == (Stand.UNASKED, Stand.UNASKED)
        return (CellTrend.UNCHANGED, "") if both else (CellTrend.NOT_COMPARABLE, "one of the runs could not ask it")
    if stands == (Stand.RED, Stand.RED):
        return _both_red(before, now, same_asked=same_asked, more_often=more_often)
    if {*stands} == {Stand.RED, Stand.GOOD}:
        return _turned(before, now, same_asked=same_asked, more_often=more_often)
    if {*stands} == {Stand.BROKEN, Stand.GOOD} or (stands == (Stand.RED, Stand.BROKEN) and not now.cell.rounds):
        return _broken(before, now, same_asked=same_asked, more_often=more_often)
    if Stand.RED in stands or (Stand.OPEN in stands and Stand.GOOD in stands):
        first = stands[0] not in (Stand.RED, Stand.GOOD)
        return CellTrend.UNDECIDED, f"{'the other run' if first else 'this run'} does not say whether it fails"
    if _is_still_broken(before, now):
        return CellTrend.UNCHANGED, f"{_how_broken(now)}, and worked before the baseline"
    return CellTrend.UNCHANGED, _other_policy(before, now)


def _is_still_broken(before: Seen, now: Seen) -> bool:
    """Whether what fails in both releases in both runs was held against it in the first, for it had worked before."""
    both = before.stand is now.stand is Stand.BROKEN and now.cell.decides
    return both and bool({BROKEN_SINCE, "damaged_file"} & {*before.cell.kinds})


def _how_broken(now: Seen) -> str:
    kinds = {*now.cell.kinds} - {BROKEN_SINCE}
    does = "fails in both releases" if kinds else "fails in the old release"
    return "loads in neither release" if kinds & {"load_error", "damaged_file"} else does


def _both_red(before: Seen, now: Seen, *, same_asked: bool, more_often: MoreOften) -> TrendAndReason:
    others = now.unlike(before)
    if others:
        how = f"fails otherwise: {', '.join(others)}; before: {', '.join(before.failures) or 'unknown'}"
        return (CellTrend.FLAKY, f"{how}; {SAME_ASKED}") if same_asked else (CellTrend.NEW, how)
    change = CellTrend.GREW if _is_worse(before, now, more_often) else CellTrend.UNCHANGED
    return change, joined(_rates(before, now, more_often), *_sizes(before, now), _other_policy(before, now))


def _is_worse(before: Seen, now: Seen, more_often: MoreOften) -> bool:
    often = bool(before.cell.rounds and now.cell.rounds) and more_often(*now.failed, *before.failed)
    return often or any(new > old for _, new, old in _moved(before, now))


def _broken(before: Seen, now: Seen, *, same_asked: bool, more_often: MoreOften) -> TrendAndReason:
    """Return how what fails in both releases stood before: the model has changed, and no upgrade can tell."""
    change, why = _turned(before, now, same_asked=same_asked, more_often=more_often)
    if change is not CellTrend.NEW:
        return change, why
    was = "passed" if before.stand is Stand.GOOD else "failed in the new one only"
    return change, joined(f"{_how_broken(now)}, and {was} in the baseline", why)


def _turned(before: Seen, now: Seen, *, same_asked: bool, more_often: MoreOften) -> TrendAndReason:
    change = CellTrend.FIXED if now.stand is Stand.GOOD else CellTrend.NEW
    red = now if change is CellTrend.NEW else before
    if "latency" in red.kinds and before.steady is not None and now.steady is not None:
        return _timed(change, before.steady, now.steady)
    if before.cell.rounds or now.cell.rounds:
        return _in_rounds(change, before, now, same_asked=same_asked, more_often=more_often)
    return (CellTrend.FLAKY, SAME_ASKED) if same_asked else (change, "")


def _timed(change: CellTrend, before: RatioEstimate, now: RatioEstimate) -> TrendAndReason:
    """Return whether a latency has really moved: the intervals of two runs that saw the same overlap."""
    words = f"{now.words}, was {before.words}"
    if before.low <= now.high and now.low <= before.high:
        return CellTrend.FLAKY, f"{words}: the intervals of the two runs overlap"
    return change, words


def _in_rounds(
    change: CellTrend, before: Seen, now: Seen, *, same_asked: bool, more_often: MoreOften
) -> TrendAndReason:
    """Return whether rounds of initialization tell the two runs apart."""
    red, good = (now, before) if change is CellTrend.NEW else (before, now)
    failed, rounds = red.failed
    words = f"fails {_counted(now)}, before {_counted(before)}"
    if more_often(failed, rounds, *good.failed):
        return change, words
    if failed < rounds or same_asked:
        return CellTrend.FLAKY, f"{words}: so few rounds do not tell these apart"
    if change is CellTrend.NEW:
        return change, words
    return CellTrend.UNDECIDED, f"{words}: too few to say that it is gone{_enough(failed, rounds, more_often)}"


def _enough(failed: int, rounds: int, more_often: MoreOften) -> str:
    """Return how many rounds without a failure would say so."""
    needed = next((many for many in range(1, ROUNDS_MOST) if more_often(failed, rounds, 0, many)), None)
    return f", --init-rounds {needed} would be enough" if needed is not None else ""


def _rates(before: Seen, now: Seen, more_often: MoreOften) -> str:
    if not (before.cell.rounds and now.cell.rounds):
        return ""
    more, less = more_often(*now.failed, *before.failed), more_often(*before.failed, *now.failed)
    how = "more often" if more else "less often" if less else ""
    return f"clearly {how}: {_counted(now)}, before {_counted(before)}" if how else ""


def _sizes(before: Seen, now: Seen) -> list[str]:
    return [
        f"{finding.kind} {'grew' if new > old else 'shrank'}: {finding.size:.3g}, was {was:.3g}"
        for finding, new, old in _moved(before, now)
        if (was := _size_of(before, finding.kind)) is not None
    ]


def _moved(before: Seen, now: Seen) -> Iterator[tuple[Finding, float, float]]:
    """Yield the findings of another size than before, with what they differ by from what is expected: now, and then."""
    for finding in now.cell.findings:
        was = _size_of(before, finding.kind)
        if finding.size is None or was is None or finding.kind not in now.kinds:
            continue
        base = 1.0 if MEASURES.get(finding.kind) == "ratio" else 0.0
        new, old = abs(finding.size - base), abs(was - base)
        if max(new, old) > GROWN * min(new, old):
            yield finding, new, old


def _size_of(seen: Seen, kind: str) -> float | None:
    sizes = [finding.size for finding in seen.cell.findings if finding.kind == kind and finding.size is not None]
    return sizes[-1] if sizes else None


def _other_policy(before: Seen, now: Seen) -> str:
    """Return that only waivers or severities have changed; empty where the status is the same."""
    if before.cell.status is now.cell.status:
        return ""
    if before.stand is now.stand and Stand.QUIET not in (before.stand, now.stand):
        return "the same was found; a waiver or the policy makes another status of it"
    return ""


def _counted(seen: Seen) -> str:
    return f"in {times_of(*seen.failed)}"


# What a fingerprint has beside torch: a change of these can change a verdict, and is not the models' doing.
MACHINE = ("gpu", "driver", "cpu", "isa", "cuda", "cudnn", "glibc", "python", "intra_op_threads", "inter_op_threads")
ORDER = tuple(CellTrend)


def since(before: RunReport, now: RunReport, more_often: MoreOften) -> BaselineReport:
    """Return what changed since ``before``, by cell id; findings are compared without severities and waivers."""
    changes = [*_changes(before, now, more_often)]
    listed = [
        change_made for change_made in changes if change_made.change is not CellTrend.UNCHANGED or change_made.why
    ]
    return BaselineReport(
        run=before.run,
        started_at=before.started_at,
        decision=before.judgement.decision,
        differences=tuple(_differences(before, now)),
        other_artifacts=tuple(_other_artifacts(before, now)),
        now_guessed=tuple(_now_guessed(before, now)),
        changes=tuple(sorted(listed, key=lambda change_made: ORDER.index(change_made.change))),
        counts={
            change.value: count
            for change, count in sorted(Counter(change_made.change for change_made in changes).items())
        },
    )


def _changes(before: RunReport, now: RunReport, more_often: MoreOften) -> Iterator[CellChange]:
    """Yield one change per cell: those of this run in its order, then those that only the other one had."""
    had, has = _cells(before), _cells(now)
    same, elsewhere = _same_asked(before, now), _elsewhere(before, now)
    for id_, seen in has.items():
        was = had.get(id_)
        if was is None:
            change, why = _only_here(seen, before)
        elif elsewhere:
            change, why = CellTrend.NOT_COMPARABLE, elsewhere
        else:
            asked = _is_same(seen.cell, same, now)
            change, why = change_of(was, seen, same_asked=asked, more_often=more_often)
        yield _cell_change(seen.cell, change, why, was=was, now=seen)
    for id_, seen in had.items():
        if id_ in has:
            continue
        if now.judgement.interrupted:
            change, why = CellTrend.NOT_COMPARABLE, "this run was interrupted before it came to that"
        else:
            change, why = CellTrend.GONE, _why_gone(seen, now)
        yield _cell_change(seen.cell, change, why, was=seen)


def _cell_change(
    cell: CellVerdict, change: CellTrend, why: str, *, was: Seen | None, now: Seen | None = None
) -> CellChange:
    return CellChange(
        cell=cell.cell,
        model=cell.model,
        scenario=cell.scenario,
        change=change,
        was=was.cell.status if was is not None else None,
        now=now.cell.status if now is not None else None,
        why=why,
        still_broken=was is not None and now is not None and _is_still_broken(was, now),
    )


def _cells(report: RunReport) -> dict[str, Seen]:
    facts = {model.model: model for model in report.models}
    return {cell.cell: Seen(cell=cell, steady=_steady(facts.get(cell.model))) for cell in report.judgement.cells}


def _steady(model: ModelReport | None) -> RatioEstimate | None:
    return model.latency.shown if model is not None and model.latency is not None else None


def _elsewhere(before: RunReport, now: RunReport) -> str:
    pairs = ((before.device, now.device), (before.profile, now.profile), (before.direction, now.direction))
    others = [was for was, is_ in pairs if was != is_]
    return f"the other run was of {', '.join(others)}" if others else ""


def _only_here(seen: Seen, before: RunReport) -> tuple[CellTrend, str]:
    known = any(row.model == seen.cell.model for row in before.judgement.rows)
    why = "the other run did not ask this of the model" if known else "the other run did not have the model"
    return (CellTrend.NEW if seen.stand is Stand.RED else CellTrend.ADDED), why


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


def _now_guessed(before: RunReport, now: RunReport) -> Iterator[str]:
    given = {model.model for model in before.models if model.asked and not model.guessed}
    yield from (model.model for model in now.models if model.guessed and model.model in given)


def gone_models(report: RunReport) -> list[str]:
    """Return the models that the baseline had and this run does not select."""
    rows = {row.model for row in report.judgement.rows}
    changes = report.baseline.changes if report.baseline is not None else ()
    return list(
        dict.fromkeys(item.model for item in changes if item.change is CellTrend.GONE and item.model not in rows)
    )


def gone_words(models: Sequence[str]) -> str:
    return f"gone since the baseline: {first_few(models, NAMED)}"


def _differences(before: RunReport, now: RunReport) -> Iterator[str]:
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
    if before.policy.settings != now.policy.settings:
        yield "the policy is another one"
    if before.run == now.run:
        yield "it is the same run"
    if before.judgement.of_cell:
        yield "the other run repeated one cell only"
    missed = sum(not planted_defect.caught for planted_defect in before.judgement.planted_defects)
    if missed:
        yield f"the other run missed {counted(missed, 'planted defect', 'planted defects')}: it was blind"
    if before.judgement.vacuous:
        yield f"the other run could not be green: {before.judgement.vacuous}"


def _torch(side: SideReport) -> str:
    name = side.fingerprint.torch if side.fingerprint is not None else side.name
    return f"golden outputs of {name}" if side.golden else name


def _said(report: RunReport, name: str) -> str:
    """Return what the environments of a run say of the machine; both, where they do not say the same."""
    values = [str(getattr(side.fingerprint, name)) for side in (report.old, report.new) if side.fingerprint is not None]
    return " and ".join(dict.fromkeys(values)) or "unknown"


def _limits(before: Mapping[str, float], now: Mapping[str, float]) -> dict[str, tuple[str, str]]:
    names = [*before, *(name for name in now if name not in before)]
    return {name: (_limit(before.get(name)), _limit(now.get(name))) for name in names}


def _limit(value: float | None) -> str:
    return "none" if value is None else f"{value:g}"
