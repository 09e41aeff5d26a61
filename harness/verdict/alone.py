"""The verdict on one artifact run alone in another environment than its golden outputs; runs and searches share it."""

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Final

from harness.artifacts.archive.formats import FAILURES, FORMATS, MAY_LOAD
from harness.checks.outputs.compare import answers_hold_value
from harness.checks.outputs.findings import with_freedom
from harness.checks.prediction.check import inspect_file
from harness.core.archive import ArchiveFormat
from harness.core.comparison import OutputComparison
from harness.core.diagnosis import FailureRates
from harness.core.environment import Fingerprint
from harness.core.outcome import Status
from harness.core.prediction import InspectedFile
from harness.core.probe import ProbeResult
from harness.core.text import error_words
from harness.core.verdict import CellVerdict
from harness.probing.facts import Effects, Export, OldAnswers
from harness.serving.settings.differences import Setting, concerning, settings, with_differences
from harness.verdict.cell import judge_alone
from harness.verdict.inputs import with_inputs, with_provenance, with_requests
from harness.verdict.missing_libraries import with_libraries
from harness.worker import wire

DAMAGE: Final = frozenset(("damaged", "member_missing", "member_short"))
"""Kinds of problems of a file that no release can help: it ends too early, or lacks what it refers to."""
NO_MODEL: Final = frozenset(ArchiveFormat) - MAY_LOAD | {ArchiveFormat.EMPTY, ArchiveFormat.UNKNOWN}


def judge_one(
    cell: str,
    *,
    export: Export,
    baseline: OldAnswers,
    probe: ProbeResult,
    comparison: OutputComparison | None,
    names: tuple[str, str],
    fingerprints: Mapping[str, Fingerprint],
    effects: Effects,
    rates: FailureRates | None = None,
) -> CellVerdict:
    """Return the verdict on what was exported: what ``probe`` saw of it, judged by ``baseline``.

    ``names`` are those of the release that answered the golden outputs and of the one that is judged by them,
    ``fingerprints`` likewise, as ``old`` and ``new``.
    """
    assert export.artifact is not None
    evidence = effects.evidence(probe.directory)
    verdict = judge_alone(
        cell,
        old=baseline.results,
        new=probe.models[0],
        comparison=comparison,
        old_name=names[0],
        new_name=names[1],
        exit_detail=probe.exit_detail,
        evidence=evidence,
        seen=probe.evidence,
        rates=rates,
    )
    verdict = with_libraries(verdict, baseline.results, probe.models[0], effects.runner.libraries)
    verdict = with_damage(verdict, export.artifact.path)
    inputs = effects.shown(Path(export.artifact.inputs_dir))
    verdict = with_inputs(verdict, export.artifact, answered=answers_hold_value(baseline), evidence=inputs)
    if export.declaration.given is not None:
        verdict = with_requests(verdict)
    if export.provenance is not None:
        verdict = with_provenance(verdict, export.provenance)
    operators = export.artifact.operators
    verdict = replace(verdict, findings=tuple(with_freedom(item, operators) for item in verdict.findings))
    verdict = with_differences(verdict, settings_between(export, baseline, probe, fingerprints))
    return with_evidence(verdict, evidence)


def with_damage(verdict: CellVerdict, path: str) -> CellVerdict:
    """Return the verdict on a model that loads in neither release; of a damaged file, nothing is known of the upgrade.

    ``path``: its file, which is read without torch only where no release has loaded it.
    """
    refused = next((item for item in verdict.findings if item.kind == "load_error"), None)
    if verdict.status is not Status.SAME_FAIL or refused is None:
        return verdict
    damage, advice = _damage_of(inspect_file(path, {}))
    if not damage:
        return verdict
    message = f"not judged: {damage}"
    finding = replace(refused, kind="damaged_file", message=message, subject=verdict.model, error="", advice=advice)
    return replace(verdict, status=Status.INCONCLUSIVE, findings=(finding,), note="")


def _damage_of(file: InspectedFile) -> tuple[str, str]:
    """Return why no release can load a file, and what to do; empty where reading it shows nothing of the kind."""
    if file.facts is not None and file.facts.format in NO_MODEL:
        what, do = FORMATS[file.facts.format]
        return f"the file is no model: {what}", do
    problems = [file.failure] if file.failure is not None else file.facts.problems if file.facts is not None else []
    texts = [problem.text for problem in problems if problem.kind in DAMAGE]
    return (f"the file is damaged: {texts[0]}", FAILURES["damaged"]) if texts else ("", "")


def settings_between(
    export: Export | None,
    baseline: OldAnswers | None,
    probe: ProbeResult | None,
    fingerprints: Mapping[str, Fingerprint],
) -> tuple[Setting, ...]:
    """Return what changes numbers as the exporter, the golden runs and the probe that is judged have it."""
    exporter = export.result.data.get("numerics", {}) if export is not None and export.result is not None else {}
    old = baseline.numerics if baseline is not None else {}
    differences = settings(exporter, old, probe.data.get("numerics", {}) if probe is not None else {}, fingerprints)
    artifact = export.artifact if export is not None else None
    return differences if artifact is None else concerning(differences, artifact.operators)


def with_evidence(verdict: CellVerdict, evidence: str) -> CellVerdict:
    findings = tuple(
        finding if finding.evidence else replace(finding, evidence=evidence) for finding in verdict.findings
    )
    return replace(verdict, findings=findings)


def not_made(export: Export, release: str = "") -> str:
    """Return why there is no artifact: ``could not be exported in torch 2.1.2: ValueError: no such layer``."""
    verb = "exported" if export.declaration.given is None else "taken over"
    of_release = release and (export.failure is None or export.failure.type)
    return f"could not be {verb}{f' in {release}' if of_release else ''}: {why_not_made(export)}"


def why_not_made(export: Export) -> str:
    failure = export.failure
    if failure is None:
        return export.outcome.value.replace("_", " ")
    what = error_words(failure).rstrip(":")
    return f"{export.declaration.where} raises {what}" if failure.phase == wire.CONSTRUCT else what


def unsupported_words(export: Export) -> str:
    return export.failure.message if export.failure is not None else export.outcome.value
