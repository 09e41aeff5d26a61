"""Golden records as documents: a diff for a pull request, the state of all records, what gc would remove."""

from collections.abc import Iterator, Sequence

from harness.checks.outputs.findings import error_of
from harness.core.comparison import OutputComparison, TensorMetrics
from harness.core.golden import GoldenStatus, LeftOver, RecordChange, RecordDiff, RecordFacts, Review, Trust
from harness.core.text import amount, counted, first_few
from harness.report.document import (
    BAD,
    DETAIL,
    FIRST,
    GOOD,
    MORE,
    OPEN,
    QUIET,
    USUAL,
    Block,
    Cell,
    Document,
    Fact,
    Part,
    Row,
    Table,
    Verdict,
    anchor,
    facts,
    placed,
)
from harness.report.text.sparkline import sparkline

HEADS = ("input set, output", "calls", "off by", "max abs", "ULP", "rel. L2", "cosine", "beyond")
PLACES_SHOWN, ROWS, DRAWN, OPENED = 3, 12, 3, 5
"""Calls that are named; of a terminal outputs in a table, and histograms; models that a page unfolds."""
TONES = {
    RecordChange.STRUCTURE: BAD,
    RecordChange.BEYOND: BAD,
    RecordChange.UNKNOWN: OPEN,
    RecordChange.WITHIN: QUIET,
    RecordChange.SAME: GOOD,
    RecordChange.NEW: OPEN,
    RecordChange.GONE: BAD,
}


def review_document(review: Review) -> Document:
    """Return a diff of golden records, the gravest change first."""
    counts: dict[str, int] = {}
    for diff in review.diffs:
        counts[diff.change.value] = counts.get(diff.change.value, 0) + 1
    words = ", ".join(f"{count} {word}" for word, count in counts.items()) or "nothing differs"
    tones = [TONES[diff.change] for diff in review.diffs]
    rows = tuple(
        Row(
            cells=(
                Cell(diff.model, link=f"#{anchor(diff.model)}"),
                diff.words,
                Cell(diff.change.value, tone=TONES[diff.change]),
            ),
            importance=placed(FIRST, at),
        )
        for at, diff in enumerate(review.diffs)
    )
    return Document(
        title="Golden records",
        eyebrow="TorchScript upgrade gate: golden records",
        verdict=Verdict(
            means=f"{counted(len(review.diffs), 'model')}: {words}" if review.diffs else words,
            tone=next((tone for tone in (BAD, OPEN) if tone in tones), GOOD),
        ),
        full="--format json",
        parts=(
            Part(title="", blocks=facts((("old", review.old), ("new", review.new)))),
            Part(
                title="Models",
                id="overview",
                importance=USUAL if len(review.diffs) > 1 else DETAIL,
                blocks=(Table(heads=("model", "what", "change"), rows=rows, noun="model"),),
            ),
            Part(
                title="Model by model",
                id="details",
                noun="model",
                blocks=tuple(_diff(diff, at) for at, diff in enumerate(review.diffs)),
            ),
        ),
    )


def _diff(diff: RecordDiff, at: int) -> Part:
    """Return one model; of many the last ones have no numbers where room is short."""
    importance = placed(FIRST + 5, at)
    sides = [(label, _side(side)) for label, side in (("old", diff.old), ("new", diff.new)) if side is not None]
    between = [(name, f"{old} -> {new}") for name, (old, new) in diff.facts.items()]
    blocks: list[Block] = [*facts((("what", diff.words), *sides, *between))]
    if diff.comparison is not None:
        blocks += [
            Fact("structure", text, USUAL if place < ROWS else DETAIL)
            for place, text in enumerate(_structure(diff.comparison))
        ]
        blocks += _numbers(diff.comparison)
    return Part(
        title=diff.model,
        word=diff.change.value,
        tone=TONES[diff.change],
        blocks=tuple(blocks),
        importance=importance,
        id=anchor(diff.model),
        brief=diff.words,
        kind="model",
        opened=at < OPENED,
    )


def _numbers(comparison: OutputComparison) -> Iterator[Block]:
    """Yield a row for every output that differs, or may by its sample, the furthest off first; then histograms."""
    calls_of: dict[tuple[str, str], list[tuple[int, TensorMetrics]]] = {}
    for call in comparison.calls:
        for tensor in call.tensors:
            calls_of.setdefault((call.input_set, tensor.path), []).append((call.call, tensor))
    worst = []
    for (input_set, path), tensors in calls_of.items():
        other = [item for item in tensors if not item[1].bit_equal or item[1].sampled]
        if other:
            number_of_call, tensor = max(other, key=lambda item: _gravity(item[1]))
            calls = sum(item.input_set == input_set for item in comparison.calls)
            worst.append((input_set, path, number_of_call, tensor, f"{len(other)}/{calls}"))
    worst.sort(key=lambda item: (*(-part for part in _gravity(item[3])), item[0], item[1]))
    rows = tuple(
        Row(cells=_cells(input_set, tensor, calls), importance=USUAL if at < ROWS else DETAIL)
        for at, (input_set, _, _, tensor, calls) in enumerate(worst)
    )
    if rows:
        yield Table(heads=HEADS, rows=rows, numbers=tuple(range(1, len(HEADS))), noun="output")
    drawn = [item for item in worst[:ROWS] if sum(item[3].error_histogram[1:])]
    for input_set, path, at_call, tensor, _ in drawn[:DRAWN]:
        yield Fact("errors", f"{input_set} call {at_call} {path}: {sparkline(tensor)}", MORE)


