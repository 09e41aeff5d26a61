"""Predictions against what happened, and the rollback, in words; renderers lay them out."""

from collections.abc import Sequence
from dataclasses import dataclass

from harness.core.prediction import (
    ModelRollback,
    PredictedLoad,
    PredictedModel,
    Prediction,
    RollbackAnswer,
    RollbackReport,
    StaticFinding,
)
from harness.core.report import ModelReport, RunReport
from harness.core.text import counted, first_few
from harness.core.verdict import CellVerdict, RowVerdict
from harness.report.words.phrases import phrase_static, shorten
from harness.verdict.commands import inspect_command
from harness.verdict.prediction import changed_semantics, deciding

Line = tuple[str, str]
NAMED = 3
"""Models, or findings of one model, that are named; the JSON has all."""
REASON_LIMIT = 60
REPORT = "please report it, with the artifact or the code folder in it, and what this command says:"
_GOES = {False: "will load", True: "load and answer alike"}
_FAILS = {False: "will not load", True: "fail"}
OTHER_ANSWERS = frozenset(("structure", "dtype", "nan_placement", "values", "late_divergence"))


@dataclass(frozen=True, kw_only=True, slots=True)
class TestedPrediction:
    """One prediction for a model's artifact: the path of the artifact, and whether the prediction was right."""

    model: str
    artifact: str
    predicted: PredictedModel


def predictions(report: RunReport) -> tuple[TestedPrediction, ...]:
    """Return every prediction that loading could put to the test."""
    upgrade = [
        TestedPrediction(model=model.model, artifact=model.static.artifact, predicted=found)
        for model in report.models
        if model.static is not None
        for found in model.static.sides.values()
    ]
    back = report.rollback.models if report.rollback is not None and report.rollback.method == "probed" else ()
    return (
        *upgrade,
        *(
            TestedPrediction(model=item.model, artifact=item.artifact, predicted=item.predicted)
            for item in back
            if item.predicted is not None
        ),
    )


def static_words(report: RunReport) -> str:
    """Return how many predictions were right, which were wrong and which nothing tests; empty where none was made."""
    found = predictions(report)
    if not found:
        return ""
    tested = [item for item in found if item.predicted.agreed is not None]
    wrong = [item for item in tested if not item.predicted.agreed]
    untested = [item for item in found if item.predicted.agreed is None]
    parts = [f"predictions of what will load: {len(tested) - len(wrong)} of {len(tested)} right"]
    if wrong:
        parts.append(f"WRONG: {_named(wrong)}")
    if untested:
        parts.append(f"not tested: {_named(untested)}")
    return "; ".join(parts)


def _named(found: Sequence[TestedPrediction]) -> str:
    """Return the models, each once, with the releases, and with the reason of the first of these."""
    models: dict[str, list[PredictedModel]] = {}
    for item in found:
        models.setdefault(item.model, []).append(item.predicted)
    names = [
        f"{model} in {' and '.join(dict.fromkeys(told.release for told in of_model))}{_why_untested(of_model[0])}"
        for model, of_model in models.items()
    ]
    return first_few(names, NAMED)


def _why_untested(predicted: PredictedModel) -> str:
    if predicted.agreed is not None:
        return ""
    if predicted.prediction is Prediction.UNKNOWN:
        what = predicted.note or (predicted.happened.value if predicted.happened is not PredictedLoad.UNKNOWN else "")
        return f" (predicted: unknown{'; ' if what else ''}{shorten(what, REASON_LIMIT)})"
    return f" ({predicted.note})" if predicted.note else ""


def wrong_predictions(report: RunReport, directory: str) -> tuple[tuple[str, tuple[Line, ...], str], ...]:
    """Return (model and release, lines, command) per wrong prediction; a command is never wrapped."""
    found = []
    for item in predictions(report):
        if item.predicted.agreed is False:
            said = f"{item.predicted.prediction}, and it {item.predicted.happened}"
            whose = "This is a bug of the static check, not of the model: the decision does not rest on it"
            texts = (("said", f"{said}. {whose}"), ("report", REPORT))
            command = inspect_command(report, place(item.artifact, report.folder or directory))
            found.append((f"{item.model} in {item.predicted.release}", texts, command))
    return tuple(found)


def place(path: str, directory: str) -> str:
    """Return a path of the report as the reader would type it; ``directory`` is where the run lies."""
    return path if path.startswith("/") else f"{directory}/{path}"


