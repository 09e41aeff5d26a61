"""From the facts of a file and the registries of two releases to a prediction for each, with its reasons.

A stop is claimed only where the release's own registry refuses a call whatever the types are that cannot be seen; and
"will load" only where nothing is in doubt.
"""

import functools
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from harness.artifacts.archive.reading import META
from harness.checks.prediction.operator_libraries import how_to_give
from harness.checks.prediction.predict_programs import program_findings
from harness.checks.prediction.schema_fit import Fit, covers, fit, goes_first, may_answer, why_not
from harness.checks.prediction.semantics import changes_between
from harness.core.archive import (
    TORCHS_MODULES,
    ArchiveFacts,
    ArchiveFormat,
    ArchiveProblem,
    CodePlace,
    OperatorRegistry,
    OperatorUse,
    Processor,
    Reach,
    Schema,
)
from harness.core.prediction import (
    LOOPS_AT_LOAD,
    OPERATOR_MISSING,
    RUNS_AT_LOAD,
    SEMANTICS_CHANGED,
    Prediction,
    StaticFinding,
    StaticVerdict,
    Weight,
)

# Namespaces that torch's own wheels register, in some release or other; the rest comes from libraries.
TORCHS_OWN = frozenset(
    ("aten", "prim", "prims", "quantized", "_quantized", "prepacked", "inductor", "mkldnn", "mkl", "onednn", "sparse")
)
TORCHS_CLASSES = frozenset(("quantized", "rnn", "xnnpack", "sparse", "mkldnn", "vulkan", "metal", "nccl", "c10d"))
DIRECTIONS = {"old": "forward", "new": "backward"}
OLDEST_VERSION = 1
"""``kMinSupportedFileFormatVersion`` in torch's caffe2/serialize/versions.h, the same in every release."""
ANYWHERE = CodePlace(member="", line=0, function="")
"""Of a call whose place does not matter."""
UNREAD = frozenset(("packing_refused", "stray_first_member"))
"""Kinds of problems with which nothing is read of an archive."""
CERTAIN: Mapping[str, tuple[Weight, str, str]] = {
    "name_refused": (
        Weight.STOPS,
        ": no release loads it",
        "rename it (the key of a ModuleDict, the attribute, the file or folder of Python code) and export again",
    ),
    "code_refused": (
        Weight.STOPS,
        ": no release loads it",
        "give the variable its value otherwise in that loop, and export again",
    ),
    "packing_refused": (
        Weight.STOPS,
        ": no release loads it",
        "pack it as torch.jit.save does: stored or deflated, unencrypted",
    ),
    "stray_first_member": (
        Weight.STOPS,
        ": no release loads it",
        "pack the model's own folder first and alone, or torch.jit.save the model again",
    ),
    "operators_hidden": (
        Weight.WARNING,
        ": once saved it fails where the module does not, or answers otherwise",
        "rename that value and export again",
    ),
}
"""Kinds of problems of an archive that put nothing in doubt: what they do, what that means, what to do about them."""
PACKED = frozenset(("quint4x2", "quint2x4"))
"""Dtypes of several values in a byte."""
VALUE_LOST = frozenset(("prim::ConstantMKLDNNTensor",))
"""Constants that torch.jit.optimize_for_inference puts into the graph and that torch writes without their value."""
TOUCHES_FILES = frozenset(("aten::save", "aten::from_file"))
"""Operators that open the file that a model names, with the rights of the process that calls it."""
EXPORT_AGAIN = "export again in this release, or replace the operator and export again"


