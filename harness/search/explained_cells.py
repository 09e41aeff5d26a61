"""From what a search found to what a red cell says of it, and which red cells are worth a search; pure."""

import posixpath
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import PurePath

from harness.core.diagnosis import BisectAnswer, Bisection, MitigationResult, NodeFault, Rewritten, TracedNode
from harness.core.findings import SEVERITY
from harness.core.outcome import Status
from harness.core.releases import Ending, FirstBad
from harness.core.report import Explained
from harness.core.text import first_few
from harness.core.verdict import CellVerdict, Fix, Mitigation
from harness.verdict.first_bad import reads_otherwise
from harness.verdict.mitigation import fix_line, fix_of, fix_of_rewrite

MOST = 3
SINCE = "since"
EXECUTOR = "no operator by itself: made node by node the call agrees, so it is how the release optimises the graph"


def worth_explaining(verdicts: Mapping[str, Sequence[CellVerdict]]) -> tuple[CellVerdict, ...]:
    """Return the red cells that a search of the model alone can explain, the gravest first; of equals by name.

    One per model: what it does alone, else its latency. No answer is graver than another answer, that than a late one.
    """
    red = [cell for cells in verdicts.values() if (cell := _searchable(cells)) is not None]
    return tuple(sorted(red, key=lambda cell: (_gravity(cell), cell.model)))


def _searchable(cells: Sequence[CellVerdict]) -> CellVerdict | None:
    failed = (cell for cell in cells if cell.status is Status.FAIL and cell.decides)
    red = {cell.scenario: cell for cell in failed if cell.judged in (None, Status.FAIL)}  # not by the policy alone
    return red.get("alone") or red.get("latency")


def _gravity(cell: CellVerdict) -> int:
    order = {kind: place for place, kind in enumerate(SEVERITY)}
    return min((order[finding.kind] for finding in cell.findings if finding.kind in order), default=len(order))


def by_bisection(cell: str, bisection: Bisection, *, folder: str, seconds: float = 0.0) -> Explained:
    """Return what ``bisection`` tells of ``cell``; ``folder`` is where its files lie, as ``Explained.paths`` has it."""
    rewrites = rewrites_that_fix(bisection.rewrites)
    fixes = _fixes(bisection.mitigations, rewrites)
    lines = [*_culprits(bisection), *(("refused", text) for text in bisection.refusals[:MOST])]
    if not lines and not fixes:
        why = "; ".join((*bisection.notes, *(bisection.divergence.notes if bisection.divergence is not None else ())))
        lines = [("culprit", f"not found{f': {why}' if why else ''}")]
    made = [_within(folder, f"{item.folder}/reproduce.py") for item in bisection.reproducers if item.folder]
    patched = [_within(folder, item.artifact) for item in rewrites[:1] if item.artifact]
    reduced = bisection.reduction.culprits if bisection.reduction is not None else ()
    extracted = [*reduced[:1], *([bisection.smallest] if bisection.smallest is not None else [])]
    patched += [_within(folder, item.artifact) for item in extracted if not made]  # a reproducer has a copy of it
    return Explained(
        cell=cell,
        model=bisection.model,
        by="bisect",
        answer=_answer(bisection),
        operators=tuple(dict.fromkeys(name.partition(".")[0] for name in _operators(bisection))),
        lines=tuple(dict.fromkeys(lines)),
        paths=(*patched, *made[:MOST], _within(folder, "bisect.json")),
        seconds=seconds,
        fixes=fixes,
        patched=_patched(folder, rewrites),
    )


def by_first_bad(cell: str, first_bad: FirstBad, *, path: str) -> Explained:
    answer = "; ".join((_since(first_bad), *_doubts(first_bad)))
    return Explained(
        cell=cell,
        model=first_bad.model,
        by="first-bad",
        answer=answer,
        lines=((SINCE, answer),),
        paths=(path,),
        seconds=first_bad.wall_s,
    )


def _since(first_bad: FirstBad) -> str:
    ends = first_bad.conclusion
    good = f"torch {ends.last_good} is good"
    match ends.ending:
        case Ending.FOUND:
            return f"torch {ends.first_bad}; {good}"
        case Ending.ONE_OF:
            return f"one of torch {', '.join(ends.one_of)}; {good}"
        case _:
            return f"not found by a search over releases: {ends.ending}"