def static_lines(cell: CellVerdict, facts: ModelReport | None) -> tuple[Line, ...]:
    """Return why a red cell's model does not load, and where, or which operators are known to answer otherwise."""
    predicted = facts.static.sides.get("new") if facts is not None and facts.static is not None else None
    if predicted is None:
        return ()
    if "load_error" in cell.kinds and cell.scenario == "alone":
        return reasons(predicted)
    if predicted.verdict is not None and not OTHER_ANSWERS.isdisjoint(cell.kinds):
        return _lines(changed_semantics(predicted.verdict))
    return ()


def foreseen(row: RowVerdict | None, facts: ModelReport | None) -> tuple[str, ...]:
    """Return why the model of a row does not load, as reading it has told; the error that was raised may not say so."""
    cells = row.cells if row is not None else ()
    predicted = facts.static.sides.get("new") if facts is not None and facts.static is not None else None
    loads = not any("load_error" in cell.kinds and cell.scenario == "alone" for cell in cells)
    if loads or predicted is None or predicted.verdict is None or not predicted.agreed:
        return ()
    return tuple(finding.text for finding in deciding(predicted.verdict)[:NAMED])


def reasons(predicted: PredictedModel) -> tuple[Line, ...]:
    """Return the findings that a prediction rests on, with their place; or that it was wrong, or that there is none."""
    if predicted.agreed is False:
        return (("static", f"predicted that it {predicted.prediction}: wrong, and a bug of the static check"),)
    if predicted.verdict is None:
        return (("static", predicted.note),) if predicted.note else ()
    return _lines(deciding(predicted.verdict))


def _lines(found: Sequence[StaticFinding]) -> tuple[Line, ...]:
    lines = [("static", phrase_static(finding)) for finding in found[:NAMED]]
    more = len(found) - NAMED
    return (*lines, *([("static", f"and {counted(more, 'finding')} more, in report.json")] if more > 0 else []))


def rollback_words(report: RunReport) -> str:
    """Return whether one can roll back, on one line; empty if that was not checked."""
    found = report.rollback
    if found is None:
        return ""
    if not found.models:
        return f"not known: {found.reason}"
    probed = found.method == "probed"
    how = "probed" if probed else "read, not probed: --rollback"
    writes, total = f"that {report.new.name} writes", len(found.models)
    if found.answer is RollbackAnswer.YES:
        every = f"all {total} artifacts" if total > 1 else "the artifact"
        does = _GOES[probed] if total > 1 or not probed else "loads and answers alike"
        return f"yes: {every} {writes} {does} in {report.old.name} ({how})"
    named = closed_rollbacks(found)
    first, count = named[0], sum(item.answer is named[0].answer for item in named)
    unknown = len(named) - count
    more = f" (+{count - 1} more)" if count > 1 else ""
    reason = f"{first.model}: {first.reason}{more}" + (f"; not known of {unknown} others" if unknown else "")
    if found.answer is RollbackAnswer.UNKNOWN:
        return f"not known of {count} of {counted(total, 'model')} ({how}). {reason}"
    back = f"{_FAILS[probed]} in {report.old.name}"
    return f"no: {count} of {counted(total, 'artifact')} {writes} {back} ({how}). {reason}"


def closed_rollbacks(found: RollbackReport) -> tuple[ModelRollback, ...]:
    """Return the models that cannot be rolled back, then those of which that is not known."""
    order = (RollbackAnswer.NO, RollbackAnswer.UNKNOWN)
    return tuple(item for answer in order for item in found.models if item.answer is answer)


def closed_words(answer: RollbackAnswer) -> str:
    """Return what an answer other than yes says of a model."""
    return "cannot be rolled back" if answer is RollbackAnswer.NO else "not known whether it can be rolled back"


def rollback_lines(item: ModelRollback) -> tuple[Line, ...]:
    """Return what is in a model's rollback, and where."""
    lines: list[Line] = []
    if item.verdict is not None:
        findings = item.verdict.findings
        lines += [("what", f"{finding.kind}: {finding.message}") for finding in findings[:NAMED]]
        lines += [("what", item.verdict.note)] if item.verdict.note else []
    elif item.predicted is not None:
        lines.append(("what", f"{item.predicted.prediction} in {item.predicted.release}"))
    else:
        lines.append(("what", item.reason))
    prediction = item.predicted
    if prediction is not None and (item.verdict is None or prediction.happened is PredictedLoad.REFUSED):
        lines += reasons(prediction)
    return tuple(lines)


def back_heading(report: RunReport, item: ModelRollback) -> tuple[str, str]:
    """Return the words and the subject of one model's block."""
    word = "NO ROLLBACK" if item.answer is RollbackAnswer.NO else "ROLLBACK NOT KNOWN"
    return word, f"{item.model}: {report.new.name} -> {report.old.name}"
