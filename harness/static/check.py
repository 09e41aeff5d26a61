"""The static check of one file: read it within limits, and predict what releases will do with it."""

from collections.abc import Mapping
from dataclasses import replace

from harness.archive.code import CodeMemory
from harness.archive.formats import FAILURES, FORMATS
from harness.archive.limits import CannotRead
from harness.archive.reading import read_artifact
from harness.domain.archive import ArchiveFormat, ArchiveProblem, OperatorRegistry
from harness.domain.prediction import InspectedFile
from harness.models import files
from harness.models.bundles import artifact_window
from harness.static.predict import predict


def inspect_file(
    path: str, registries: Mapping[str, OperatorRegistry], memory: CodeMemory | None = None
) -> InspectedFile:
    """Return facts of one file and a verdict per side; a file that cannot be read has a failure in their place.

    Of a golden bundle the artifact in it is judged.
    """
    try:
        with files.opened(path) as source:
            facts = read_artifact(source, path, memory=memory)
            if facts.format is ArchiveFormat.GOLDEN_BUNDLE:
                inside = read_artifact(artifact_window(source), path, memory=memory)
                facts = replace(inside, container=ArchiveFormat.GOLDEN_BUNDLE.value)
    except CannotRead as error:
        failure = ArchiveProblem(kind=error.kind, text=error.text)
        return InspectedFile(path=path, failure=failure, advice=FAILURES[error.kind], verdicts={})
    return InspectedFile(path=path, facts=facts, advice=FORMATS[facts.format][1], verdicts=predict(facts, registries))
