"""What ``bisect`` and ``mitigate`` found as documents: culprits with places, mitigations with costs, rewrites."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import PurePath

from harness.core.diagnosis import (
    BisectAnswer,
    Bisection,
    Culprit,
    Divergence,
    MitigationAnswer,
    MitigationResult,
    NodeFault,
    Reduction,
    Reproducer,
    Rewritten,
    Symptom,
    TracedNode,
)
from harness.core.measurement import RatioEstimate
from harness.core.text import counted, first_few, joined
from harness.core.verdict import Mitigation
from harness.report.document import ALWAYS, GOOD, Block, Document, Fact, Part, Row, Table, Verdict, commands, facts
from harness.report.documents.causes import WAYS
from harness.serving.settings.paste_lines import ENVIRONMENT
from harness.verdict.mitigation import fix_of_rewrite, price_words

Lines = Iterator[tuple[str, str]]
MOST_NAMED, MOST_SUSPECTS = 5, 5
ANSWERS = {
    BisectAnswer.NOTHING: "nothing to find",
    BisectAnswer.OPERATOR: "an operator",
    BisectAnswer.EXECUTOR: "the executor, no operator",
    BisectAnswer.LOADING: "refused while loading",
    BisectAnswer.NODES: "a part of its program",
    BisectAnswer.UNDECIDED: "undecided",
}
# Quantity -> its words; throughput is the inverse of the time per request.
COSTS: Mapping[str, str] = {
    "steady": "latency",
    "request": "throughput",
    "request_cpu": "CPU per request",
    "first_calls": "first calls",
    "peak_rss": "memory",
}
BRIEF = ("steady", "request", "first_calls", "peak_rss")
_PATHS = ("archive", "reproducer", "patched", "written")
"""Labels of what is copied whole."""


def bisection_document(found: Bisection, *, directory: str) -> Document:
    """Return the whole answer; ``directory`` is the run's as a reader types it."""
    culprits = found.divergence.culprits if found.divergence is not None else ()
    answer = ANSWERS[found.answer]
    if found.answer is BisectAnswer.OPERATOR and len(culprits) > 1:
        operators = len({fault.node.operator for fault in culprits})
        answer = f"{counted(operators, 'operator')} in {len(culprits)} places"
    return Document(
        title="bisect",
        verdict=Verdict(means=f"{found.model}, {found.old} -> {found.new}: {answer}"),
        parts=(Part(title="", blocks=_labelled(_bisected(found, directory))),),
    )


def _labelled(lines: Iterator[tuple[str, str] | Fact]) -> tuple[Fact, ...]:
    made = (
        line if isinstance(line, Fact) else Fact(*line, form="path" if line[0] in _PATHS else "words") for line in lines
    )
    return tuple(fact for fact in made if fact.text)


def _bisected(found: Bisection, directory: str) -> Iterator[tuple[str, str] | Fact]:
    yield from (("symptom", text) for text in found.symptom[:MOST_SUSPECTS])
    if found.divergence is not None:
        yield from _divergence(found.divergence, found)
    yield from (("refused", text) for text in found.refusals)
    if found.reduction is not None:
        yield from reduction_lines(found.reduction, found, directory)
    if found.smallest is not None:
        yield from culprit_lines(found.smallest, found, directory)
    yield from mitigation_lines(found.mitigations)
    yield from rewrite_lines(found.rewrites, old=found.old, new=found.new, directory=directory)
    for made in found.reproducers:
        yield from _reproducer(made, found, directory)
    yield from (("note", note) for note in found.notes)


def _divergence(divergence: Divergence, found: Bisection) -> Lines:
    by_operator: dict[str, list[NodeFault]] = {}
    for fault in divergence.culprits:
        by_operator.setdefault(fault.node.operator, []).append(fault)
    for first, *more in by_operator.values():
        yield from _fault(first)
        for fault in more[:MOST_SUSPECTS]:
            yield "also", f"{fault.node.module or 'at the top'}: {'; '.join(fault.what)}"
        if len(more) > MOST_SUSPECTS:
            yield "", f"and {len(more) - MOST_SUSPECTS} more, see bisect.json"
    if divergence.rounding:
        how_many = counted(len(divergence.rounding), "node")
        yield "rounding", f"{how_many} with other bits, none beyond tolerance as far as can be told:"
        for fault in divergence.rounding[:MOST_SUSPECTS]:
            where = ", ".join(filter(None, (fault.node.module, fault.node.source)))
            yield "", f"{fault.node.operator}{f' ({where})' if where else ''}: {'; '.join(fault.what)}"
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
    yield from (("note", note) for note in divergence.notes)


def _fault(fault: NodeFault) -> Lines:
    node = fault.node
    yield "culprit", node.operator
    yield "module", node.module
    yield "source", node.source
    yield "code", node.code
    yield "inputs", ", ".join(node.inputs) or "none"
    yield from (("differs", text) for text in fault.what)
    if len(fault.places) > 1:
        yield "", f"in {len(fault.places)} runs of it; shown is the first"


