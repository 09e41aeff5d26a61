"""A check of sources as a document: what breaks, by the name that it is about, then the sources that do not compile."""

from collections.abc import Iterator
from pathlib import Path

from harness.core.compiling import BrokenApi, CompileCheck, CompiledUnit, CompileOutcome
from harness.core.text import counted, first_few
from harness.report.document import (
    ALWAYS,
    BAD,
    DETAIL,
    GOOD,
    MORE,
    OPEN,
    QUIET,
    Cell,
    Document,
    Fact,
    Part,
    Row,
    Table,
    Verdict,
    facts,
    placed,
)

TONES = {
    CompileOutcome.COMPILES: GOOD,
    CompileOutcome.NEEDS_NOTHING: QUIET,
    CompileOutcome.NOT_CHECKED: OPEN,
    CompileOutcome.BROKEN_BEFORE: OPEN,
    CompileOutcome.BREAKS: BAD,
}
MOST_PLACES = 5
SHORT = 4
"""Lines of an example that say no more than what to write."""
MOST_ROWS = 20
VERIFIED = {True: "compiled here with both", False: "does not compile here with both: adapt it", None: ""}


def compile_document(check: CompileCheck) -> Document:
    """Return the document."""
    well = (CompileOutcome.COMPILES, CompileOutcome.NEEDS_NOTHING)
    bad = [unit for unit in check.units if check.outcomes[unit.file] not in well]
    rows = tuple(_row(unit, check, place) for place, unit in enumerate(sorted(bad, key=lambda unit: not unit.after)))
    return Document(
        title=f"Compile check: LibTorch {check.new}",
        verdict=Verdict(means=_summary(check)),
        full="--format json",
        parts=(
            *(_broken(one, place) for place, one in enumerate(check.broken)),
            Part(
                title="Sources that do not compile",
                blocks=(Table(heads=("source", "what", "first error"), rows=rows, noun="source"),) if rows else (),
            ),
            Part(title="How it was read", blocks=facts(_how(check), MORE)),
        ),
    )


def _summary(check: CompileCheck) -> str:
    outcomes = [check.outcomes[unit.file] for unit in check.units]
    counts = [(outcomes.count(outcome), outcome) for outcome in reversed(CompileOutcome)]
    return "; ".join(f"{counted(count, 'source')}: {outcome}" for count, outcome in counts if count)


def _broken(broken: BrokenApi, place: int) -> Part:
    places = [f"{error.file}:{error.line}" for error in broken.errors]
    change = broken.change
    return Part(
        title=broken.api,
        word="breaks",
        tone=BAD,
        importance=placed(ALWAYS, place) if place >= MOST_ROWS else ALWAYS,
        blocks=(
            Fact("error", broken.errors[0].message),
            *facts([("since", broken.since)]),
            *facts(
                [("write", change.write), ("which", VERIFIED[broken.verified]), ("source", change.source)]
                if change
                else []
            ),
            Fact("at", first_few(places, MOST_PLACES)),
            *_example(change.example if change is not None else ""),
        ),
    )


def _example(source: str) -> Iterator[Fact]:
    """Yield the lines of an example that is more than what to write says."""
    lines = source.strip().splitlines()
    if len(lines) > SHORT:
        for place, line in enumerate(lines):
            yield Fact("example" if not place else "", line, form="path")


def _row(unit: CompiledUnit, check: CompileCheck, place: int) -> Row:
    outcome = check.outcomes[unit.file]
    error = next(iter(unit.after or unit.before), None)
    told = f"{Path(error.file).name}:{error.line}: {error.message}" if error is not None else unit.why
    return Row(
        cells=(unit.file, Cell(str(outcome), tone=TONES[outcome]), told),
        importance=ALWAYS if place < MOST_ROWS else placed(DETAIL, place),
    )


def _how(check: CompileCheck) -> Iterator[tuple[str, str]]:
    yield "language", f"LibTorch {check.new} asks for C++{check.standard}"
    if check.raised:
        yield (
            "raised",
            f"{counted(check.raised, 'source')} that the build compiles as an older C++: raise CMAKE_CXX_STANDARD",
        )
    if check.stopped:
        yield (
            "stopped",
            f"{counted(len(check.stopped), 'source')} end at a header that is gone: what follows was not read",
        )
    if check.cached:
        yield "known", f"{counted(check.cached, 'source')} from an earlier check of the same text"
