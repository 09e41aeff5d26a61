"""A check of binaries as a document: what to do with each, then why, the gravest first."""

from collections.abc import Iterator, Sequence

from harness.checks.linking.demangled import brief, last_names, split
from harness.core.linking import LinkCheck, LinkedBinary, LinkNote, LinkOutcome, MissingSymbol, SymbolChange
from harness.core.text import counted, first_few
from harness.report.document import (
    ALWAYS,
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
    placed,
)
from harness.verdict.linking import compiles_again, is_enough

TONES = {
    LinkOutcome.LINKS: GOOD,
    LinkOutcome.RECOMPILE: BAD,
    LinkOutcome.UNRESOLVED: OPEN,
    LinkOutcome.CHANGE_SOURCE: BAD,
}
LAYOUT = (
    "linking is not all: PyTorch promises no layout of its classes between releases, and inlined code has the old one"
    " compiled in. Compile again before you serve, and run compat with the models"
)
STABLE = "all that it needs is the stable C interface, which PyTorch keeps"
MACRO = "behind a macro on TORCH_VERSION_MAJOR and TORCH_VERSION_MINOR"
ADVICE = {
    SymbolChange.OTHER_ABI: "compile again: the source reads the same in both",
    SymbolChange.DECLARED: "compile again: most likely inline since, else the compiler or the linker says so",
    SymbolChange.ADDED_PARAMETERS: "compile again: most of what PyTorch adds has a default, else the compiler says so",
    SymbolChange.OTHER_PARAMETERS: f"write the other parameters where your code names it, {MACRO}",
    SymbolChange.MOVED: f"write the other name, {MACRO}",
    SymbolChange.GONE: "do without it in the new release, where your code names it",
}
IN_LIBTORCH = (
    "some may be needed by LibTorch's own inlined code, which changes when you compile again: look for them in your"
    " source, or give it with --source"
)
MOST_ROWS = 12


def link_document(check: LinkCheck) -> Document:
    """Return the document."""
    worst = sorted(check.binaries, key=lambda binary: -list(LinkOutcome).index(check.outcomes[binary.file]))
    rows = tuple(_row(binary, check) for binary in worst)
    heads = ("binary", "what to do", "symbols of LibTorch", "missing", "has all it needs")
    return Document(
        title=f"Link check: LibTorch {check.old} to {check.new}",
        verdict=Verdict(means=_summary(check)),
        full="--format json",
        parts=(
            Part(
                title="Binaries",
                blocks=(
                    Table(heads=heads, rows=rows, numbers=(2, 3), noun="binary"),
                    *(Fact("not read", f"{file}: {why}", tone=OPEN) for file, why in check.unread.items()),
                    *facts([("old release", _guess(check))]),
                    *facts([("also read", _others(check))], MORE),
                ),
            ),
            *(_binary(binary, check) for binary in worst),
            Part(
                title="The new release on this machine" if not check.image else f"The new release in {check.image}",
                blocks=tuple(_note(note) for note in check.notes),
            ),
        ),
    )


def _summary(check: LinkCheck) -> str:
    outcomes = list(check.outcomes.values())
    words = [
        f"{counted(outcomes.count(outcome), 'binary', 'binaries')}: {outcome}"
        for outcome in reversed(LinkOutcome)
        if outcome in outcomes
    ]
    if check.unread:
        words.append(f"{counted(len(check.unread), 'binary', 'binaries')}: not read")
    return "; ".join(words) or "nothing here needs LibTorch"


def _guess(check: LinkCheck) -> str:
    return f"{check.old}, which has most of what they need; --old names another" if check.guessed else ""


def _others(check: LinkCheck) -> str:
    return f"{counted(len(check.others), 'file')} that need nothing of LibTorch" if check.others else ""


def _row(binary: LinkedBinary, check: LinkCheck) -> Row:
    outcome = check.outcomes[binary.file]
    return Row(
        cells=(
            binary.file,
            Cell(str(outcome), tone=TONES[outcome]),
            str(binary.uses),
            str(len(binary.missing) + len(binary.unresolved)),
            _fits(binary),
        )
    )


def _fits(binary: LinkedBinary) -> str:
    if not binary.fits:
        return "no known release" if binary.uses else "-"
    first, last = binary.fits[0], binary.fits[-1]
    return first if first == last else f"{first} to {last}"


def _binary(binary: LinkedBinary, check: LinkCheck) -> Part:
    outcome = check.outcomes[binary.file]
    return Part(
        title=binary.file,
        word=str(outcome),
        tone=TONES[outcome],
        blocks=(
            *_because(binary, check),
            *_missing(binary),
            *facts(
                [("needs too", ", ".join(brief(text) for text in binary.unresolved[:MOST_ROWS]))]
                if binary.unresolved
                else []
            ),
            *facts([("not found", ", ".join(binary.absent))] if binary.absent else []),
            *(_note(note) for note in binary.notes),
        ),
    )


def _because(binary: LinkedBinary, check: LinkCheck) -> Iterator[Fact]:
    outcome = check.outcomes[binary.file]
    if outcome is LinkOutcome.LINKS:
        if binary.stable:
            yield Fact("because", STABLE)
        elif not is_enough(binary, check):
            yield Fact("but", LAYOUT)
    if outcome is LinkOutcome.UNRESOLVED:
        yield Fact("because", "something that it needs is neither in LibTorch nor in a library that is here")


def _missing(binary: LinkedBinary) -> Iterator[Block]:
    for change in reversed(SymbolChange):
        lost = [missing for missing in binary.missing if missing.change is change]
        if lost:
            advice = Fact("do", ADVICE[change])
            yield Part(title=f"{len(lost)} {change}", blocks=(advice, *_symbols(lost, change)))
    asked = [missing for missing in binary.missing if not compiles_again(missing)]
    if asked and asked[0].in_source is None:
        names = sorted({name for missing in asked for name in last_names(split(missing.text)[0])[-1:]})
        yield Fact("but", IN_LIBTORCH)
        yield Fact("look", f"grep -rnwE '{'|'.join(names)}' SOURCE", form="command")
    others = [missing for missing in binary.missing if missing.in_source is False]
    if others:
        yield Fact(
            "not yours", f"{counted(len(others), 'symbol')} your code does not name: LibTorch's inlined code needs them"
        )


def _symbols(lost: Sequence[MissingSymbol], change: SymbolChange) -> Iterator[Block]:
    if change in (SymbolChange.GONE, SymbolChange.DECLARED):
        rows = tuple(
            Row(cells=(missing.since or "-", brief(missing.text)), importance=_importance(place))
            for place, missing in enumerate(lost)
        )
        yield Table(heads=("since", "symbol"), rows=rows, noun="symbol")
    elif change is SymbolChange.OTHER_ABI:  # the two differ in nothing that a source would show
        names = list(dict.fromkeys(split(brief(missing.text))[0] for missing in lost))
        yield Fact("of", first_few(names, MOST_ROWS))
    else:
        for place, missing in enumerate(lost):
            importance = _importance(place)
            yield Fact("needed", brief(missing.text), importance)
            yield Fact("there", brief(missing.successors[0]), importance)
            yield Fact("since", missing.since, importance)


def _importance(place: int) -> int:
    return ALWAYS if place < MOST_ROWS else placed(DETAIL, place)


def _note(note: LinkNote) -> Fact:
    return Fact(note.kind.replace("_", " "), f"{note.text}; {note.what_to_do}", tone=BAD if note.stops else "")
