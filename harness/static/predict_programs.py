"""From the facts of a .pt2 and what a release reads to a prediction. Pure.

The rules are those of ``torch.export.load``: the container, the version of the archive, and the major version of the
schema. A newer minor version is in doubt.
"""

from collections.abc import Iterator

from harness.domain.archive import ArchiveFacts, OperatorRegistry, ProgramContainer, ProgramFacts
from harness.domain.prediction import StaticFinding, Weight

EXPORT_THERE = "export it in that release, or in an older one"
HIGHER_ORDER = ("higher_order.",)
"""Operators of Python, which no registry of schemas lists."""


def program_findings(facts: ArchiveFacts, program: ProgramFacts, target: OperatorRegistry) -> Iterator[StaticFinding]:
    """Yield what stops a release from loading a program, and what puts it in doubt."""
    for problem in facts.problems:
        yield StaticFinding(kind=problem.kind, weight=Weight.DOUBT, subject=facts.path, text=problem.text)
    if program.container is ProgramContainer.COMPILED:
        text = "compiled by AOTInductor: its code is not read here"
        what = "load it in this release to know"
        yield _about(facts, "compiled_code", Weight.DOUBT, text, what)
        return
    reads, torch = target.programs, target.torch
    if not reads.schema:
        yield _about(facts, "no_torch_export", Weight.STOPS, f"torch {torch} has no torch.export.load", EXPORT_THERE)
        return
    if program.container is ProgramContainer.ARCHIVE and not reads.archive:
        text = f"torch {torch} does not read this container: KeyError: there is no item named 'version' in the archive"
        yield _about(facts, "container_unknown", Weight.STOPS, text, EXPORT_THERE)
        return
    if program.container is ProgramContainer.ARCHIVE and program.archive_version != reads.archive:
        text = f"archive version {program.archive_version or 'unknown'}; torch {torch} reads {reads.archive}"
        yield _about(facts, "archive_version", Weight.STOPS, text, EXPORT_THERE)
        return
    own, theirs = (".".join(map(str, version)) for version in (program.schema, reads.schema))
    if program.schema and program.schema[0] != reads.schema[0]:
        newer = "a newer" if program.schema[0] > reads.schema[0] else "an older"
        text = f"{newer} schema, {own}; torch {torch} reads {theirs}"
        yield _about(facts, "schema_version", Weight.STOPS, text, EXPORT_THERE)
        return
    if program.schema > reads.schema:
        text = f"schema {own}, and torch {torch} has {theirs}: it may meet what it does not know"
        yield _about(facts, "schema_newer", Weight.DOUBT, text, "load it in this release to know")
    known = {
        f"{name.replace('::', '.')}.{one.overload or 'default'}"
        for name, all_ in target.schemas.items()
        for one in all_
    }
    for operator in program.operators:
        if operator not in known and not operator.startswith(HIGHER_ORDER):
            text = f"torch {torch} does not have it: the program may load and not run"
            yield StaticFinding(kind="operator_missing", weight=Weight.DOUBT, subject=operator, text=text)


def _about(facts: ArchiveFacts, kind: str, weight: Weight, text: str, what_to_do: str) -> StaticFinding:
    return StaticFinding(kind=kind, weight=weight, subject=facts.path, text=text, what_to_do=what_to_do)
