"""Rewrites of guilty nodes that were tried, in lines: what each does, whether it cures, its file and what it costs."""

from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import PurePath

from harness.core.diagnosis import Rewritten, TracedNode
from harness.core.text import counted, first_few, prose

MOST_REWRITES_NAMED = 4


def rewrite_lines(rewrites: Sequence[Rewritten], *, old: str, new: str, directory: str) -> Iterator[tuple[str, str]]:
    """Yield what each rewrite does and whether it cures, in their order; of one rule only the best.

    Args:
        old, new: names of the releases.
        directory: of the run, as a reader types it.
    """
    first_shown = False
    for item in _best_of_each(rewrites):
        if not item.rule:
            yield "rewrite", prose(f"{item.what}: {item.note}" if item.note else item.what)
            continue
        yield "rewrite", prose(f"{item.rule}: {'cures' if item.cures else 'does not cure'}: {item.what}")
        if item.nodes:
            yield "", f"at {_nodes(item.nodes)}"
        if not item.cures:
            yield "", prose(item.note)
            continue
        yield "patched", item.artifact if PurePath(item.artifact).is_absolute() else f"{directory}/{item.artifact}"
        if first_shown:  # all that is to know of it beside the first one
            yield "", _cost(item, old) or "what it costs is not known"
            continue
        first_shown = True
        yield "", f"{old}: loads it and answers as before"
        yield "", "; ".join(filter(None, [f"{new}: passes in {counted(item.repeats, 'run')}", _cost(item, old)]))
        if item.needs:
            yield "", f"needs: {prose(item.needs)}"


def _best_of_each(rewrites: Sequence[Rewritten]) -> list[Rewritten]:
    """Return of each rule the quickest that cures, else its first one; what has no rule stays."""
    best: dict[str, Rewritten] = {}
    for item in rewrites:
        best[item.rule] = min(best.get(item.rule, item), item, key=lambda one: one.rank)
    return [item for item in rewrites if not item.rule or item is best[item.rule]]


def _cost(item: Rewritten, old: str) -> str:
    return "" if item.steady is None else f"steady latency {item.steady.words} against {old}"


def nodes_words(nodes: Sequence[TracedNode], most: int) -> str:
    """Return ``aten::cos``, or ``38 nodes: aten::add.Tensor 13, aten::cos 13, aten::sin 12``: ``most`` kinds."""
    if len(nodes) == 1:
        return nodes[0].operator
    often = Counter(node.operator for node in nodes).most_common()
    listed = [f"{name} {count}" if count > 1 else name for name, count in often]
    kinds = {0: "", 1: " kind"}.get(max(len(often) - most, 0), " kinds")
    return f"{len(nodes)} nodes: {first_few(listed, most)}{kinds}"


def _nodes(nodes: Sequence[TracedNode]) -> str:
    """Return ``aten::gelu (model.py:12)``, or how many of which operators."""
    source = f" ({nodes[0].source})" if len(nodes) == 1 and nodes[0].source else ""
    return f"{nodes_words(nodes, MOST_REWRITES_NAMED)}{source}"
