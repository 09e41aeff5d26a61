"""The static check: reads artifacts within limits and predicts what releases will do with them; none is loaded."""

from collections.abc import Mapping
from dataclasses import replace

from harness.artifacts import files
from harness.artifacts.archive.code import CodeMemory
from harness.artifacts.archive.formats import FAILURES, FORMATS
from harness.artifacts.archive.limits import CannotRead
from harness.artifacts.archive.reading import read_artifact
from harness.artifacts.bundle_members import artifact_window
from harness.checks.prediction.atlas import atlas, changed_between
from harness.checks.prediction.predict import predict
from harness.checks.prediction.risks import risks
from harness.core.archive import ArchiveFacts, ArchiveFormat, ArchiveProblem, OperatorRegistry
from harness.core.prediction import InspectedFile, StaticVerdict
from harness.machine.cores import processor

NONE: Mapping[str, OperatorRegistry] = {}


def inspect_file(
    path: str,
    registries: Mapping[str, OperatorRegistry],
    memory: CodeMemory | None = None,
    *,
    within: str = "",
    across: Mapping[str, OperatorRegistry] = NONE,
) -> InspectedFile:
    """Return facts of one file and a verdict per side; a file that cannot be read has a failure in their place.

    Of a golden bundle the artifact in it is judged. No link is followed out of ``within``, the folder that was
    searched. ``across``: further releases, each judged by itself.
    """
    try:
        with files.opened(path, within) as source:
            facts = read_artifact(source, path, memory=memory)
            if facts.format is ArchiveFormat.GOLDEN_BUNDLE:
                inside = read_artifact(artifact_window(source), path, memory=memory)
                facts = replace(inside, container=ArchiveFormat.GOLDEN_BUNDLE.value)
    except CannotRead as error:
        failure = ArchiveProblem(kind=error.kind, text=error.text)
        return InspectedFile(path=path, failure=failure, advice=FAILURES[error.kind], verdicts={})
    verdicts = predict(facts, registries, processor())
    if "new" in verdicts and "old" in registries:
        verdicts["new"] = _with_risks(facts, verdicts["new"], registries["old"].torch)
    beside = {release: predict(facts, {"new": registry}, processor()) for release, registry in across.items()}
    return InspectedFile(
        path=path,
        facts=facts,
        advice=FORMATS[facts.format][1],
        verdicts=verdicts,
        across={release: verdict["new"] for release, verdict in beside.items() if verdict},
    )


def _with_risks(facts: ArchiveFacts, verdict: StaticVerdict, old: str) -> StaticVerdict:
    found = risks(facts, changed_between(atlas(), old, verdict.torch), old, verdict.torch)
    return replace(verdict, findings=(*verdict.findings, *found)) if found else verdict
