"""What ``bisect`` found, as text for a terminal, and a culprit as an issue to paste."""

from collections.abc import Iterator, Sequence
from pathlib import PurePath

from harness.core.diagnosis import (
    BisectAnswer,
    Bisection,
    Culprit,
    Divergence,
    NodeFault,
    Reduction,
    Reproducer,
    Symptom,
    TracedNode,
)
from harness.core.text import counted, first_few, prose, visible
from harness.report.text.cures import cure_lines
from harness.report.text.grid import filled
from harness.report.text.rewrites import nodes_words, rewrite_lines

MOST_NAMED = 5


def reduction_lines(reduction: Reduction, found: Bisection, directory: str) -> Iterator[tuple[str, str]]:
    """Yield what shows the symptom on its own; ``directory`` is the run's as a reader types it."""
    for culprit in reduction.culprits:
        yield from culprit_lines(culprit, found, directory)
    yield "reduced", _how(reduction)
    if reduction.ended:
        yield "", _what_ended(reduction)
    if reduction.waited_s is not None and reduction.symptom is Symptom.HANG:
        yield "", f"a call is said to hang after {reduction.waited_s:g} s"
    if reduction.untestable:
        yield "", f"{counted(reduction.untestable, 'part')} could not be tested"
    if reduction.rest_passes is not None:
        rest = "does not show it" if reduction.rest_passes else "still shows it, or cannot be tested"
        yield "", f"without {'it' if len(reduction.culprits) == 1 else 'them'} the rest {rest}"
    for note in reduction.notes:
        yield "note", prose(note)


def _how(reduction: Reduction) -> str:
    asked = f"{counted(reduction.tests, 'test')} of parts, {counted(reduction.runs, 'run')} in the new release"
    if not reduction.shows:
        return f"no: {counted(reduction.nodes, 'node')} to choose from"
    if not reduction.culprits:
        return f"to no part of {counted(reduction.nodes, 'node')}: {asked}"
    kept = sum(len(culprit.keep) for culprit in reduction.culprits)
    return f"to {kept} of {counted(reduction.nodes, 'node')}: {asked}"


def _what_ended(reduction: Reduction) -> str:
    """Return which part of the search ended early: that of the culprits, or only that of what is left."""
    if reduction.culprits and all(culprit.minimal for culprit in reduction.culprits):
        without = "it" if len(reduction.culprits) == 1 else "them"
        return f"what is left without {without} was not reduced further: {prose(reduction.ended)}"
    return f"ended early: {prose(reduction.ended)}"


def culprit_lines(culprit: Culprit, found: Bisection, directory: str) -> Iterator[tuple[str, str]]:
    """Yield one group that shows it on its own: its operators, where they are, how it ended, and its archive."""
    yield "culprit", nodes_words(culprit.nodes, MOST_NAMED)
    yield from _places(culprit.nodes)
    if len(culprit.nodes) == 1:
        inputs = culprit.nodes[0].inputs
        yield from [("inputs", ", ".join(inputs))] if inputs else []
    elif culprit.minimal:
        yield "", "they need each other: without any one of them it does not show"
    else:
        yield "", "fewer of them may do: not all were tried one by one"
    if culprit.place:
        yield "", f"within a block, at {'.'.join(map(str, culprit.place))}"
    yield "alone", f"{found.old}: {prose(culprit.old)}"
    often = f", {culprit.fails} of {culprit.runs} times" if culprit.runs > 1 else ""
    ratio = f" ({culprit.steady.words})" if culprit.steady is not None else ""
    yield "", f"{found.new}: {prose(culprit.new)}{ratio}{often}"
    yield "archive", culprit.artifact if PurePath(culprit.artifact).is_absolute() else f"{directory}/{culprit.artifact}"


def _places(nodes: Sequence[TracedNode]) -> Iterator[tuple[str, str]]:
    """Yield modules, source lines and the code of one node, or of the first and the last of several."""
    modules = list(dict.fromkeys(node.module for node in nodes if node.module))
    if modules:
        yield "module", first_few(modules, MOST_NAMED)
    ends = [nodes[0]] if len(nodes) == 1 else [nodes[0], nodes[-1]]
    sources = list(dict.fromkeys(node.source for node in ends if node.source))
    if sources:
        yield "source", " to ".join(sources)
    for code in dict.fromkeys(node.code for node in ends if node.code):
        yield "code", code


LABEL = 12
MOST_SUSPECTS = 5
HEADS = {
    BisectAnswer.NOTHING: "nothing to find",
    BisectAnswer.OPERATOR: "an operator",
    BisectAnswer.EXECUTOR: "the executor, no operator",
    BisectAnswer.LOADING: "refused while loading",
    BisectAnswer.NODES: "a part of its program",
    BisectAnswer.UNDECIDED: "undecided",
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
    if found.answer is BisectAnswer.OPERATOR and len(culprits) > 1:
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
    faults_by_operator: dict[str, list[NodeFault]] = {}
    for fault in divergence.culprits:
        faults_by_operator.setdefault(fault.node.operator, []).append(fault)
    for same in faults_by_operator.values():
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
    if found.answer is BisectAnswer.EXECUTOR:
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
