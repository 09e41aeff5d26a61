"""Which rewrites are tried, in which order; pure."""

from collections.abc import Iterable, Sequence

from harness.core.diagnosis import Edit, Place, RefusedNode, TracedNode

FENCE = "fence"
CUT = "cut-branch"
# From so many nodes on it is how they are executed together: fences are tried before rules for single operators.
LONG = 5
# Into how many pieces fences part the nodes of a group. A fence is cheap, and one too few costs the deadline of a hang.
PIECES = (4, 12)
MOST_ATTEMPTS = 6


def attempts(groups: Sequence[Sequence[TracedNode]], fits: Sequence[Edit]) -> tuple[tuple[Edit, ...], ...]:
    """Return the sets of edits to try: each takes every group, because each group alone shows the symptom.

    ``fits``: which rule fits which node; fences also of the nodes beside them in the same block.
    """
    ways = [way for group in groups if (way := _ways([node.address for node in group], fits))]
    most = min(MOST_ATTEMPTS, max(map(len, ways), default=0))
    plans: dict[tuple[Edit, ...], None] = {}
    for number in range(most):
        edits = [edit for way in ways for edit in way[min(number, len(way) - 1)]]
        plans[tuple({address: (rule, address) for rule, address in edits}.values())] = None
    return tuple(plans)


def _ways(addresses: Sequence[Place], fits: Sequence[Edit]) -> list[list[Edit]]:
    wanted = dict.fromkeys(addresses)
    rules: dict[str, list[Edit]] = {}
    for rule, address in fits:
        if address in wanted and rule not in (FENCE, CUT):
            rules.setdefault(rule, []).append((rule, address))
    single = sorted(rules.values(), key=len, reverse=True)
    if len(wanted) == 1:  # by itself it is nothing that a fuser could join
        return single
    blocks = {address[:-1] for address in wanted}
    fenced = [address for rule, address in fits if rule == FENCE and address[:-1] in blocks]
    return [*_fences(fenced, len(wanted)), *single] if len(wanted) >= LONG else [*single, *_fences(fenced, len(wanted))]


def _fences(addresses: Sequence[Place], together: int) -> list[list[Edit]]:
    """Return fences at ever smaller distances: so many nodes show it anywhere, so no such stretch is left whole."""
    steps = dict.fromkeys(max(1, together // pieces) for pieces in (*PIECES, together))
    sets = [[(FENCE, address) for address in addresses[step - 1 :: step]] for step in steps]
    return [edits for edits in sets if edits]


def edits_of_refused(nodes: Sequence[RefusedNode], fits: Sequence[Edit], *, cut_first: bool) -> tuple[Edit, ...]:
    """Return an equivalent or a cut per refused node; ``cut_first``: branches are cut despite an equivalent."""
    rules = {address: rule for rule, address in reversed(fits) if rule not in (FENCE, CUT)}
    cuts = {
        node.branch_address: node.address
        for node in nodes
        if node.branch_address is not None and (cut_first or node.address not in rules)
    }
    outermost = {way: address for way, address in cuts.items() if not _within(way, cuts)}
    kept = [node.address for node in nodes if not any(node.address[: len(way)] == way for way in outermost)]
    return (
        *((CUT, address) for address in outermost.values()),
        *((rules[address], address) for address in kept if address in rules),
    )


def _within(way: Place, ways: Iterable[Place]) -> bool:
    return any(len(other) < len(way) and way[: len(other)] == other for other in ways)
