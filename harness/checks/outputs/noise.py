"""The old side's own noise: how far its repeats, and its runs with other thread counts, are from the golden."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from harness.artifacts.tensors.decode import Buffer
from harness.artifacts.tensors.outputs import CallKey, Outputs
from harness.artifacts.tensors.trees import LeafPair
from harness.checks.outputs import ordering
from harness.checks.outputs.metrics import largest_difference, same_bits
from harness.checks.outputs.paired_calls import Identity, decoded, identity_of, orders_of, walks_of
from harness.checks.outputs.tolerances import Precision

NoiseKey: TypeAlias = tuple[str, str]  # (input set, path)


@dataclass(frozen=True, slots=True)
class OldNoise:
    """What repeats of the old environment make of each other.

    Attributes:
        largest: per (input set, path) the largest |difference| between a repeat's call and the same call of the
            golden, over all calls of the set.
        unlisted: that of other leaves: 0 where a repeat is the golden; else None, for no repeat has them in that shape.
        unstable: paths that differ in any bit or in structure, sorted.
    """

    largest: Mapping[NoiseKey, float]
    unstable: tuple[str, ...]
    unlisted: float | None = None

    def of(self, input_set: str, path: str) -> float | None:
        """Return the largest difference of a leaf, None where it is not known."""
        return self.largest.get((input_set, path), self.unlisted)


def old_noise(
    golden: Outputs,
    repeats: Sequence[Outputs],
    other_threads: Sequence[Outputs] = (),
    *,
    unordered: Sequence[str] = (),
    precision: Precision = None,
) -> OldNoise:
    """Return how far repeats and runs with other thread counts lie from the golden. Raises ``DecodeError``."""
    largest: dict[NoiseKey, float] = {}
    unstable: set[str] = set()
    known: dict[tuple[Identity, Identity], float | None] = {}
    runs = (*repeats, *other_threads)
    for index, repeat in enumerate(runs):
        if repeat is golden:
            continue
        differing: set[str] = set()
        for key in (key for key in golden.calls if key in repeat.calls):
            walks = walks_of(golden, repeat, key, unordered)
            orders = orders_of(walks[0], golden, repeat, key, unordered=unordered, precision=precision)
            differing.update(difference.path for walk in walks for difference in walk.differences)
            for pair in (pair for walk in walks for pair in walk.pairs):
                buffers = golden.buffer, repeat.buffer
                distance = _repeat_distance(pair, buffers, key, orders.get(pair.path), known)
                if distance is not None:
                    differing.add(pair.path)
                place = (key[0], pair.path)
                largest[place] = max(largest.get(place, 0.0), distance or 0.0)
        unstable |= differing if index < len(repeats) else set()  # other threads may add in another order
    unlisted = 0.0 if any(run is golden for run in runs) else None
    return OldNoise(largest=largest, unstable=tuple(sorted(unstable)), unlisted=unlisted)


def _repeat_distance(
    pair: LeafPair,
    buffers: tuple[Buffer, Buffer],
    key: CallKey,
    order: ordering.Permutation | None,
    known: dict[tuple[Identity, Identity], float | None],
) -> float | None:
    """Return a leaf's largest difference between two old runs, None if bit-equal; ``known`` remembers bytes."""
    expected, actual = identity_of(pair.expected), identity_of(pair.actual)
    if expected is not None and expected == actual:
        return None
    if expected is None or actual is None or order is not None:
        return _measured(pair, buffers, key, order)
    if (expected, actual) not in known:
        known[expected, actual] = _measured(pair, buffers, key, order)
    return known[expected, actual]


def _measured(
    pair: LeafPair, buffers: tuple[Buffer, Buffer], key: CallKey, order: ordering.Permutation | None
) -> float | None:
    golden, repeat = buffers
    first, other = decoded(pair.expected, golden, key, pair.path), decoded(pair.actual, repeat, key, pair.path)
    other = other if order is None else ordering.reordered(other, order)
    return None if same_bits(first, other) else largest_difference(first, other)