def predict(
    facts: ArchiveFacts, registries: Mapping[str, OperatorRegistry], processor: Processor | None = None
) -> dict[str, StaticVerdict]:
    """Return a verdict per side, none for another kind of file; no ``processor``: compiled code is left out."""
    if not facts.is_judged:
        return {}
    verdicts = {}
    for side, target in registries.items():
        other = next((registry for name, registry in registries.items() if name != side), None)
        findings = tuple(
            _findings(facts, side, target, other)
            if facts.program is None
            else program_findings(facts, facts.program, target, processor)
        )
        weights = {finding.weight for finding in findings}
        prediction = (
            Prediction.FAILS
            if Weight.STOPS in weights
            else Prediction.UNKNOWN
            if Weight.DOUBT in weights
            else Prediction.LOADS
        )
        verdicts[side] = StaticVerdict(
            torch=target.torch, direction=DIRECTIONS[side], prediction=prediction, findings=findings
        )
    return verdicts


def touches_files(facts: ArchiveFacts) -> bool:
    return any(use.name in TOUCHES_FILES for use in facts.operators)


def runs_code(facts: ArchiveFacts) -> bool:
    """Return whether loading a file runs code that it holds, whatever that does."""
    return facts.program is not None


def never_loads(facts: ArchiveFacts) -> list[StaticFinding]:
    findings = [_of_problem(problem, facts.path) for problem in facts.problems]
    return [finding for finding in findings if finding.weight is Weight.STOPS]


def _of_problem(problem: ArchiveProblem, path: str) -> StaticFinding:
    weight, meaning, what_to_do = CERTAIN.get(problem.kind, (Weight.DOUBT, "", ""))
    text = problem.text + meaning
    return StaticFinding(kind=problem.kind, weight=weight, subject=path, text=text, what_to_do=what_to_do)


def _findings(
    facts: ArchiveFacts, side: str, target: OperatorRegistry, other: OperatorRegistry | None
) -> Iterator[StaticFinding]:
    version = _operator_version(facts)
    for problem in facts.problems:
        yield _of_problem(problem, facts.path)
    if version is None and any(problem.kind in UNREAD for problem in facts.problems):
        return
    if version is None:
        text = "the archive does not say with which operator version it was written"
        yield StaticFinding(kind="version_unreadable", weight=Weight.DOUBT, subject=facts.path, text=text)
    elif version < OLDEST_VERSION:
        yield StaticFinding(
            kind="version_too_old",
            weight=Weight.STOPS,
            subject=str(version),
            text=f"written with version {version}, which no release reads",
        )
    elif version > target.operator_version:
        yield StaticFinding(
            kind="version_too_new",
            weight=Weight.STOPS,
            subject=str(version),
            text=f"written with operator version {version}; this release reads up to {target.operator_version}",
            what_to_do="export in a release that writes an older version",
        )
    for use in facts.operators:
        for finding in _judged(replace(use, place=ANYWHERE, count=1, reach=Reach.STRAIGHT), target, other, version):
            yield replace(finding, place=use.place, count=use.count, reach=use.reach)
        if use.name in TOUCHES_FILES:
            does = "writes" if use.name == "aten::save" else "maps and, where its code says so, writes"
            yield _about(use, "touches_files", Weight.WARNING, f"it {does} a file of its own choice when it is called")
    for operator, expected in facts.answers:
        if not may_answer(target.schemas.get(operator, ()), expected):
            text = f"the code takes an answer for {expected}, which no overload in torch {target.torch} gives"
            what = "load it in this release to know"
            yield StaticFinding(
                kind="returns_differ", weight=Weight.DOUBT, subject=operator, text=text, what_to_do=what
            )
    yield from _class_needs(facts, target, other)
    if other is not None and side == "new":  # of the pair, so it is reported once
        used = {use.name: use for use in reversed(facts.operators)}
        for change, certain in changes_between(target.torch, other.torch):
            if change.operator in used:
                use = used[change.operator]
                sure = "" if certain else f" (changed after {change.after} and by {change.by})"
                weight = Weight.NOTE if change.drawn else Weight.WARNING
                yield _about(use, SEMANTICS_CHANGED, weight, change.what + sure, source=change.source)


