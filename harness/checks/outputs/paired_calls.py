"""One call in two processes: pairs the leaves of their output trees, finds reordered rows, and reads leaves."""

import json
from collections.abc import Sequence
from typing import TypeAlias

from harness.artifacts.tensors.decode import Buffer, Decoded, DecodeError, Spec, decode
from harness.artifacts.tensors.outputs import NOTHING, CallKey, Outputs
from harness.artifacts.tensors.trees import TreeWalk, walk_trees
from harness.checks.outputs import ordering
from harness.checks.outputs.tolerances import Precision

Identity: TypeAlias = tuple[object, ...]


def walks_of(golden: Outputs, other: Outputs, key: CallKey, unordered: Sequence[str]) -> list[TreeWalk]:
    """Return the walk over the outputs of one call, and over every input that it changed in both."""
    trees = [side.calls[key] for side in (golden, other)]
    if unordered:
        trees = [ordering.with_sorted_plain(tree, unordered) for tree in trees]
    walks = [walk_trees(*trees)]
    changed, also = ((side.effects or {}).get(key, NOTHING).changed for side in (golden, other))
    return walks + [walk_trees(changed[path], also[path], path) for path in changed if path in also]


def orders_of(
    walk: TreeWalk,
    golden: Outputs,
    probe: Outputs,
    key: CallKey,
    *,
    unordered: Sequence[str],
    precision: Precision,
) -> dict[str, ordering.Permutation]:
    """Return, by path, which rows of the probe are those of the golden, where that is another order."""
    orders: dict[str, ordering.Permutation] = {}
    for pairs in ordering.unordered_groups(walk.pairs, unordered).values():
        if any("full" in pair.expected for pair in pairs):  # a sample has no rows
            continue
        sides = [
            (decoded(pair.expected, golden.buffer, key, pair.path), decoded(pair.actual, probe.buffer, key, pair.path))
            for pair in pairs
        ]
        order = ordering.matching(sides, precision=precision)
        if order is not None:
            orders |= {pair.path: order for pair in pairs}
    return orders


def identity_of(spec: Spec | None) -> Identity | None:
    """Return what makes two wire tensors the same numbers, or None where only the bytes can tell."""
    if spec is None:
        return None
    if "plain" in spec:
        # As text, because NaN is not equal to itself and -0.0 is equal to 0.0.
        return ("plain", spec["dtype"], repr(spec["plain"]))
    if not spec.get("sha256"):
        return None
    quantizer = spec.get("quantizer")
    scheme = None if quantizer is None else json.dumps(quantizer, sort_keys=True)
    return (spec["sha256"], spec["dtype"], tuple(spec["shape"]), scheme)


def decoded(spec: Spec, buffer: Buffer, key: CallKey, path: str) -> Decoded:
    """Return a leaf of one call. Raises ``DecodeError``, which says in which call and where in its answer."""
    try:
        return decode(spec, buffer)
    except DecodeError as error:
        raise DecodeError(f"{key[0]} call {key[1]} {path}: {error}") from error
