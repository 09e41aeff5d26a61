"""All calls of one model: the golden against the probe, with the old side's own noise and a float64 reference."""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeAlias

from harness.domain.comparison import CallComparison, OutputComparison, TensorMetrics, TreeDifference
from harness.numerics.decode import Buffer, Decoded, DecodeError, Spec, decode
from harness.numerics.metrics import largest_difference, same_bits, tensor_metrics
from harness.numerics.structure import LeafPair, Tree, TreeWalk, leaves, walk_trees

CallKey: TypeAlias = tuple[str, int]  # (input set, call)
NoiseKey: TypeAlias = tuple[str, str]  # (input set, path)
Identity: TypeAlias = tuple[object, ...]


@dataclass(frozen=True, slots=True)
class Outputs:
    """What one process answered.

    Attributes:
        calls: (input set, call) to output tree, in the order of the calls.
        buffer: the bytes that the trees' offsets point into; nothing keeps a view of it afterwards.
    """

    calls: Mapping[CallKey, Tree]
    buffer: Buffer = b""


@dataclass(frozen=True, slots=True)
class OldNoise:
    """What repeats of the old environment make of each other.

    Attributes:
        largest: per (input set, path) the largest |difference| between a repeat's call and the same call of the
            golden, over all calls of the set; absent where no repeat has the leaf in the same shape.
        unstable: paths that differ in any bit or in structure, sorted.
    """

    largest: Mapping[NoiseKey, float]
    unstable: tuple[str, ...]


def compare_outputs(
    model: str,
    scenario: str,
    golden: Outputs,
    probe: Outputs,
    *,
    repeats: Sequence[Outputs] = (),
    reference: Outputs | None = None,
    computes_in: str | None = None,
) -> OutputComparison:
    """Return every difference between the calls of the golden and those of the probe.

    Args:
        model, scenario: copied into the result.
        golden: the old artifact in the old environment.
        probe: the artifact in the environment under test.
        repeats: further runs of the old environment with the same inputs; they give noise and unstable leaves.
        reference: the float64 run. A call without its like there has no reference: a stateful model answers
            otherwise at every call.
        computes_in: see ``tolerance_for``.

    Returns:
        One ``CallComparison`` per call of the golden that the probe has too, in the golden's order, then one per call
        that only the probe has, with a single difference that says so. Calls that only the golden has are
        ``missing_calls``.

    Raises:
        DecodeError: a record is damaged: our fault or the worker's, never a finding about the model.
        ValueError: ``computes_in`` names no dtype.
    """
    noise = old_noise(golden, repeats)
    comparer = _Comparer(golden, probe, reference, noise, computes_in)
    shared = [key for key in golden.calls if key in probe.calls]
    return OutputComparison(
        model=model,
        scenario=scenario,
        calls=(
            *(comparer.call(key) for key in shared),
            *(_extra_call(key) for key in probe.calls if key not in golden.calls),
        ),
        missing_calls=tuple(key for key in golden.calls if key not in probe.calls),
        unstable=noise.unstable,
    )


def same_answers(one: Outputs, other: Outputs) -> bool:
    """Whether two processes of one environment answered the same bits everywhere; where the bytes lie is no matter."""
    return one.calls.keys() == other.calls.keys() and all(
        _without_offsets(tree) == _without_offsets(other.calls[key]) for key, tree in one.calls.items()
    )


def _without_offsets(tree: Tree) -> object:
    if isinstance(tree, dict):
        return {key: value for key, value in tree.items() if key != "offset"}
    return [_without_offsets(item) for item in tree] if isinstance(tree, list) else tree


def old_noise(golden: Outputs, repeats: Sequence[Outputs]) -> OldNoise:
    """Return how far repeats of the old environment lie from the golden, which is one of them.

    Raises:
        DecodeError: a record is damaged.
    """
    largest: dict[NoiseKey, float] = {}
    unstable: set[str] = set()
    for repeat in repeats:
        for key in (key for key in golden.calls if key in repeat.calls):
            walk = walk_trees(golden.calls[key], repeat.calls[key])
            unstable.update(difference.path for difference in walk.differences)
            for pair in walk.pairs:
                distance = _repeat_distance(pair, golden.buffer, repeat.buffer, key)
                if distance is not None:
                    unstable.add(pair.path)
                place = (key[0], pair.path)
                largest[place] = max(largest.get(place, 0.0), distance or 0.0)
    return OldNoise(largest=largest, unstable=tuple(sorted(unstable)))