def _gravity(tensor: TensorMetrics) -> tuple[float, float]:
    return float(tensor.nan_mismatches + tensor.inf_mismatches), error_of(tensor)


def _cells(input_set: str, tensor: TensorMetrics, calls: str) -> tuple[str, ...]:
    moved = tensor.nan_mismatches + tensor.inf_mismatches
    return (
        f"{input_set} {tensor.path}{' (sample)' if tensor.sampled else ''}",
        calls,
        "NaN moved" if moved else number(error_of(tensor)),
        number(tensor.max_abs),
        "-" if tensor.max_ulp is None else number(tensor.max_ulp),
        number(tensor.rel_l2),
        "-" if tensor.cosine is None else f"{tensor.cosine:.6f}",
        f"{tensor.mismatched}/{tensor.elements}",
    )


def _structure(comparison: OutputComparison) -> list[str]:
    """Return what has another structure, one line per place; equal lines of several calls once."""
    places: dict[str, list[str]] = {}
    for call in comparison.calls:
        for difference in call.tree:
            text = f"{difference.path}: {difference.expected} -> {difference.actual}"
            places.setdefault(text, []).append(f"{call.input_set} call {call.call}")
    lines = [f"{text} ({first_few(names, PLACES_SHOWN)})" for text, names in places.items()]
    gone = [f"{input_set} call {call}" for input_set, call in comparison.missing_calls]
    return [*lines, *([f"no longer there: {first_few(gone, PLACES_SHOWN)}"] if gone else [])]


def number(value: float | None) -> str:
    """Return a number in at most eight characters; ``-`` for none."""
    if value is None:
        return "-"
    return f"{value:.2g}".replace("e-0", "e-").replace("e+0", "e")


def _side(side: RecordFacts) -> str:
    """Return what one side of a diff is: release, record, run, and why it is trusted."""
    parts = [
        f"torch {side.release}",
        f"record {side.record[:12]}",
        f"{counted(side.tensors, 'tensor')} in {counted(side.calls, 'call')}",
    ]
    if side.run:
        parts.append(f"from {side.run}")
    if side.trust is not None:
        who = f" by {side.trust.by}" if side.trust.by else ""
        parts.append(f"accepted {side.trust.accepted.isoformat()}{who}: {side.trust.reason}")
    return ", ".join(parts)


def status_document(status: GoldenStatus) -> Document:
    """Return the state of all records."""
    groups: dict[str, list[Trust]] = {}
    for trust in status.accepted:
        by = f" by {trust.by}" if trust.by else ""
        groups.setdefault(f"accepted {trust.accepted.isoformat()}{by}: {trust.reason}", []).append(trust)
    accepted = tuple(
        Part(
            title=title,
            blocks=tuple(
                Fact("", f"{trust.model}  torch {trust.release}, record {trust.record[:12]}") for trust in members
            ),
        )
        for title, members in sorted(groups.items())
    )
    problems = tuple(
        Part(title=item.message, word="PROBLEM", tone=BAD, blocks=facts([("do this", item.hint)]))
        for item in status.problems
    )
    return Document(
        title="golden records",
        verdict=_state(status),
        parts=(
            Part(title="Problems", blocks=problems),
            Part(title="Proposals", blocks=proposals(status.waiting)),
            Part(title="Accepted", blocks=accepted),
        ),
    )


def _state(status: GoldenStatus) -> Verdict:
    if status.problems:
        what = f"{counted(len(status.problems), 'problem')}; no run judges by these records until it is mended"
        return Verdict(word=f"{status.folder}: NOT AS ACCEPTED", tone=BAD, condition=f": {what}")
    if not status.accepted and not status.waiting:
        return Verdict(means="no golden records yet: golden propose RUN")
    parts = [
        f"{counted(len(status.accepted), 'record')} as accepted",
        f"{counted(len(status.waiting), 'proposal')} waiting",
    ]
    if status.left_over:
        parts.append(f"golden gc would remove {counted(status.left_over, 'thing')}")
    return Verdict(word=status.folder, condition=f": {'; '.join(parts)}")


def proposals(diffs: Sequence[RecordDiff]) -> tuple[Part, ...]:
    """Return what each proposal changes."""
    return tuple(
        Part(
            title=f"{diff.model}: {diff.change.value}",
            word="proposed",
            tone=TONES[diff.change],
            blocks=facts([("what", diff.words)]),
        )
        for diff in diffs
    )


def proposed_document(
    same: Sequence[str], left_out: Sequence[tuple[str, str]], diffs: Sequence[RecordDiff]
) -> Document:
    """Return what ``golden propose`` did."""
    unchanged = facts(("as accepted", name) for name in same) + facts(
        ("left out", f"{name}: {why}") for name, why in left_out
    )
    return Document(
        title="nothing to propose" if not (diffs or unchanged) else "",
        verdict=Verdict(means="look at the numbers: golden diff" if diffs else "nothing changes"),
        parts=(Part(title="Proposals", blocks=proposals(diffs)), Part(title="", blocks=unchanged)),
    )


def left_over_document(things: Sequence[LeftOver], *, removed: bool) -> Document:
    """Return what gc removed or would remove."""
    word = "removed" if removed else "would remove"
    lines = tuple(Fact("", f"{word} {item.path} ({amount(item.size_bytes, 'bytes')}): {item.why}") for item in things)
    means = "nothing is left over" if not things else "" if removed else "nothing was removed; --yes removes it"
    done = f"{counted(len(things), 'thing')} removed" if removed and things else means
    return Document(title="", verdict=Verdict(means=done), parts=(Part(title="", blocks=lines),))