def _reproducer(made: Reproducer, found: Bisection, directory: str) -> Iterator[tuple[str, str] | Fact]:
    if not made.folder:
        yield Fact("reproducer", f"none: {made.note}")
        return
    yield "reproducer", f"{directory}/{made.folder}/reproduce.py"
    yield "", f"{found.old}: {made.old}"
    yield "", f"{found.new}: {made.new}"
    yield "", made.note


def reduction_lines(reduction: Reduction, found: Bisection, directory: str) -> Lines:
    """Yield what shows the symptom on its own."""
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
    yield from (("note", note) for note in reduction.notes)


def _how(reduction: Reduction) -> str:
    tests = f"{counted(reduction.tests, 'test')} of parts, {counted(reduction.runs, 'run')} in the new release"
    if not reduction.shows:
        return f"no: {counted(reduction.nodes, 'node')} to choose from"
    if not reduction.culprits:
        return f"to no part of {counted(reduction.nodes, 'node')}: {tests}"
    kept = sum(len(culprit.keep) for culprit in reduction.culprits)
    return f"to {kept} of {counted(reduction.nodes, 'node')}: {tests}"


def _what_ended(reduction: Reduction) -> str:
    """Return which part of the search ended early: that of the culprits, or only that of what is left."""
    if reduction.culprits and all(culprit.minimal for culprit in reduction.culprits):
        without = "it" if len(reduction.culprits) == 1 else "them"
        return f"what is left without {without} was not reduced further: {reduction.ended}"
    return f"ended early: {reduction.ended}"


def culprit_lines(culprit: Culprit, found: Bisection, directory: str) -> Lines:
    """Yield one group that shows it on its own: its operators, where they are, how it ended, and its archive."""
    yield "culprit", _nodes_words(culprit.nodes)
    modules = list(dict.fromkeys(node.module for node in culprit.nodes if node.module))
    yield "module", first_few(modules, MOST_NAMED)
    ends = [culprit.nodes[0]] if len(culprit.nodes) == 1 else [culprit.nodes[0], culprit.nodes[-1]]
    yield "source", " to ".join(dict.fromkeys(node.source for node in ends if node.source))
    yield from (("code", code) for code in dict.fromkeys(node.code for node in ends))
    if len(culprit.nodes) == 1:
        yield "inputs", ", ".join(culprit.nodes[0].inputs)
    elif culprit.minimal:
        yield "", "they need each other: without any one of them it does not show"
    else:
        yield "", "fewer of them may do: not all were tried one by one"
    if culprit.place:
        yield "", f"within a block, at {'.'.join(map(str, culprit.place))}"
    yield "alone", f"{found.old}: {culprit.old}"
    often = f", {culprit.fails} of {culprit.runs} times" if culprit.runs > 1 else ""
    ratio = f" ({culprit.steady.words})" if culprit.steady is not None else ""
    yield "", f"{found.new}: {culprit.new}{ratio}{often}"
    yield "archive", _within(culprit.artifact, directory)


def _within(path: str, directory: str) -> str:
    return path if PurePath(path).is_absolute() else f"{directory}/{path}"


def _nodes_words(nodes: Sequence[TracedNode]) -> str:
    """Return ``aten::cos``, or ``38 nodes: aten::add.Tensor 13, aten::cos 13, aten::sin 12``."""
    if len(nodes) == 1:
        return nodes[0].operator
    often = Counter(node.operator for node in nodes).most_common()
    listed = [f"{name} {count}" if count > 1 else name for name, count in often]
    kinds = {0: "", 1: " kind"}.get(max(len(often) - MOST_NAMED, 0), " kinds")
    return f"{len(nodes)} nodes: {first_few(listed, MOST_NAMED)}{kinds}"


def rewrite_lines(rewrites: Sequence[Rewritten], *, old: str, new: str, directory: str) -> Lines:
    """Yield what each rewrite does and whether it fixes; of one rule only the quickest that fixes, else its first."""
    best: dict[str, Rewritten] = {}
    for item in rewrites:
        best[item.rule] = min(best.get(item.rule, item), item, key=lambda one: one.rank)
    told_in_full = False
    for item in rewrites:
        if not item.rule:
            yield "rewrite", f"{item.what}: {item.note}" if item.note else item.what
        if not item.rule or item is not best[item.rule]:
            continue
        yield "rewrite", f"{item.rule}: {'fixes' if item.fixes else 'does not fix'}: {item.what}"
        if item.nodes:
            source = f" ({item.nodes[0].source})" if len(item.nodes) == 1 and item.nodes[0].source else ""
            yield "", f"at {_nodes_words(item.nodes)}{source}"
        if not item.fixes:
            yield "", item.note
            continue
        yield "patched", _within(item.artifact, directory)
        cost = "" if item.steady is None else f"{price_words(fix_of_rewrite(item))} against {old}"
        if told_in_full:
            yield "", cost or "what it costs is not known"
            continue
        told_in_full = True
        yield "", f"{old}: loads it and answers as before"
        yield "", joined(f"{new}: passes in {counted(item.repeats, 'run')}", cost)
        if item.needs:
            yield "", f"needs: {item.needs}"


