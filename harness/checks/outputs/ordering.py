"""Outputs in any order: which new row is which golden row, where a model declares that order is no part of its answer.

A declared path names a tensor, whose rows (along the first axis) may stand in any order, or a container of tensors with
equally many rows, such as ``{"boxes", "scores", "labels"}``, whose rows move together; or a list of plain values.
``[*]`` stands for any step in brackets.
"""

import json
import re
from collections.abc import Iterable, Sequence
from dataclasses import replace
from functools import cache
from typing import Any

import numpy as np
import numpy.typing as npt

from harness.artifacts.tensors.decode import Array, Decoded
from harness.artifacts.tensors.trees import PLAIN_KINDS, LeafPair, Tree, children
from harness.checks.outputs import elementwise
from harness.checks.outputs.metrics import in_units_of, same_bits
from harness.checks.outputs.tolerances import Precision, tolerance_for

Permutation = npt.NDArray[np.intp]

# Comparisons that may be made to find each row's partner: rows x rows x columns. Above that, both sides are sorted.
MOST_COMPARISONS = 1 << 27


def unordered_groups(pairs: Iterable[LeafPair], declared: Sequence[str]) -> dict[str, list[LeafPair]]:
    """Return the leaves whose rows move together, by the path of what was declared, for every path that matches."""
    groups: dict[str, list[LeafPair]] = {}
    for pair in pairs:
        group = next((match[0] for pattern in declared if (match := _regex(pattern).match(pair.path))), None)
        if group is not None:
            groups.setdefault(group, []).append(pair)
    return groups


def is_found(pattern: str, paths: Iterable[str]) -> bool:
    """Whether a declared path names anything among ``paths``."""
    return any(_regex(pattern).match(path) for path in paths)


@cache
def _regex(pattern: str) -> re.Pattern[str]:
    return re.compile(re.escape(pattern).replace(r"\[\*\]", r"\[[^\]]*\]") + r"(?=[.\[]|\Z)")


def with_sorted_plain(tree: Tree, declared: Sequence[str], path: str = "output") -> Tree:
    """Return the tree with declared lists of plain values sorted by their text; tensors stay where they are."""
    kind, value = tree
    if kind not in ("list", "tuple", "dict", "namedtuple"):
        return tree
    if kind in ("list", "tuple"):
        if any(_regex(pattern).fullmatch(path) for pattern in declared) and all(
            item[0] in (*PLAIN_KINDS, "float", "complex") for item in value
        ):
            return [kind, sorted(value, key=lambda item: json.dumps(item, sort_keys=True))]
        return [kind, [with_sorted_plain(item, declared, path + f"[{index}]") for index, item in enumerate(value)]]
    steps = [step for step, _ in children(kind, value, path)]
    entries = value if kind == "dict" else value[1]
    below = [
        [name, with_sorted_plain(item, declared, path + step)]
        for (name, item), step in zip(entries, steps, strict=True)
    ]
    return [kind, below if kind == "dict" else [value[0], below]]


def matching(sides: Sequence[tuple[Decoded, Decoded]], *, precision: Precision = None) -> Permutation | None:
    """Return which row of the new side is that of each golden row, over all tensors of a group at once.

    As many rows as can be are paired within tolerance, equal ones first, and those in their place before others; the
    rest take the nearest row that is left. So near ties in another order cost nothing, and a wrong row shows.

    Args:
        sides: (golden, new) per tensor.

    Returns:
        Indices of new rows; None where the order is the golden one, or where rows cannot be told: no first axis,
        different numbers of rows, or a quantizer per channel.
    """
    if not sides or any(
        _has_no_rows(expected) or expected.values.shape != other.values.shape for expected, other in sides
    ):
        return None
    rows = sides[0][0].values.shape[0]
    if rows < 2 or any(old.values.shape[0] != rows for old, _ in sides):
        return None
    if all(same_bits(old, new) for old, new in sides):
        return None
    columns = sum(old.values.size for old, _ in sides) // rows
    if rows * rows * max(columns, 1) > MOST_COMPARISONS:
        old, new = (_sorting_order([side[index] for side in sides]) for index in (0, 1))
        partner = np.empty(rows, dtype=np.intp)
        partner[old] = new
    else:
        partner = _assigned(_distances(sides, rows, precision))
    return None if np.array_equal(partner, np.arange(rows)) else partner


