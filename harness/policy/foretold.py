"""Predictions against what happened, and from a model's way back to an answer."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from types import MappingProxyType

from harness.domain.foretold import Answer, Foretold, Loading, ModelRollback, RollbackReport
from harness.domain.inspection import InspectedFile, Prediction, StaticFinding, StaticVerdict, Weight
from harness.domain.outcome import Outcome, Status
from harness.domain.probe import ModelResult
from harness.domain.verdict import CellVerdict
from harness.policy.cells import cell_reason, failure_finding
from harness.policy.findings import OUTCOME_KIND, SEVERITY, Severity
from harness.policy.words import counted

TELLING = {Prediction.FAILS: Weight.STOPS, Prediction.UNKNOWN: Weight.DOUBT}
EXPECTED = {Prediction.LOADS: Loading.LOADED, Prediction.FAILS: Loading.REFUSED}
CHANGED = "semantics_changed"
NO_ARTIFACT = "no model has an artifact of the new release"


def loading(results: Sequence[ModelResult]) -> Loading:
    """Return what loading came to in one release; repeats that do not agree say nothing.

    A hang, a crash and a lack of memory are no answer of the release to what the archive holds.
    """
    seen = {
        Loading.LOADED
        if result.load_ns is not None
        else Loading.REFUSED
        if result.outcome is Outcome.LOAD_ERROR
        else Loading.UNKNOWN
        for result in results
    }
    return seen.pop() if len(seen) == 1 else Loading.UNKNOWN


def foretold(file: InspectedFile, side: str, release: str, results: Sequence[ModelResult]) -> Foretold:
    """Return the prediction for one side beside what happened there; ``results`` may be empty."""
    happened = loading(results)
    verdict = file.verdicts.get(side)
    if verdict is None:
        return Foretold(release=release, happened=happened, note=_why_not_read(file))
    findings = tuple(finding for finding in verdict.findings if finding.weight is not Weight.NOTE)
    expected = EXPECTED.get(verdict.prediction)
    agreed = None if expected is None or happened is Loading.UNKNOWN else happened is expected
    note = ""
    if happened is Loading.UNKNOWN and results:
        note = f"{results[0].outcome.value.replace('_', ' ')} in {results[0].phase or 'start'}"
    told = replace(verdict, findings=findings)
    return Foretold(release=release, verdict=told, happened=happened, agreed=agreed, note=note)


def _why_not_read(file: InspectedFile) -> str:
    if file.failure is not None:
        return f"{file.failure.kind}: {file.failure.text}"
    return file.advice or "it holds no TorchScript code"


def deciding(verdict: StaticVerdict) -> tuple[StaticFinding, ...]:
    """Return the findings that a prediction other than "will load" rests on."""
    weight = TELLING.get(verdict.prediction)
    return tuple(finding for finding in verdict.findings if finding.weight is weight)


def changed_semantics(verdict: StaticVerdict) -> tuple[StaticFinding, ...]:
    """Return the operators that are known to answer otherwise."""
    return tuple(finding for finding in verdict.findings if finding.kind == CHANGED)


def way_back(model: str, told: Foretold | None, verdict: CellVerdict | None, *, why_neither: str = "") -> ModelRollback:
    """Return the answer for one model: what a probe says, else what reading says.

    Args:
        told: the artifact that the new release writes, read for the old one; None where it was not read.
        verdict: of the probe in the old release; None where it was not probed.
    """
    if verdict is not None:
        answer, reason = _probed(verdict)
    elif told is not None:
        answer, reason = _read(told)
    else:
        answer, reason = Answer.UNKNOWN, why_neither
    return ModelRollback(model=model, answer=answer, reason=reason, foretold=told, verdict=verdict)


def _read(told: Foretold) -> tuple[Answer, str]:
    if told.prediction is Prediction.LOADS:
        return Answer.YES, ""
    answer = Answer.NO if told.prediction is Prediction.FAILS else Answer.UNKNOWN
    if told.verdict is None:
        return answer, told.note
    found = deciding(told.verdict)
    more = f" (+{len(found) - 1} more)" if len(found) > 1 else ""
    return answer, f"{found[0].subject}: {found[0].text}{more}"


def _probed(verdict: CellVerdict) -> tuple[Answer, str]:
    if verdict.status is Status.PASS:
        return Answer.YES, ""
    return (Answer.NO if verdict.status is Status.FAIL else Answer.UNKNOWN), cell_reason(verdict)


def fails_already(results: Sequence[ModelResult], release: str) -> str:
    """Return how a model fails in the old release as it is, each time; empty where it completes or that is not clear.

    Such a model has nothing to be rolled back to.
    """
    clear = all(SEVERITY[OUTCOME_KIND[result.outcome]] is Severity.FAIL for result in results if _failed(result))
    if not results or not clear or not all(map(_failed, results)):
        return ""
    return failure_finding(results[0], release, stage="alone").message


def _failed(result: ModelResult) -> bool:
    return result.outcome is not Outcome.COMPLETED


def judge_rollback(
    models: Sequence[ModelRollback],
    *,
    method: str,
    gates: bool,
    why_not: str = "",
    left_out: Mapping[str, str] = MappingProxyType({}),
) -> RollbackReport:
    """Return the answer for all models.

    Args:
        why_not: why nothing was read, where nothing was.
        left_out: models that fail in the old release anyway, and how.
    """
    broken = [item for item in models if item.answer is Answer.NO]
    open_ = [item for item in models if item.answer is Answer.UNKNOWN]
    answer, named = (Answer.NO, broken) if broken else (Answer.UNKNOWN, open_) if open_ else (Answer.YES, [])
    more = f" (+{len(named) - 1} more)" if len(named) > 1 else ""
    total = counted(len(models), "model")
    reason = f"{len(named)} of {total}: {named[0].model}: {named[0].reason}{more}" if named else ""
    if why_not or not models:
        nothing = "every model fails in the old release too" if left_out else NO_ARTIFACT
        answer, reason = Answer.UNKNOWN, why_not or nothing
    return RollbackReport(
        answer=answer, reason=reason, method=method, gates=gates, models=tuple(models), left_out=dict(left_out)
    )
