"""What became of the rewrites of a model, as lines of (label, text)."""

import math
from collections.abc import Iterator, Sequence

from harness.domain.divergence import TracedNode
from harness.domain.rewriting import Rewritten
from harness.render.reduction_text import nodes_words
from harness.render.words import counted, prose

MOST_NAMED = 4


def rewrite_lines(rewrites: Sequence[Rewritten], *, old: str, new: str, directory: str) -> Iterator[tuple[str, str]]:
    """Yield what each rewrite does and whether it cures, in their order; of one rule only the best.

    Args:
        old, new: names of the releases.
        directory: of the run, as a reader types it.
    """
    told = False
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
        yield "patched", f"{directory}/{item.artifact}"
        if told:  # all that is to know of it beside the first one
            yield "", _price(item, old) or "its time is not known"
            continue
        told = True
        yield "", f"{old}: loads it and answers as before"
        yield "", "; ".join(filter(None, [f"{new}: passes in {counted(item.repeats, 'run')}", _price(item, old)]))
        if item.needs:
            yield "", f"needs: {prose(item.needs)}"


def _best_of_each(rewrites: Sequence[Rewritten]) -> list[Rewritten]:
    """Return of each rule the quickest that cures, else its first one; what has no rule stays."""
    best: dict[str, Rewritten] = {}
    for item in rewrites:
        best[item.rule] = min(best.get(item.rule, item), item, key=_rank)
    return [item for item in rewrites if not item.rule or item is best[item.rule]]


def _rank(item: Rewritten) -> tuple[bool, float]:
    return not item.cures, math.inf if item.ratio is None else item.ratio


def _price(item: Rewritten, old: str) -> str:
    return "" if item.ratio is None else f"a steady call takes x {item.ratio:.2f} of the time in {old}"


def _nodes(nodes: Sequence[TracedNode]) -> str:
    """Return ``aten::gelu (model.py:12)``, or how many of which operators."""
    source = f" ({nodes[0].source})" if len(nodes) == 1 and nodes[0].source else ""
    return f"{nodes_words(nodes, MOST_NAMED)}{source}"
