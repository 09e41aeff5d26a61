"""From the facts of a .pt2 and what a release reads to a prediction. Pure.

The rules of programs are those of ``torch.export.load``: the container, the versions, each part of the schema that the
program uses, and its operators. Those of packages are those of ``aoti_load_package``: the container, the machine, and
that the release exports each function of torch that the code calls.
"""

from collections.abc import Iterator

from harness.artifacts.archive.programs import DTYPES
from harness.checks.prediction.operator_libraries import how_to_give
from harness.core.archive import (
    ArchiveFacts,
    OperatorRegistry,
    Processor,
    ProgramContainer,
    ProgramFacts,
    Programs,
    SchemaUse,
)
from harness.core.prediction import OPERATOR_MISSING, StaticFinding, Weight
from harness.core.text import first_few

EXPORT_THERE = "export it in that release, or in an older one"
EXPORT_AGAIN = "export it again: in 2.8 or later for 2.8 or later"
COMPILE_THERE = "compile it in that release, or in an older one: migrate --package"
COMPILE_HERE = "compile it on such a machine as it will serve on: migrate --package"
TO_KNOW = "load it in this release to know"
NOTHING_THERE = "member_missing"
RUNS_CODE = {
    False: "it runs code when it is loaded: torch.export.load unpickles parts of it",
    True: "it runs code when it is loaded: its library is opened, and the constructors in it run",
}
"""Whether it is a package -> what its loader runs of it, with the rights of the process."""
MARKS_LISTS = "is_hop_single_tensor_return"
"""Field of a node: releases that know it take a result of an operator of Python for a list only where it says so."""
FUNCTIONS = ("torch.sym_", "_operator.", "math.")
"""How functions that are no operators begin, where the release has been asked for all of them."""
NAMED = 3


def program_findings(
    facts: ArchiveFacts, program: ProgramFacts, target: OperatorRegistry, processor: Processor | None
) -> Iterator[StaticFinding]:
    is_package = program.container is ProgramContainer.COMPILED
    for problem in facts.problems:
        empty = problem.kind == NOTHING_THERE and not is_package
        yield _about(facts, problem.kind, Weight.STOPS if empty else Weight.DOUBT, problem.text)
    reads, torch = target.programs, target.torch
    if is_package:
        refused = _container_of_package(facts, program, reads, torch)
        if refused is None:
            yield from _of_package(facts, program, target, processor)
            yield _about(facts, "runs_code", Weight.WARNING, RUNS_CODE[is_package])
        else:
            yield refused
        return
    refused = _container(facts, program, reads, torch) or _version(facts, program, reads, torch)
    if refused is not None:
        yield refused
        return
    yield from _schema(facts, program.uses, reads, torch)
    yield from _operators(program, target)
    if program.lists_of_one and MARKS_LISTS in reads.fields.get("nodes", ()):
        for operator in program.lists_of_one:
            text = f"its only result is written as before 2.8, which torch {torch} does not read"
            yield _of(operator, "result_of_before_2_8", Weight.STOPS, text, EXPORT_AGAIN)
    yield _about(facts, "runs_code", Weight.WARNING, RUNS_CODE[is_package])


def _container(facts: ArchiveFacts, program: ProgramFacts, reads: Programs, torch: str) -> StaticFinding | None:
    if not reads.schema:
        return _about(facts, "no_torch_export", Weight.STOPS, f"torch {torch} has no torch.export.load", EXPORT_THERE)
    if program.container is not ProgramContainer.ARCHIVE:
        return None
    if not reads.archive:
        text = f"torch {torch} does not read this container: KeyError: there is no item named 'version' in the archive"
        return _about(facts, "container_unknown", Weight.STOPS, text, EXPORT_THERE)
    if program.archive_version != reads.archive:
        return _archive_version(facts, program, reads, torch, EXPORT_THERE)
    if program.weights_listed and not reads.weights_listed:
        text = f"its weights lie one by one, which torch {torch} does not read"
        return _about(facts, "container_unknown", Weight.STOPS, text, EXPORT_THERE)
    return None


def _archive_version(
    facts: ArchiveFacts, program: ProgramFacts, reads: Programs, torch: str, what_to_do: str
) -> StaticFinding:
    text = f"archive version {program.archive_version or 'unknown'}; torch {torch} reads {reads.archive}"
    return _about(facts, "archive_version", Weight.STOPS, text, what_to_do)


def _version(facts: ArchiveFacts, program: ProgramFacts, reads: Programs, torch: str) -> StaticFinding | None:
    own, theirs = (".".join(map(str, version)) for version in (program.schema, reads.schema))
    if not program.schema or program.schema[0] == reads.schema[0]:
        return None
    newer = "a newer" if program.schema[0] > reads.schema[0] else "an older"
    text = f"{newer} schema, {own}; torch {torch} reads {theirs}"
    return _about(facts, "schema_version", Weight.STOPS, text, EXPORT_THERE)