def _operator_version(facts: ArchiveFacts) -> int | None:
    text = facts.operator_version if facts.operator_version is not None else facts.archive_version
    return int(text) if text is not None and text.isdecimal() and len(text) < 9 else None


@functools.lru_cache(maxsize=1 << 14)
def _judged(
    call: OperatorUse, target: OperatorRegistry, other: OperatorRegistry | None, version: int | None
) -> tuple[StaticFinding, ...]:
    """Return the findings about a call wherever it stands: models of a fleet call operators in the same few ways."""
    return tuple(_judge_use(call, target, other, version))


def _judge_use(
    use: OperatorUse, target: OperatorRegistry, other: OperatorRegistry | None, version: int | None
) -> Iterator[StaticFinding]:
    if use.name in VALUE_LOST:
        text = "the archive holds it without its value, so no release loads it"
        yield _about(use, "value_lost", Weight.STOPS, text, "save before torch.jit.optimize_for_inference, not after")
        return
    upgraders = [
        item for item in target.upgraders.get(use.name, ()) if version is not None and version < item.below_version
    ]
    for upgrader in upgraders:
        if fit(upgrader.old, use) is not Fit.NO:
            text = (
                f"read through the upgrader {upgrader.name}, made for operator versions below {upgrader.below_version}"
            )
            yield _about(use, "upgrader_applies", Weight.NOTE, text)
    schemas = (*target.schemas.get(use.name, ()), *(item.old for item in upgraders))
    namespace = use.name.partition("::")[0]
    if not schemas:
        known_to_other = other is not None and use.name in other.schemas.keys() - other.library_operators
        if known_to_other or namespace in TORCHS_OWN:
            yield _about(use, OPERATOR_MISSING, Weight.STOPS, f"torch {target.torch} does not have it", EXPORT_AGAIN)
        else:
            text = f"torch {target.torch} alone does not have it: a library must register {namespace}::"
            yield _about(use, "custom_library_missing", Weight.STOPS, text, how_to_give(namespace))
        return
    fits = {schema: fit(schema, use) for schema in schemas}
    best = max(fits.values())
    if best is Fit.NO:
        text = f"torch {target.torch} refuses the arguments: {_why(schemas, use)}"
        yield _about(use, "arguments_refused", Weight.STOPS, text, EXPORT_AGAIN)
    elif other is not None:
        yield from _doubts(use, target, other, [schema for schema, how in fits.items() if how is not Fit.NO], sure=best)


def _doubts(
    use: OperatorUse, target: OperatorRegistry, other: OperatorRegistry, taking: Sequence[Schema], *, sure: Fit
) -> Iterator[StaticFinding]:
    """Yield what the other release's schemas put in doubt about a call that the schemas ``taken`` take."""
    meant = [schema for schema in other.schemas.get(use.name, ()) if fit(schema, use) is not Fit.NO]
    if sure is Fit.YES:
        answers = {schema.returns for schema in taking}
        differ = [schema for schema in meant if fit(schema, use) is Fit.YES and schema.returns not in answers]
        if differ:
            text = f"torch {other.torch} answers {_shown(use.name, differ[0])} with {', '.join(differ[0].returns)}"
            yield _about(use, "returns_differ", Weight.DOUBT, text, "load it in this release to know")
        return
    lost = [
        schema
        for schema in meant
        if not any(covers(schema, candidate, use) or goes_first(candidate, schema, use) for candidate in taking)
    ]
    if lost:
        text = (
            f"torch {other.torch} has an overload that this call may mean and torch {target.torch} has not: "
            f"{_shown(use.name, lost[0])}"
        )
        yield _about(use, "overload_lost", Weight.DOUBT, text, "load it in this release to know")


def _why(schemas: tuple[Schema, ...], use: OperatorUse) -> str:
    nearest = min(schemas, key=lambda schema: abs(len(schema.parameters) - len(use.arguments) - len(use.keywords)))
    return f"{_shown(use.name, nearest)} {why_not(nearest, use)}"


