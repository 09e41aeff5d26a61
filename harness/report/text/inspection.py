"""An inspection as text for a terminal: a table of predictions, then the reasons for each that is not plainly good."""

import re
import textwrap
from collections.abc import Iterator, Sequence

from harness.artifacts.archive.formats import FORMATS
from harness.checks.prediction.predict import exit_code
from harness.core.archive import ArchiveFacts, ArchiveFormat, ProgramContainer, ProgramFacts, Reach
from harness.core.prediction import InspectedFile, Inspection, Prediction, StaticFinding, StaticVerdict, Weight
from harness.core.text import prose, visible
from harness.report.text.grid import draw, filled, needed
from harness.report.words.phrases import ending, shorten

REACHES = {
    Reach.STRAIGHT: "",
    Reach.BRANCH: "in a branch",
    Reach.UNCALLED: "in code that no method calls; loading compiles it all the same",
}
SIDES = ("old", "new")
MOST_FINDINGS = 12
"""Per file and release; the JSON has all."""
SECOND = re.compile(r" +(?:at load|[a-z]+) {2,}")
"""A line's label; what follows it wraps in its own column."""
LEAST_WIDTH, LEAST_PATH, LEAST_KIND, MOST_RELEASE = 80, 24, 14, 16
LONGEST = 4000
"""Characters of one text; the JSON has all."""


def render_static(inspection: Inspection, *, width: int = 100) -> str:
    """Return the whole text, ending with a newline. Control characters of hostile names are escaped.

    Args:
        width: columns, fewer than 80 count as 80; only what is copied may be longer: paths, names and links.
    """
    width = max(width, LEAST_WIDTH)
    sides = [side for side in SIDES if side in inspection.releases]
    parts = [_table(inspection, sides, width)]
    for file in inspection.files:
        lines = list(_file(file, sides))
        if lines:
            parts.append("\n".join([visible(file.path), *(cut for line in lines for cut in _wrapped(line, width))]))
    parts.append(_summary(inspection, sides))
    return "\n\n".join(parts) + "\n"


def _table(inspection: Inspection, sides: Sequence[str], width: int) -> str:
    named = [f"torch {shorten(visible(inspection.releases[side]), MOST_RELEASE)}" for side in sides]
    heads = [["file", "what it is", "operators", *named]]
    rows = []
    for file in inspection.files:
        operators = _operators(file.facts) if file.facts is not None and file.facts.is_judged else None
        cells = [str(file.verdicts[side].prediction) if side in file.verdicts else "-" for side in sides]
        rows.append([visible(file.path), _kind(file), "-" if operators is None else str(operators), *cells])
    if needed([*heads, *rows], gap=2) > width:
        heads = [
            ["", "", "", *("torch" for _ in named)],
            [*heads[0][:3], *(name.removeprefix("torch ") for name in named)],
        ]
    room = width - needed([texts[2:] for texts in (*heads, *rows)], gap=2) - 4
    kind = min(max(len(texts[1]) for texts in (*heads, *rows)), max(LEAST_KIND, room - LEAST_PATH))
    lines = [line for texts in rows for line in _row(texts, room - kind, kind)]
    return draw([*heads, *lines], heads=len(heads), gap=2, right=(2,))


def _row(texts: Sequence[str], room: int, kind: int) -> Iterator[list[str]]:
    """Yield the row, and below it what of the file's kind does not fit in ``kind`` columns."""
    path, words, *rest = texts
    first, *more = textwrap.wrap(words, kind)
    yield [ending(path, room), first, *rest]
    for line in more:
        yield ["", line, *("" for _ in rest)]


def _operators(facts: ArchiveFacts) -> int:
    return len({use.name for use in facts.operators}) if facts.program is None else len(facts.program.operators)


def _kind(file: InspectedFile) -> str:
    if file.facts is None:
        return "cannot be read"
    program = file.facts.program
    packaged = program is not None and program.container is ProgramContainer.COMPILED
    words = ProgramContainer.COMPILED.value if packaged else FORMATS[file.facts.format][0]
    bundled = file.facts.container == ArchiveFormat.GOLDEN_BUNDLE
    return f"{FORMATS[ArchiveFormat.GOLDEN_BUNDLE][0]}: {words}" if bundled else words


def _file(file: InspectedFile, sides: Sequence[str]) -> Iterator[str]:
    if file.failure is not None:
        yield f"  {file.failure.kind}: {_shown(file.failure.text)}"
    if file.advice:
        yield f"  do        {file.advice}"
    if file.facts is not None and file.facts.is_judged and not sides:
        yield from _facts(file.facts) if file.facts.program is None else _program(file.facts, file.facts.program)
    for side in sides:
        if side in file.verdicts:
            yield from _verdict(file.verdicts[side])