def _schema(facts: ArchiveFacts, uses: SchemaUse, reads: Programs, torch: str) -> Iterator[StaticFinding]:
    theirs = ".".join(map(str, reads.schema))
    lacking = [name for name in uses.alternatives if _is_lacking(*name, reads, alone=True)]
    if not reads.skips_fields:
        lacking += [name for name in uses.fields if _is_lacking(*name, reads, alone=False)]
    if lacking:
        named = first_few([f"{within}.{name}" if within else name for within, name in sorted(lacking)], NAMED)
        text = f"it uses {named}, which the schema of torch {torch}, {theirs}, does not have"
        yield _about(facts, "schema_newer", Weight.STOPS, text, EXPORT_THERE)
    for name, number in uses.numbers:
        known = reads.numbers.get(name)
        if known is not None and number not in known:
            what = DTYPES.get(number, "") if name in ("dtype", "as_scalar_type") else ""
            text = f"{what or f'{name} {number}'}: the schema of torch {torch}, {theirs}, does not have it"
            yield _of(what or name, "value_unknown", Weight.STOPS, text, EXPORT_THERE)


def _is_lacking(within: str, name: str, reads: Programs, *, alone: bool) -> bool:
    """Return whether the release does not know a part, and would have to: what lies in one that it skips is skipped."""
    alternatives, fields = reads.alternatives.get(within, ()), reads.fields.get(within, ())
    if name in alternatives or name in fields:
        return False
    if alone and alternatives:
        return True
    return bool(fields) and not reads.skips_fields


def _operators(program: ProgramFacts, target: OperatorRegistry) -> Iterator[StaticFinding]:
    known = _known_operators(target)
    spaces = {name.partition(".")[0] for name in known}
    for operator in program.operators:
        if operator not in known:
            space = operator.partition(".")[0]
            yield _missing_operator(operator, target.torch, library="" if space in spaces else space)
    for name in program.callables:
        if name not in target.programs.callables:
            is_sure = name.startswith(FUNCTIONS)
            text = f"torch {target.torch} does not {'read a call of it' if is_sure else 'say whether it reads it'}"
            yield _of(name, "function_unknown", Weight.STOPS if is_sure else Weight.DOUBT, text, TO_KNOW)


def _known_operators(target: OperatorRegistry) -> set[str]:
    named = {
        f"{name.replace('::', '.')}.{schema.overload or 'default'}"
        for name, all_ in target.schemas.items()
        for schema in all_
    }
    return named | set(target.programs.operators)


def _missing_operator(operator: str, torch: str, *, library: str) -> StaticFinding:
    if library:
        text = f"torch {torch} alone does not have it: a library must register {library}::"
        return _of(operator, "custom_library_missing", Weight.STOPS, text, how_to_give(library))
    return _of(operator, OPERATOR_MISSING, Weight.STOPS, f"torch {torch} does not have it", EXPORT_THERE)


def _container_of_package(
    facts: ArchiveFacts, program: ProgramFacts, reads: Programs, torch: str
) -> StaticFinding | None:
    if not reads.packages:
        text = f"torch {torch} does not load packages of AOTInductor"
        return _about(facts, "no_packages", Weight.STOPS, text, "serve it from 2.6 or later")
    if not program.archive_version:  # of before 2.8, which every release reads
        return None
    if not reads.archive:
        text = f"torch {torch} does not read this container: no AOTInductor .so file found in zip archive"
        return _about(facts, "container_unknown", Weight.STOPS, text, COMPILE_THERE)
    if program.archive_version != reads.archive:
        return _archive_version(facts, program, reads, torch, COMPILE_THERE)
    return None


def _of_package(
    facts: ArchiveFacts, program: ProgramFacts, target: OperatorRegistry, processor: Processor | None
) -> Iterator[StaticFinding]:
    torch = target.torch
    if processor is not None and program.machine and program.machine != processor.machine:
        text = f"compiled for {program.machine}, and this machine is {processor.machine}: its library cannot be opened"
        yield _about(facts, "other_machine", Weight.STOPS, text, COMPILE_HERE)
        return
    exported = set(target.programs.functions)
    lacking = [name for name in program.functions if name not in exported]
    if lacking:
        text = f"torch {torch} does not export {first_few(lacking, NAMED)}: an undefined symbol"
        yield _about(facts, "function_missing", Weight.STOPS, text, COMPILE_THERE)
    known = _known_operators(target)
    spaces = {name.partition(".")[0] for name in known}
    for operator in program.operators:
        space, _, rest = operator.partition(".")
        name = operator if "." in rest else f"{operator}.default"
        if name not in known:
            yield _missing_operator(operator, torch, library="" if space in spaces else space)
    cpu = processor.instructions if processor is not None else frozenset()
    missing = [name for name in program.instructions if cpu and name not in cpu]
    if missing:
        text = f"compiled for {', '.join(missing)}, which this CPU does not have: it may load, and a call end in SIGILL"
        yield _about(facts, "instructions_missing", Weight.DOUBT, text, COMPILE_HERE)
    if program.on not in ("", "cpu"):
        text = f"compiled for {program.on}: it loads only where such a device is, which is not looked for"
        yield _about(facts, "device_needed", Weight.DOUBT, text, TO_KNOW)


def _of(subject: str, kind: str, weight: Weight, text: str, what_to_do: str) -> StaticFinding:
    return StaticFinding(kind=kind, weight=weight, subject=subject, text=text, what_to_do=what_to_do)


def _about(facts: ArchiveFacts, kind: str, weight: Weight, text: str, what_to_do: str = "") -> StaticFinding:
    return _of(facts.path, kind, weight, text, what_to_do)
