"""An inspection as a document: predictions, then the reasons for each that is not plainly good."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import groupby

from harness.artifacts.archive.formats import FORMATS
from harness.core.archive import ArchiveFacts, ArchiveFormat, ProgramContainer, ProgramFacts
from harness.core.prediction import (
    ANSWERS_OTHERWISE,
    InspectedFile,
    Inspection,
    Prediction,
    StaticFinding,
    StaticVerdict,
    Weight,
)
from harness.core.text import counted
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
    known = any(file.across for file in inspection.files)
    releases = [f"torch {inspection.releases[side]}" for side in sides] + (["will load in torch"] if known else [])
    heads = ("file", "what it is", "operators", *releases)
    rows = tuple(_row(file, sides, known=known) for file in inspection.files)
    return Document(
        title="Inspection",
        verdict=Verdict(means="; ".join(_summary(inspection, sides))),
        full="--format json",
        parts=(
            Part(title="Files", blocks=(Table(heads=heads, rows=rows, numbers=(2,), noun="file"),)),
            Part(title="Why", blocks=tuple(part for file in inspection.files for part in _file(file, sides))),
        ),
    )


def _row(file: InspectedFile, sides: Sequence[str], *, known: bool) -> Row:
    judged = file.facts if file.facts is not None and file.facts.is_judged else None
    predictions = [file.verdicts[side].prediction if side in file.verdicts else None for side in sides]
    cells = [Cell(str(item), tone=TONES[item]) if item is not None else Cell("-") for item in predictions]
    if known:
        cells.append(_loads_in(file.across))
    return Row(cells=(file.path, _kind(file), "-" if judged is None else str(_operators(judged)), *cells))


def _loads_in(across: Mapping[str, StaticVerdict]) -> Cell:
    """Return the releases that will load a file, as ranges of those that are known."""
    if not across:
        return Cell("-")
    runs = list(_runs(across))
    loading = [_range(releases) for prediction, releases in runs if prediction is Prediction.LOADS]
    unknown = any(prediction is Prediction.UNKNOWN for prediction, _ in runs)
    tone = GOOD if len(runs) == 1 and loading else OPEN if unknown else BAD
    return Cell(", ".join(loading) or ("unknown" if unknown else "none"), tone=tone)


def _runs(across: Mapping[str, StaticVerdict]) -> Iterator[tuple[Prediction, list[str]]]:
    """Yield the releases, in order, by runs of one prediction for one reason."""

    def answer(release: str) -> tuple[Prediction, object]:
        return across[release].prediction, _reasons(across[release])

    for (prediction, _), run in groupby(across, answer):
        yield prediction, list(run)


def _reasons(verdict: StaticVerdict) -> tuple[tuple[str, str], ...]:
    if verdict.prediction is Prediction.LOADS:
        return ()
    return tuple((finding.kind, finding.subject) for finding in verdict.findings if finding.weight is not Weight.NOTE)


def _range(releases: Sequence[str]) -> str:
    return releases[0] if len(releases) == 1 else f"{releases[0]} to {releases[-1]}"


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
    for prediction, releases in _runs(file.across):
        if prediction is not Prediction.LOADS:
            blocks += _verdict(replace(file.across[releases[0]], torch=_range(releases)))
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
    risks = [finding for finding in verdict.findings if finding.kind == ANSWERS_OTHERWISE]
    if risks:
        yield Part(
            title=f"torch {verdict.torch}: what to look at in its answers",
            detail=f"{counted(len(risks), 'operator')}, as measured; no verdict: only requests show it",
            blocks=tuple(_finding(finding, MORE) for finding in risks),
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
