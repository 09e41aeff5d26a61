"""From a finished carving to an ``Artifact``: reads the archive as a zip, never with torch."""

from pathlib import Path

from harness.domain.artifact import Artifact, InputSet
from harness.domain.probe import CarveOrder, ProbeResult
from harness.runtime.artifact_store import archive_fields, inputs_digest

ARCHIVE = "carved.pt"
WITHOUT_VALUES = "carved out without a trace: only the types of its inputs are known"


def carved_artifact(artifact: Artifact, order: CarveOrder, carving: ProbeResult) -> Artifact:
    """Return what was carved out of ``artifact``, under its name, with the traced values as its one request.

    Raises:
        ValueError: the saved file is not a readable archive.
    """
    folder = Path(carving.directory)
    called = order.beside is not None
    return Artifact(
        **archive_fields(folder / ARCHIVE),
        model=artifact.model,
        operators=tuple(carving.data["carved"]["operators"]),
        inputs_dir=str(folder / "inputs"),
        inputs_digest=inputs_digest(folder / "inputs"),
        input_sets=(InputSet(name=order.input_set),) if called else (),
        seed=artifact.seed,
        inputs_note="" if called else WITHOUT_VALUES,
    )