@dataclass(frozen=True, slots=True)
class _Comparer:
    """Compares call by call and remembers: from call 1 on, the bytes are mostly those of a call before."""

    golden: Outputs
    probe: Outputs
    reference: Outputs | None
    noise: OldNoise
    computes_in: str | None
    known: dict[Identity, TensorMetrics] = field(default_factory=dict)
    reference_leaves: dict[CallKey, dict[str, Spec]] = field(default_factory=dict)

    def call(self, key: CallKey) -> CallComparison:
        walk: TreeWalk = walk_trees(self.golden.calls[key], self.probe.calls[key])
        return CallComparison(
            input_set=key[0],
            call=key[1],
            tree=tuple(walk.differences),
            tensors=tuple(self.tensor(pair, key) for pair in walk.pairs),
            stride_changes=tuple(walk.stride_changes),
            opaque=tuple(walk.opaque),
        )

    def tensor(self, pair: LeafPair, key: CallKey) -> TensorMetrics:
        expected, actual = _identity(pair.expected), _identity(pair.actual)
        noise = self.noise.largest.get((key[0], pair.path))
        # Where bytes are equal the reference is not looked at.
        reference = None if expected is not None and expected == actual else self.reference_spec(pair.path, key)
        truth = _identity(reference)
        if expected is None or actual is None or (truth is None and reference is not None):
            return self.measure(pair, key, noise, reference)
        identity = (pair.path, noise, expected, actual, truth)
        found = self.known.get(identity)
        if found is None:
            found = self.known[identity] = self.measure(pair, key, noise, reference)
        return found

    def measure(self, pair: LeafPair, key: CallKey, noise: float | None, reference: Spec | None) -> TensorMetrics:
        golden = _decode(pair.expected, self.golden.buffer, key, pair.path)
        probe = _decode(pair.actual, self.probe.buffer, key, pair.path)
        truth = None
        if reference is not None and self.reference is not None and not same_bits(golden, probe):
            truth = _decode(reference, self.reference.buffer, key, pair.path)
        return tensor_metrics(pair.path, golden, probe, computes_in=self.computes_in, noise=noise, reference=truth)

    def reference_spec(self, path: str, key: CallKey) -> Spec | None:
        if self.reference is None:
            return None
        if key not in self.reference.calls:
            return None
        if key not in self.reference_leaves:
            self.reference_leaves[key] = dict(leaves(self.reference.calls[key]))
        return self.reference_leaves[key].get(path)


def _repeat_distance(pair: LeafPair, golden: Buffer, repeat: Buffer, key: CallKey) -> float | None:
    """Return the largest difference of a leaf between two old runs, or None where not a bit differs."""
    expected = _identity(pair.expected)
    if expected is not None and expected == _identity(pair.actual):
        return None
    one, other = _decode(pair.expected, golden, key, pair.path), _decode(pair.actual, repeat, key, pair.path)
    return None if same_bits(one, other) else largest_difference(one, other)


def _identity(spec: Spec | None) -> Identity | None:
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


def _decode(spec: Spec, buffer: Buffer, key: CallKey, path: str) -> Decoded:
    try:
        return decode(spec, buffer)
    except DecodeError as error:
        raise DecodeError(f"{key[0]} call {key[1]} {path}: {error}") from error


def _extra_call(key: CallKey) -> CallComparison:
    difference = TreeDifference(path="output", kind="structure", expected="no such call", actual=f"call {key[1]}")
    return CallComparison(input_set=key[0], call=key[1], tree=(difference,))


def tensors_compared(comparison: OutputComparison) -> Iterator[TensorMetrics]:
    """Yield the metrics of every tensor of every call."""
    for call in comparison.calls:
        yield from call.tensors
