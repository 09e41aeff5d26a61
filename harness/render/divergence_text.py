"""What ``bisect`` found, as text for a terminal, and a culprit as an issue to paste."""

from collections.abc import Iterator

from harness.domain.bisection import Answer, Bisection, Reproducer
from harness.domain.divergence import Divergence, NodeFault
from harness.render.cures import cure_lines
from harness.render.reduction_text import culprit_lines, reduction_lines
from harness.render.rewrites import rewrite_lines
from harness.render.text_grid import filled
from harness.render.words import counted, prose, visible

LABEL = 12
MOST_SUSPECTS = 5
HEADS = {
    Answer.NOTHING: "nothing to find",
    Answer.OPERATOR: "an operator",
    Answer.EXECUTOR: "the executor, no operator",
    Answer.LOADING: "refused while loading",
    Answer.NODES: "a part of its program",
    Answer.UNDECIDED: "undecided",
}


def render_bisection(found: Bisection, *, directory: str, width: int = 100) -> str:
    """Return the whole answer, ending with a newline; ``directory`` is the run's as a reader types it."""
    head = visible(f"{found.model}, {found.old} -> {found.new}: {_head(found)}")
    lines = filled(head, max(width, 80))
    for label, text in _lines(found, directory):
        lines += _wrapped(label, visible(text), width)
    return "\n".join(lines) + "\n"


def _head(found: Bisection) -> str:
    culprits = found.divergence.culprits if found.divergence is not None else ()
    if found.answer is Answer.OPERATOR and len(culprits) > 1:
        operators = len({fault.node.operator for fault in culprits})
        return f"{counted(operators, 'operator')} in {len(culprits)} places"
    return HEADS[found.answer]


def _lines(found: Bisection, directory: str) -> Iterator[tuple[str, str]]:
    for text in found.symptom[:MOST_SUSPECTS]:
        yield "symptom", prose(text)
    if found.divergence is not None:
        yield from _divergence(found.divergence, found)
    for text in found.refusals:
        yield "refused", prose(text)
    if found.reduction is not None:
        yield from reduction_lines(found.reduction, found, directory)
    if found.smallest is not None:
        yield from culprit_lines(found.smallest, found, directory)
    yield from cure_lines(found.cures)
    yield from rewrite_lines(found.rewrites, old=found.old, new=found.new, directory=directory)
    for made in found.reproducers:
        yield from _reproducer(made, found, directory)
    for note in found.notes:
        yield "note", prose(note)


def _divergence(divergence: Divergence, found: Bisection) -> Iterator[tuple[str, str]]:
    told: dict[str, list[NodeFault]] = {}
    for fault in divergence.culprits:
        told.setdefault(fault.node.operator, []).append(fault)
    for same in told.values():
        more = same[1:]
        yield from _fault(same[0])
        for fault in more[:MOST_SUSPECTS]:
            yield "also", f"{fault.node.module or 'at the top'}: {prose('; '.join(fault.what))}"
        if len(more) > MOST_SUSPECTS:
            yield "", f"and {len(more) - MOST_SUSPECTS} more, see bisect.json"
    if divergence.rounding:
        first = divergence.rounding[:MOST_SUSPECTS]
        how_many = counted(len(divergence.rounding), "node")
        yield "rounding", f"{how_many} with other bits, none beyond tolerance as far as can be told:"
        for fault in first:
            yield "", f"{fault.node.operator}{_where(fault)}: {prose('; '.join(fault.what))}"
    call = f"{divergence.input_set} call {divergence.call}"
    probes = f"{divergence.probes[0]} + {divergence.probes[1]} probes"
    yield "searched", f"{call}: {counted(divergence.nodes, 'node')}, {probes}"
    if found.answer is Answer.EXECUTOR:
        yield "", "made node by node the call agrees: what differs is how the release optimises it"
    what = "these" if len(divergence.culprits or divergence.rounding) > 1 else "this one"
    if divergence.confirmed:
        yield "confirmed", f"with the outputs of {what} taken from {found.old} the call agrees"
    elif divergence.confirmed is False:
        yield "unconfirmed", f"with the outputs of {what} taken from {found.old} the call still differs"
    if divergence.inherited:
        does = "differs" if divergence.inherited == 1 else "differ"
        yield "inherited", f"{counted(divergence.inherited, 'further node')} {does} only because of that"
    for note in divergence.notes:
        yield "note", prose(note)


def _fault(fault: NodeFault) -> Iterator[tuple[str, str]]:
    node = fault.node
    yield "culprit", node.operator
    if node.module:
        yield "module", node.module
    if node.source:
        yield "source", node.source
    if node.code:
        yield "code", node.code
    yield "inputs", ", ".join(node.inputs) or "none"
    for text in fault.what:
        yield "differs", prose(text)
    if len(fault.places) > 1:
        yield "", f"in {len(fault.places)} runs of it; shown is the first"


def _where(fault: NodeFault) -> str:
    parts = [part for part in (fault.node.module, fault.node.source) if part]
    return f" ({', '.join(parts)})" if parts else ""


def _reproducer(made: Reproducer, found: Bisection, directory: str) -> Iterator[tuple[str, str]]:
    if not made.folder:
        yield "reproducer", f"none: {prose(made.note)}"
        return
    yield "reproducer", f"{directory}/{made.folder}/reproduce.py"
    yield "", f"{found.old}: {prose(made.old)}"
    yield "", f"{found.new}: {prose(made.new)}"
    if made.note:
        yield "", prose(made.note)


def _wrapped(label: str, text: str, width: int) -> list[str]:
    first, rest = f"  {label:{LABEL}}", " " * (LABEL + 2)
    return filled(text, max(width, 80), first=first, rest=rest) or [f"  {label}"]
