"""What a program was reduced to, as lines of (label, text)."""

from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import PurePath

from harness.domain.bisection import Bisection
from harness.domain.divergence import TracedNode
from harness.domain.plain_text import first_few
from harness.domain.reduction import Culprit, Reduction, Symptom
from harness.render.words import counted, prose

MOST_NAMED = 5


def reduction_lines(reduction: Reduction, found: Bisection, directory: str) -> Iterator[tuple[str, str]]:
    """Yield what shows the symptom by itself; ``directory`` is the run's as a reader types it."""
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
    """Yield who shows it by itself: its operators, where they are, what became of it, and its archive."""
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
    ratio = f" (x {culprit.ratio:.2f})" if culprit.ratio is not None else ""
    yield "", f"{found.new}: {prose(culprit.new)}{ratio}{often}"
    yield "archive", culprit.artifact if PurePath(culprit.artifact).is_absolute() else f"{directory}/{culprit.artifact}"


def nodes_words(nodes: Sequence[TracedNode], most: int) -> str:
    """Return ``aten::cos``, or ``38 nodes: aten::add.Tensor 13, aten::cos 13, aten::sin 12``: ``most`` kinds."""
    if len(nodes) == 1:
        return nodes[0].operator
    often = Counter(node.operator for node in nodes).most_common()
    told = [f"{name} {count}" if count > 1 else name for name, count in often]
    kinds = {0: "", 1: " kind"}.get(max(len(often) - most, 0), " kinds")
    return f"{len(nodes)} nodes: {first_few(told, most)}{kinds}"


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