def _program(facts: ArchiveFacts, program: ProgramFacts) -> Iterator[str]:
    yield f"  size      {facts.size_bytes} bytes, {facts.members} members"
    yield f"  container {program.container.value}, version {_shown(program.archive_version) or 'not told'}"
    if program.container is ProgramContainer.COMPILED:
        instructions = ", ".join(program.instructions) or "instructions that it does not tell"
        yield f"  for       {_shown(program.machine) or 'a machine that it does not tell'}, {_shown(instructions)}"
        yield f"  device    {_shown(program.on) or 'not told'}"
    else:
        schema = ".".join(map(str, program.schema)) or "not told"
        yield f"  schema    {schema}, written by torch {_shown(program.torch) or 'of a release that it does not tell'}"
    for label, names in (("operators", program.operators), ("dtypes", program.dtypes)):
        if names:
            yield f"  {label:<9} {_shown(', '.join(names))}"
    for problem in facts.problems:
        yield f"  problem   {problem.kind}: {_shown(problem.text)}"


def _facts(facts: ArchiveFacts) -> Iterator[str]:
    version = facts.operator_version or facts.archive_version or "not told"
    yield f"  size      {facts.size_bytes} bytes, {facts.members} members, {facts.code_bytes} bytes of code"
    yield f"  version   {_shown(version)}"
    yield f"  root      {_shown(facts.root_class)}: {_shown(', '.join(facts.methods)) or 'no methods'}"
    names = sorted({use.name for use in facts.operators})
    if names:
        yield f"  operators {_shown(', '.join(names))}"
    for group in facts.storages:
        size = "" if group.nbytes is None else f", {group.nbytes} bytes"
        yield f"  tensors   {group.count} of {_shown(group.dtype)} on {_shown(group.device)}{size}"
    for name in facts.custom_classes:
        yield f"  class     {_shown(name)} (TorchBind)"
    for name in facts.runs_at_load:
        yield f"  at load   {_shown(name)}.__setstate__ runs"
    for problem in facts.problems:
        yield f"  problem   {problem.kind}: {_shown(problem.text)}"


def _verdict(verdict: StaticVerdict) -> Iterator[str]:
    shown_findings = [finding for finding in verdict.findings if finding.weight is not Weight.NOTE]
    if not shown_findings and verdict.prediction is Prediction.LOADS:
        return
    yield f"  torch {verdict.torch}: {verdict.prediction}"
    for finding in shown_findings[:MOST_FINDINGS]:
        yield from _finding(finding)
    if len(shown_findings) > MOST_FINDINGS:
        yield f"    and {len(shown_findings) - MOST_FINDINGS} more: --format json"


def _finding(finding: StaticFinding) -> Iterator[str]:
    yield f"    {finding.kind}  {_shown(finding.subject)}: {_shown(finding.text)}"
    if finding.place is not None:
        where = f"{finding.place.member}:{finding.place.line} in {finding.place.function}"
        more = f", {finding.count} calls" if finding.count > 1 else ""
        reach = REACHES[finding.reach] if finding.reach is not None else ""
        yield f"      at      {_shown(where)}{more}{', ' + reach if reach else ''}"
    if finding.what_to_do:
        yield f"      do      {finding.what_to_do}"
    if finding.source:
        yield f"      source  {finding.source}"


def _summary(inspection: Inspection, sides: Sequence[str]) -> str:
    lines = []
    for side in sides:
        verdicts = [file.verdicts[side].prediction for file in inspection.files if side in file.verdicts]
        counts = ", ".join(f"{verdicts.count(item)} {item}" for item in Prediction if item in verdicts)
        lines.append(f"torch {inspection.releases[side]}: {counts or 'nothing to judge'}")
    unread = sum(file.facts is None or not file.facts.is_judged for file in inspection.files)
    if unread:
        lines.append(f"not judged: {unread} of {len(inspection.files)} files")
    code = exit_code(inspection)
    lines.append(f"exit code {int(code)}; nothing was loaded or run: this predicts loading, not answers")
    return "\n".join(lines)


def _shown(text: str) -> str:
    return shorten(prose(text), LONGEST)


def _wrapped(line: str, width: int) -> list[str]:
    """Return a line of two columns, cut between words; the second column goes on below itself."""
    indent = " " * (len(line) - len(line.lstrip()))
    beside = SECOND.match(line)
    return filled(line, width, rest=" " * beside.end() if beside else f"{indent}  ")
