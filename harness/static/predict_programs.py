"""From the facts of a .pt2 and what a release reads to a prediction. Pure.

The rules are those of ``torch.export.load``: the container, the version of the archive, and the major version of the
schema. A newer minor version is in doubt.
"""

from collections.abc import Iterator

from harness.domain.archive import ArchiveFacts, OperatorRegistry, Processor, ProgramContainer, ProgramFacts
from harness.domain.prediction import StaticFinding, Weight

EXPORT_THERE = "export it in that release, or in an older one"
COMPILE_HERE = "compile it on such a machine as it will serve on: migrate --package"
HIGHER_ORDER = ("higher_order.",)
"""Operators of Python, which no registry of schemas lists."""


def program_findings(
    facts: ArchiveFacts, program: ProgramFacts, target: OperatorRegistry, processor: Processor | None
) -> Iterator[StaticFinding]:
    """Yield what stops a release from loading a program on that processor, and what puts it in doubt."""
    for problem in facts.problems:
        yield StaticFinding(kind=problem.kind, weight=Weight.DOUBT, subject=facts.path, text=problem.text)
    if program.container is ProgramContainer.COMPILED:
        yield _of_package(facts, program, processor)
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


def _of_package(facts: ArchiveFacts, program: ProgramFacts, processor: Processor | None) -> StaticFinding:
    if processor is not None and program.machine and program.machine != processor.machine:
        text = f"compiled for {program.machine}, and this machine is {processor.machine}: its library cannot be opened"
        return _about(facts, "other_machine", Weight.STOPS, text, COMPILE_HERE)
    known = processor.instructions if processor is not None else frozenset()
    lacking = [name for name in program.instructions if known and name not in known]
    if lacking:
        text = f"compiled for {', '.join(lacking)}, which this CPU does not have: it may load, and a call end in SIGILL"
        return _about(facts, "instructions_missing", Weight.DOUBT, text, COMPILE_HERE)
    text = "compiled by AOTInductor: its code is not read here"
    return _about(facts, "compiled_code", Weight.DOUBT, text, "load it in this release to know")


def _about(facts: ArchiveFacts, kind: str, weight: Weight, text: str, what_to_do: str) -> StaticFinding:
    return StaticFinding(kind=kind, weight=weight, subject=facts.path, text=text, what_to_do=what_to_do)