def mitigation_lines(mitigations: Sequence[Mitigation]) -> Lines:
    """Yield what was tried, in short: what mitigates with its price, then what does not and why."""
    for mitigation in mitigations:
        if mitigation.mitigates:
            priced = ", ".join(
                f"{COSTS[name]} {_change(name, price.to_old)}"
                for name in BRIEF
                if (price := mitigation.price_of(name)) is not None and price.to_old is not None
            )
            note = f" ({mitigation.note})" if mitigation.note else ""
            yield "mitigation", f"{mitigation.name}{f': {priced}' if priced else ''}{note}"
    in_vain: dict[str, list[str]] = {}
    for mitigation in mitigations:
        if not mitigation.mitigates and not mitigation.untestable:
            in_vain.setdefault(mitigation.note or "the symptom is still there", []).append(mitigation.name)
    yield from (("tried", f"{', '.join(names)}: {why}") for why, names in in_vain.items())
    yield from (
        ("untestable", f"{mitigation.name}: {mitigation.note}") for mitigation in mitigations if mitigation.untestable
    )


def mitigation_document(found: MitigationResult, *, directory: str) -> Document:
    """Return what ``mitigate`` found; ``directory`` is the run's as a reader types it."""
    mitigating = [mitigation for mitigation in found.mitigations if mitigation.mitigates]
    number = len(mitigating) + sum(rewrite.fixes for rewrite in found.rewrites)
    answer = counted(number, "mitigation") if found.answer is MitigationAnswer.FOUND else found.answer.value
    return Document(
        title="mitigate",
        verdict=Verdict(
            word=answer,
            tone=GOOD if found.answer is MitigationAnswer.FOUND else "",
            means=f"{found.model}, {found.old} -> {found.new}, {found.words}",
        ),
        parts=(
            Part(
                title="",
                blocks=(*_labelled(_tried(found, mitigating, directory)), *commands([("measure", found.measure)])),
            ),
            Part(
                title="Mitigations",
                blocks=tuple(_mitigated(at, mitigation) for at, mitigation in enumerate(mitigating, start=1)),
            ),
        ),
    )


def _tried(found: MitigationResult, mitigating: Sequence[Mitigation], directory: str) -> Lines:
    yield from (("symptom", text) for text in found.symptom[:3])
    yield from rewrite_lines(found.rewrites, old=found.old, new=found.new, directory=directory)
    yield from mitigation_lines([mitigation for mitigation in found.mitigations if not mitigation.mitigates])
    for mitigation in mitigating:
        if mitigation.note:
            yield "note", f"{mitigation.name}: {mitigation.note}"
        if not mitigation.minimal:
            yield "note", f"{mitigation.name}: a smaller set may do, which could not be tested"
    yield from (("note", note) for note in found.notes)
    yield "ended early", found.ended
    if mitigating:
        yield "costs", _legend(mitigating)
    yield "costs", found.price_note
    yield "written", f"{directory}/mitigate.json"


def _legend(mitigating: Sequence[Mitigation]) -> str:
    """Return what the costs are changes of, and how many processes told them."""
    pairs = [price.to_old.pairs for mitigation in mitigating for price in mitigation.prices if price.to_old is not None]
    if not pairs:
        return "no price was measured"
    return (
        "changes against the old release, and against the new one without the mitigation where that answers; means of "
        f"{counted(min(pairs), 'pair')} of fresh processes with their 95 % intervals"
    )


def _mitigated(number: int, mitigation: Mitigation) -> Part:
    """Return a mitigation, what it costs, and what to paste."""
    prices = [(name, price) for name in COSTS if (price := mitigation.price_of(name)) is not None]
    rows = tuple(
        Row(cells=(COSTS[name], _change(name, price.to_old), _change(name, price.to_new))) for name, price in prices
    )
    blocks: list[Block] = [Table(heads=("cost", "to old", "to new"), rows=rows)] if rows else []
    blocks += [
        Fact(words, mitigation.paste[way], ALWAYS, "command") for way, words in WAYS.items() if way in mitigation.paste
    ]
    without = [words for way, words in WAYS.items() if way not in mitigation.paste]
    if without and ENVIRONMENT not in mitigation.paste:  # which every server has
        blocks += facts([("no way", f"known: {', '.join(without)}")])
    times = f"{mitigation.repeats} clean runs" if mitigation.repeats > 1 else ""
    return Part(title=mitigation.name, word=str(number), detail=times, blocks=tuple(blocks))


def _change(name: str, ratio: RatioEstimate | None) -> str:
    """Return a cost with its interval."""
    if ratio is None:
        return "-"
    return (ratio.inverse if name == "request" else ratio).words