def _doubts(first_bad: FirstBad) -> Iterator[str]:
    if first_bad.conclusion.ending is not Ending.FOUND:
        return
    for bad, good in first_bad.conclusion.good_again:
        yield f"but {bad} is bad and {good} after it good again"
    if reads_otherwise(first_bad):
        yield f"but {first_bad.releases[-1]} fails with another error: there may be two breaks"


def by_mitigations(cell: str, result: MitigationResult, *, path: str) -> Explained:
    fixes = _fixes(result.mitigations, rewrites_that_fix(result.rewrites))
    why = next(iter(result.notes), "") if not result.mitigations else ""
    return Explained(
        cell=cell,
        model=result.model,
        by="mitigate",
        answer=fix_line(fixes[0]) if fixes else "nothing that was tried mitigates it",
        lines=() if fixes else (("tried", why or "no setting that mitigate tried helps"),),
        paths=(path,),
        fixes=fixes,
        patched=_patched(posixpath.dirname(path), rewrites_that_fix(result.rewrites)),
    )


def _patched(folder: str, working: Sequence[Rewritten]) -> str:
    return _within(folder, working[0].artifact) if working and working[0].artifact else ""


def with_later(before: Sequence[Explained], later: Sequence[Explained]) -> tuple[Explained, ...]:
    """Return all that was found, of the same command about the same cell the later one."""
    known = {(item.cell, item.by): item for item in before}
    for item in later:
        earlier = known.get((item.cell, item.by))
        known[item.cell, item.by] = item.after(earlier) if earlier is not None else item
    return tuple(known.values())


def rewrites_that_fix(rewrites: Iterable[Rewritten]) -> list[Rewritten]:
    return sorted((item for item in rewrites if item.fixes), key=lambda item: item.rank)


def _answer(bisection: Bisection) -> str:
    operators = _operators(bisection)
    return f"operator {', '.join(operators)}" if operators else bisection.answer.value


def _operators(bisection: Bisection) -> tuple[str, ...]:
    if bisection.answer is not BisectAnswer.OPERATOR or bisection.divergence is None:
        return ()
    return tuple(dict.fromkeys(fault.node.operator for fault in bisection.divergence.culprits))


def _culprits(bisection: Bisection) -> list[tuple[str, str]]:
    faults: dict[str, NodeFault] = {}
    for fault in bisection.divergence.culprits if bisection.divergence is not None else ():
        faults.setdefault(fault.node.operator, fault)
    lines = []
    for fault in list(faults.values())[:MOST]:
        lines.append(("culprit", f"{_node(fault.node)}: {'; '.join(fault.what[:1])}"))
        if fault.node.code:
            lines.append(("code", fault.node.code.strip()))
    if len(faults) > MOST:
        lines.append(("culprit", f"and {len(faults) - MOST} more operators"))
    if bisection.answer is BisectAnswer.EXECUTOR and (bisection.reduction is None or not bisection.reduction.culprits):
        lines.append(("culprit", EXECUTOR))
    for culprit in bisection.reduction.culprits[:MOST] if bisection.reduction is not None else ():
        names = first_few([node.operator for node in culprit.nodes], MOST, " + ")
        source = next((node.source for node in reversed(culprit.nodes) if node.source), "")
        doubt = "" if culprit.minimal else "; the search ended before it was known whether each of them is needed"
        lines.append(("reduced", f"to {names}{_at(source)}{doubt}"))
    if bisection.smallest is not None:
        names = " + ".join(node.operator for node in bisection.smallest.nodes[:MOST])
        lines.append(("reduced", f"to an archive of {names} alone, which is refused as well: {bisection.smallest.new}"))
    return lines


def _node(node: TracedNode) -> str:
    module = f" in {node.module}" if node.module else ""
    return f"{node.operator}{module}{_at(node.source)}"


def _at(source: str) -> str:
    """Return a line of source for a sentence; that of a package without the folder that the package is installed in."""
    return f", {source.rpartition('/site-packages/')[2]}" if source else ""


def _fixes(tried: Iterable[Mitigation], working: Sequence[Rewritten]) -> tuple[Fix, ...]:
    """Return what fixes a cell, not more of each kind than a reader takes in."""
    return (*[fix_of(item) for item in tried if item.mitigates][:MOST], *map(fix_of_rewrite, working[:MOST]))


def _within(folder: str, path: str) -> str:
    return path if not folder or PurePath(path).is_absolute() else f"{folder}/{path}"
