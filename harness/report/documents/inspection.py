"""An inspection as a document: predictions, then the reasons for each that is not plainly good."""

from collections.abc import Iterator, Sequence

from harness.artifacts.archive.formats import FORMATS
from harness.core.archive import ArchiveFacts, ArchiveFormat, ProgramContainer, ProgramFacts
from harness.core.prediction import InspectedFile, Inspection, Prediction, StaticFinding, StaticVerdict, Weight
from harness.report.document import (
    BAD,
    DETAIL,
    GOOD,
    MORE,
    OPEN,
    Block,
    Cell,
    Document,
    Fact,
    Part,
    Row,
    Table,
    Verdict,
    facts,
)
from harness.report.words.phrases import REACHES
from harness.verdict.exit_codes import exit_code

SIDES = ("old", "new")
MOST_FINDINGS = 12
"""Per file and release; the JSON has all."""
TONES = {Prediction.LOADS: GOOD, Prediction.FAILS: BAD, Prediction.UNKNOWN: OPEN}


def inspection_document(inspection: Inspection) -> Document:
    """Return the document."""
    sides = [side for side in SIDES if side in inspection.releases]
    rows = tuple(_row(file, sides) for file in inspection.files)
    heads = ("file", "what it is", "operators", *(f"torch {inspection.releases[side]}" for side in sides))
    return Document(
        title="Inspection",
        verdict=Verdict(means="; ".join(_summary(inspection, sides))),
        full="--format json",
        parts=(
            Part(title="Files", blocks=(Table(heads=heads, rows=rows, numbers=(2,), noun="file"),)),
            Part(title="Why", blocks=tuple(part for file in inspection.files for part in _file(file, sides))),
        ),
    )


def _row(file: InspectedFile, sides: Sequence[str]) -> Row:
    judged = file.facts if file.facts is not None and file.facts.is_judged else None
    predictions = [file.verdicts[side].prediction if side in file.verdicts else None for side in sides]
    cells = [Cell(str(item), tone=TONES[item]) if item is not None else Cell("-") for item in predictions]
    return Row(cells=(file.path, _kind(file), "-" if judged is None else str(_operators(judged)), *cells))


def _operators(archive: ArchiveFacts) -> int:
    return len({use.name for use in archive.operators}) if archive.program is None else len(archive.program.operators)


def _kind(file: InspectedFile) -> str:
    if file.facts is None:
        return "cannot be read"
    program = file.facts.program
    packaged = program is not None and program.container is ProgramContainer.COMPILED
    words = ProgramContainer.COMPILED.value if packaged else FORMATS[file.facts.format][0]
    bundled = file.facts.container == ArchiveFormat.GOLDEN_BUNDLE
    return f"{FORMATS[ArchiveFormat.GOLDEN_BUNDLE][0]}: {words}" if bundled else words


def _file(file: InspectedFile, sides: Sequence[str]) -> Iterator[Part]:
    """Yield a part for a file that there is something to say of."""
    blocks: list[Block] = []
    if file.failure is not None:
        blocks += facts([(file.failure.kind, file.failure.text)])
    blocks += facts([("do", file.advice)])
    if file.facts is not None and file.facts.is_judged and not sides:
        program = file.facts.program
        blocks += facts(_facts(file.facts) if program is None else _program(file.facts, program))
    blocks += [part for side in sides if side in file.verdicts for part in _verdict(file.verdicts[side])]
    if blocks:
        yield Part(title=file.path, blocks=tuple(blocks))


def _program(archive: ArchiveFacts, program: ProgramFacts) -> Iterator[tuple[str, str]]:
    yield "size", f"{archive.size_bytes} bytes, {archive.members} members"
    yield "container", f"{program.container.value}, version {program.archive_version or 'not told'}"
    if program.container is ProgramContainer.COMPILED:
        instructions = ", ".join(program.instructions) or "instructions that it does not tell"
        yield "for", f"{program.machine or 'a machine that it does not tell'}, {instructions}"
        yield "device", program.on or "not told"
    else:
        schema = ".".join(map(str, program.schema)) or "not told"
        yield "schema", f"{schema}, written by torch {program.torch or 'of a release that it does not tell'}"
    yield "operators", ", ".join(program.operators)
    yield "dtypes", ", ".join(program.dtypes)
    yield from (("problem", f"{problem.kind}: {problem.text}") for problem in archive.problems)


def _facts(archive: ArchiveFacts) -> Iterator[tuple[str, str]]:
    yield "size", f"{archive.size_bytes} bytes, {archive.members} members, {archive.code_bytes} bytes of code"
    yield "version", str(archive.operator_version or archive.archive_version or "not told")
    yield "root", f"{archive.root_class}: {', '.join(archive.methods) or 'no methods'}"
    yield "operators", ", ".join(sorted({use.name for use in archive.operators}))
    for group in archive.storages:
        size = "" if group.nbytes is None else f", {group.nbytes} bytes"
        yield "tensors", f"{group.count} of {group.dtype} on {group.device}{size}"
    yield from (("class", f"{name} (TorchBind)") for name in archive.custom_classes)
    yield from (("at load", f"{name}.__setstate__ runs") for name in archive.runs_at_load)
    yield from (("problem", f"{problem.kind}: {problem.text}") for problem in archive.problems)


def _verdict(verdict: StaticVerdict) -> Iterator[Part]:
    told = [finding for finding in verdict.findings if finding.weight is not Weight.NOTE]
    if told or verdict.prediction is not Prediction.LOADS:
        findings = tuple(_finding(finding, MORE if at < MOST_FINDINGS else DETAIL) for at, finding in enumerate(told))
        yield Part(
            title=f"torch {verdict.torch}",
            word=str(verdict.prediction),
            tone=TONES[verdict.prediction],
            blocks=findings,
            noun="finding",
        )


def _finding(finding: StaticFinding, importance: int) -> Part:
    lines = [Fact("at", _place(finding))] if finding.place is not None else []
    lines += [*facts([("do", finding.what_to_do)]), *facts([("source", finding.source)], form="path")]
    title = f"{finding.kind}: {finding.subject}: {finding.text}"
    return Part(title=title, blocks=tuple(lines), importance=importance)


def _place(finding: StaticFinding) -> str:
    assert finding.place is not None
    more = f", {finding.count} calls" if finding.count > 1 else ""
    reach = REACHES[finding.reach] if finding.reach is not None else ""
    where = f"{finding.place.member}:{finding.place.line} in {finding.place.function}"
    return f"{where}{more}{', ' + reach if reach else ''}"


def _summary(inspection: Inspection, sides: Sequence[str]) -> Iterator[str]:
    for side in sides:
        verdicts = [file.verdicts[side].prediction for file in inspection.files if side in file.verdicts]
        counts = ", ".join(f"{verdicts.count(item)} {item}" for item in Prediction if item in verdicts)
        yield f"torch {inspection.releases[side]}: {counts or 'nothing to judge'}"
    unread = sum(file.facts is None or not file.facts.is_judged for file in inspection.files)
    if unread:
        yield f"not judged: {unread} of {len(inspection.files)} files"
    yield f"exit code {int(exit_code(inspection))}; nothing was loaded or run: this predicts loading, not answers"