def reordered(tensor: Decoded, order: Permutation) -> Decoded:
    return replace(tensor, raw=tensor.raw[order], values=tensor.values[order], sha256=None)


def _has_no_rows(tensor: Decoded) -> bool:
    return tensor.values.ndim == 0 or tensor.plain or (tensor.scales is not None and tensor.scales.ndim > 0)


def _columns(values: Array) -> Array:
    parts = elementwise.parts_of(elementwise.widen(values))
    return parts.reshape(values.shape[0], -1)


@np.errstate(all="ignore")
def _distances(sides: Sequence[tuple[Decoded, Decoded]], rows: int, precision: Precision) -> Array:
    """Return the largest difference of any two rows in tolerances: up to 1 they may be the same row."""
    farthest = np.zeros((rows, rows))
    for expected, actual in sides:
        golden, new = in_units_of(expected, expected), in_units_of(actual, expected)
        tolerance = tolerance_for(expected.dtype, precision, elementwise.largest_magnitude(golden))
        for old_column, new_column in zip(_columns(golden).T, _columns(new).T, strict=True):
            apart = np.abs(old_column[:, None] - new_column[None, :])
            apart[(old_column[:, None] == new_column[None, :])] = 0.0  # the same infinity
            apart[np.isnan(old_column)[:, None] & np.isnan(new_column)[None, :]] = 0.0
            scaled = np.where(apart == 0.0, 0.0, apart / tolerance if tolerance else np.inf)
            np.maximum(farthest, np.nan_to_num(scaled, nan=np.inf, posinf=np.inf), out=farthest)
    return farthest


def _assigned(distances: Array) -> Permutation:
    rows = len(distances)
    partner = np.full(rows, -1, dtype=np.intp)  # of each golden row
    owner = np.full(rows, -1, dtype=np.intp)  # of each new row
    for row in np.flatnonzero(distances.diagonal() == 0.0):
        partner[row] = owner[row] = row
    for row in np.flatnonzero(partner < 0):
        free = np.flatnonzero((distances[row] == 0.0) & (owner < 0))
        if free.size:
            partner[row], owner[free[0]] = free[0], row
    for row in np.flatnonzero(distances.diagonal() <= 1.0):
        if partner[row] < 0 and owner[row] < 0:
            partner[row] = owner[row] = row
    for row in np.flatnonzero(partner < 0):
        _augment(int(row), distances, partner, owner)
    for row in np.flatnonzero(partner < 0):
        free = np.flatnonzero(owner < 0)
        nearest = free[np.argmin(distances[row, free])]
        partner[row], owner[nearest] = nearest, row
    return partner


def _augment(start: int, distances: Array, partner: Permutation, owner: Permutation) -> None:
    """Find a partner within tolerance for one more row, moving others to partners of theirs where need be."""
    came_from: dict[int, int] = {}
    queue = [start]
    for row in queue:  # it grows: breadth first
        for candidate in np.argsort(distances[row], kind="stable"):
            column = int(candidate)
            if distances[row, column] > 1.0:
                break
            if column in came_from:
                continue
            came_from[column] = row
            if owner[column] >= 0:
                queue.append(int(owner[column]))
                continue
            while True:
                taker = came_from[column]
                left = int(partner[taker])
                partner[taker], owner[column] = column, taker
                if taker == start:
                    return
                column = left


def _sorting_order(tensors: Sequence[Decoded]) -> Permutation:
    keys: list[Any] = [column for tensor in tensors for column in _columns(tensor.values).T]
    return np.asarray(np.lexsort(keys[::-1]), dtype=np.intp)
