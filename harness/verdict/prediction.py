"""Judges predictions against what happened, and whether a model can be rolled back."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from types import MappingProxyType

from harness.core.findings import OUTCOME_KIND, SEVERITY, Severity, cell_reason
from harness.core.outcome import Outcome, Status
from harness.core.prediction import (
    ANSWERS_OTHERWISE,
    LOOPS_AT_LOAD,
    RUNS_AT_LOAD,
    SEMANTICS_CHANGED,
    InspectedFile,
    ModelRollback,
    PredictedLoad,
    PredictedModel,
    Prediction,
    RollbackAnswer,
    RollbackReport,
    StaticFinding,
    StaticVerdict,
    Weight,
)
from harness.core.probe import ModelResult
from harness.core.releases import BACKWARD, FORWARD, SAME, Confusion, MatrixCell
from harness.core.text import amount, counted
from harness.core.verdict import CellVerdict

TELLING = {Prediction.FAILS: Weight.STOPS, Prediction.UNKNOWN: Weight.DOUBT}
EXPECTED = {Prediction.LOADS: PredictedLoad.LOADED, Prediction.FAILS: PredictedLoad.REFUSED}
NO_ARTIFACT = "no model has an artifact of the new release"


def loading(results: Sequence[ModelResult]) -> PredictedLoad:
    """Return the outcome of loading in one release; repeats that disagree give none.

    A hang, a crash, a lack of memory and a warning that the caller has made an error are no answer of the release to
    what the archive holds.
    """
    seen = {
        PredictedLoad.LOADED
        if result.load_ns is not None
        else PredictedLoad.REFUSED
        if result.outcome is Outcome.LOAD_ERROR and not _is_warning(result)
        else PredictedLoad.UNKNOWN
        for result in results
    }
    return seen.pop() if len(seen) == 1 else PredictedLoad.UNKNOWN


def _is_warning(result: ModelResult) -> bool:
    return result.failure is not None and result.failure.type.endswith("Warning")


def predicted(
    file: InspectedFile, side: str, release: str, results: Sequence[ModelResult], *, draws: bool = False
) -> PredictedModel:
    """Return prediction and outcome of one side; ``draws``: random numbers were drawn, so notes on them count."""
    happened = loading(results)
    verdict = file.verdicts.get(side)
    if verdict is None:
        return PredictedModel(release=release, happened=happened, note=_why_not_read(file))
    findings = tuple(
        _timed(finding, results)
        for finding in verdict.findings
        if finding.weight is not Weight.NOTE
        or finding.kind == ANSWERS_OTHERWISE
        or (draws and finding.kind == SEMANTICS_CHANGED)
    )
    expected = EXPECTED.get(verdict.prediction)
    agreed = None if expected is None or happened is PredictedLoad.UNKNOWN else happened is expected
    note = ""
    if happened is PredictedLoad.UNKNOWN and results:
        note = f"{results[0].outcome.value.replace('_', ' ')} in {results[0].phase_words or 'start'}"
    shown = replace(verdict, findings=findings)
    return PredictedModel(release=release, verdict=shown, happened=happened, agreed=agreed, note=note)


def _timed(finding: StaticFinding, results: Sequence[ModelResult]) -> StaticFinding:
    """Return the finding; one about a loop that may never end says how long it took, where every load has ended."""
    loads_ns = [result.load_ns for result in results if result.load_ns is not None]
    if finding.kind != LOOPS_AT_LOAD or not loads_ns or len(loads_ns) < len(results):
        return finding
    return replace(finding, text=f"{RUNS_AT_LOAD}, and loops; loading took {amount(max(loads_ns) * 1e-9, 's')} here")


def _why_not_read(file: InspectedFile) -> str:
    if file.failure is not None:
        return f"{file.failure.kind}: {file.failure.text}"
    return file.advice or "it holds no TorchScript code"


def deciding(verdict: StaticVerdict) -> tuple[StaticFinding, ...]:
    weight = TELLING.get(verdict.prediction)
    return tuple(finding for finding in verdict.findings if finding.weight is weight)


def refused_file(file: InspectedFile | None) -> str:
    """Return why the new release, and not the old one, will not load a file that nobody loads here; else empty."""
    verdicts = file.verdicts if file is not None else {}
    new, old = verdicts.get("new"), verdicts.get("old")
    if new is None or new.prediction is not Prediction.FAILS or (old and old.prediction is Prediction.FAILS):
        return ""
    return deciding(new)[0].words


def refused_operators(file: InspectedFile | None) -> tuple[str, ...]:
    """Return the operators for which the new release will not load a file; none where nobody has read it."""
    verdict = file.verdicts.get("new") if file is not None else None
    if verdict is None or verdict.prediction is not Prediction.FAILS:
        return ()
    return tuple(dict.fromkeys(item.subject for item in deciding(verdict) if "::" in item.subject))


def changed_semantics(verdict: StaticVerdict) -> tuple[StaticFinding, ...]:
    """Return the known changes of operators, with a link each, then those that were measured."""
    kinds = (SEMANTICS_CHANGED, ANSWERS_OTHERWISE)
    return tuple(finding for kind in kinds for finding in verdict.findings if finding.kind == kind)


def rollback(
    model: str,
    prediction: PredictedModel | None,
    verdict: CellVerdict | None,
    *,
    loads_already: bool = False,
    why_neither: str = "",
) -> ModelRollback:
    """Return the answer for one model: what a probe says, else what reading says.

    ``prediction`` is that of the artifact which the new release writes, read for the old one. ``loads_already``:
    whether the old release loads the model's own artifact: then its ``__setstate__`` ends there.
    """
    if verdict is not None:
        answer, reason = _probed(verdict)
    elif prediction is not None:
        answer, reason = _read(prediction, loads_already=loads_already)
    else:
        answer, reason = RollbackAnswer.UNKNOWN, why_neither
    return ModelRollback(model=model, answer=answer, reason=reason, predicted=prediction, verdict=verdict)


def _read(model: PredictedModel, *, loads_already: bool) -> tuple[RollbackAnswer, str]:
    if model.prediction is Prediction.LOADS:
        return RollbackAnswer.YES, ""
    answer = RollbackAnswer.NO if model.prediction is Prediction.FAILS else RollbackAnswer.UNKNOWN
    if model.verdict is None:
        return answer, model.note
    telling = [item for item in deciding(model.verdict) if not (loads_already and item.kind == LOOPS_AT_LOAD)]
    if not telling:
        return RollbackAnswer.YES, ""
    more = f" (+{len(telling) - 1} more)" if len(telling) > 1 else ""
    return answer, f"{telling[0].words}{more}"


def _probed(verdict: CellVerdict) -> tuple[RollbackAnswer, str]:
    if verdict.status is Status.PASS:
        return RollbackAnswer.YES, ""
    return (RollbackAnswer.NO if verdict.status is Status.FAIL else RollbackAnswer.UNKNOWN), cell_reason(verdict)


def fails_already(results: Sequence[ModelResult]) -> bool:
    """Whether a model surely fails in the old release as it is, each time: it has nothing to be rolled back to."""
    return bool(results) and all(
        result.outcome is not Outcome.COMPLETED and SEVERITY[OUTCOME_KIND[result.outcome]] is Severity.FAIL
        for result in results
    )


def judge_rollback(
    models: Sequence[ModelRollback],
    *,
    method: str,
    gates: bool,
    why_not: str = "",
    left_out: Mapping[str, str] = MappingProxyType({}),
) -> RollbackReport:
    """Return the answer for all models; ``left_out``: what fails in the old release anyway, and how."""
    broken = [item for item in models if item.answer is RollbackAnswer.NO]
    open_ = [item for item in models if item.answer is RollbackAnswer.UNKNOWN]
    answer, named = (
        (RollbackAnswer.NO, broken)
        if broken
        else (RollbackAnswer.UNKNOWN, open_)
        if open_
        else (RollbackAnswer.YES, [])
    )
    more = f" (+{len(named) - 1} more)" if len(named) > 1 else ""
    total = counted(len(models), "model")
    reason = f"{len(named)} of {total}: {named[0].model}: {named[0].reason}{more}" if named else ""
    if why_not or not models:
        nothing = "every model fails in the old release too" if left_out else NO_ARTIFACT
        answer, reason = RollbackAnswer.UNKNOWN, why_not or nothing
    return RollbackReport(
        answer=answer, reason=reason, method=method, gates=gates, models=tuple(models), left_out=dict(left_out)
    )


def confusion(cells: Iterable[MatrixCell]) -> Confusion:
    """Return how often each prediction met each outcome, over the cells that were predicted."""
    counts = {predicted: dict.fromkeys(PredictedLoad, 0) for predicted in Prediction}
    for cell in cells:
        if cell.predicted is not None:
            counts[cell.predicted][cell.happened] += 1
    return counts


def is_wrong(cell: MatrixCell) -> bool:
    """Whether the prediction was another than what happened; ``unknown`` is never wrong, nor is what has no answer."""
    expected = EXPECTED.get(cell.predicted) if cell.predicted is not None else None
    return expected is not None and cell.happened is not PredictedLoad.UNKNOWN and cell.happened is not expected


def confusion_by_direction(cells: Sequence[MatrixCell]) -> dict[str, Confusion]:
    """Return the counts over ``"all"`` cells, then those of each direction."""
    parts = {name: [cell for cell in cells if cell.direction == name] for name in (BACKWARD, FORWARD, SAME)}
    return {"all": confusion(cells), **{name: confusion(part) for name, part in parts.items()}}
