"""What a verdict is worth where nobody gave inputs: guessed ones, or none at all."""

from dataclasses import replace

from harness.domain.artifact import Artifact
from harness.domain.outcome import Status
from harness.domain.verdict import CellVerdict, Finding


def with_inputs(verdict: CellVerdict, artifact: Artifact) -> CellVerdict:
    """Return the verdict on a model alone with how its inputs were come by; PASS needs at least one call."""
    if not artifact.inputs_note:
        return verdict
    if artifact.input_sets:
        found = Finding(kind="guessed_inputs", message=f"its inputs were {artifact.inputs_note}")
        return replace(verdict, findings=(*verdict.findings, found))
    if any(finding.kind == "load_error" for finding in verdict.findings):
        return verdict  # whatever the inputs, it is not called
    message = f"it was not called: {artifact.inputs_note}"
    if verdict.status is not Status.PASS:
        return replace(verdict, note="; ".join(part for part in (verdict.note, message) if part))
    found = Finding(kind="not_called", message=f"loads, and {message}")
    return replace(verdict, status=Status.INCONCLUSIVE, findings=(found, *verdict.findings))
