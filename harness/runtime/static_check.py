"""The static check of one file: read it within limits, and predict what releases will do with it."""

from collections.abc import Mapping
from dataclasses import replace

from harness.archive.code_memory import CodeMemory
from harness.archive.limits import LIMITS, CannotRead
from harness.archive.reading import read_artifact
from harness.archive.recognise import recognise
from harness.domain.archive import ArchiveFormat, Problem
from harness.domain.inspection import InspectedFile
from harness.domain.registry import OperatorRegistry
from harness.policy.file_formats import FAILURES, FORMATS
from harness.policy.static import predict
from harness.runtime import artifact_files
from harness.runtime.bundle_file import artifact_window


def inspect_file(
    path: str, registries: Mapping[str, OperatorRegistry], memory: CodeMemory | None = None
) -> InspectedFile:
    """Return facts of one file and a verdict per side; a file that cannot be read has a failure in their place.

    Of a golden bundle the artifact in it is judged.
    """
    try:
        with artifact_files.opened(path) as source:
            facts = read_artifact(source, path, memory=memory)
            if facts.format is ArchiveFormat.GOLDEN_BUNDLE:
                inside = read_artifact(artifact_window(source), path, memory=memory)
                facts = replace(inside, container=ArchiveFormat.GOLDEN_BUNDLE.value)
    except CannotRead as error:
        failure = Problem(kind=error.kind, text=error.text)
        return InspectedFile(path=path, failure=failure, advice=FAILURES[error.kind], verdicts={})
    return InspectedFile(path=path, facts=facts, advice=FORMATS[facts.format][1], verdicts=predict(facts, registries))


def format_of(path: str) -> ArchiveFormat | None:
    """Return what a file is, from its first bytes and the names in it; None where it is damaged or unreadable."""
    try:
        with artifact_files.opened(path) as source:
            found, directory = recognise(source, LIMITS)
    except CannotRead:
        return None
    return None if directory is not None and directory.problems else found