def _shown(name: str, schema: Schema) -> str:
    return name + (f".{schema.overload}" if schema.overload else "")


def _class_needs(
    facts: ArchiveFacts, target: OperatorRegistry, other: OperatorRegistry | None
) -> Iterator[StaticFinding]:
    for name in facts.custom_classes:
        if name in target.custom_classes:
            continue
        own = name.partition(".")[0] in TORCHS_CLASSES or (other is not None and name in other.custom_classes)
        yield StaticFinding(
            kind="custom_class_missing",
            weight=Weight.STOPS,
            subject=name,
            text=f"torch {target.torch} does not have the class"
            + ("" if own else "; a library may register it before the archive is loaded"),
            what_to_do="export again without it" if own else how_to_give(name.partition(".")[0]),
        )
    for name in facts.type_names:
        if name not in target.type_names:
            yield StaticFinding(
                kind="type_unknown",
                weight=Weight.STOPS,
                subject=name,
                text=f"the parser of torch {target.torch} does not know the type",
                what_to_do="leave it out of annotations and export again",
            )
    for group in facts.storages:
        if group.dtype not in target.dtypes:
            yield StaticFinding(
                kind="dtype_unknown",
                weight=Weight.STOPS if group.nbytes is not None else Weight.DOUBT,
                subject=group.dtype,
                text=f"{group.count} tensors of a dtype that torch {target.torch} does not have",
                what_to_do="convert them before the export",
            )
        elif group.dtype in PACKED - target.packed_dtypes and facts.format is not ArchiveFormat.FLATBUFFER:
            yield StaticFinding(
                kind="dtype_refused",
                weight=Weight.STOPS,
                subject=group.dtype,
                text=f"{group.count} tensors of several values in a byte, which torch {target.torch} takes for damaged",
                what_to_do="quantize to 8 bits, or stay with a release that loads them",
            )
    empty = sum(group.count for group in facts.storages if group.device == META)
    if empty:
        text = f"{empty} tensors without values (device meta): it loads, and a call that reads them fails"
        yield StaticFinding(kind="values_missing", weight=Weight.WARNING, subject=META, text=text)
    for device in sorted({group.device for group in facts.storages} - {"cpu", META}):
        yield StaticFinding(
            kind="device_baked_in",
            weight=Weight.WARNING,
            subject=device,
            text=f"has tensors on {device}: it loads as it is only where there is such a device",
            what_to_do="elsewhere load with map_location",
        )
    for device in facts.devices:
        if device != "cpu":
            text = f"the code names {device}: calls need it whatever map_location says"
            yield StaticFinding(kind="device_in_code", weight=Weight.WARNING, subject=device, text=text)
    for name in facts.runs_at_load:
        loops = name in facts.loops_at_load and not name.startswith(TORCHS_MODULES)
        yield StaticFinding(
            kind=LOOPS_AT_LOAD if loops else "runs_at_load",
            weight=Weight.DOUBT if loops else Weight.NOTE,
            subject=name,
            text=f"{RUNS_AT_LOAD}, and loops: it may never return" if loops else RUNS_AT_LOAD,
            what_to_do="load it once under a deadline: compat" if loops else "",
        )
    if facts.format in (ArchiveFormat.MOBILE, ArchiveFormat.FLATBUFFER):
        text = "the bytecode of the lite interpreter is not read; this is about torch.jit.load"
        yield StaticFinding(kind="mobile_bytecode", weight=Weight.WARNING, subject=facts.path, text=text)


def _about(
    use: OperatorUse, kind: str, weight: Weight, text: str, what_to_do: str = "", *, source: str = ""
) -> StaticFinding:
    return StaticFinding(
        kind=kind,
        weight=weight,
        subject=use.name,
        text=text,
        what_to_do=what_to_do,
        place=use.place,
        count=use.count,
        reach=use.reach,
        source=source,
    )
