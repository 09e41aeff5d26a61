"""Compares all calls of one model: golden against probe, with the old release's noise and a float64 reference."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from harness.artifacts.tensors.decode import Buffer, Spec, decode, plain_number
from harness.artifacts.tensors.outputs import NOTHING, CallKey, Outputs, only_in
from harness.artifacts.tensors.trees import LeafPair, Tree, every_path, leaves
from harness.checks.outputs import ordering
from harness.checks.outputs.metrics import same_bits, tensor_metrics
from harness.checks.outputs.noise import OldNoise, old_noise
from harness.checks.outputs.paired_calls import Identity, decoded, identity_of, orders_of, walks_of
from harness.checks.outputs.tolerances import Precision
from harness.core.comparison import CallComparison, OutputComparison, TensorMetrics, TreeDifference


def compare_outputs(
    model: str,
    scenario: str,
    golden: Outputs,
    probe: Outputs,
    *,
    repeats: Sequence[Outputs] = (),
    reference: Outputs | None = None,
    precision: Precision = None,
    unordered: Sequence[str] = (),
    other_threads: Sequence[Outputs] = (),
) -> OutputComparison:
    """Return every difference between the calls of the golden and those of the probe.

    Args:
        repeats: further runs of the old environment with the same inputs; they give noise and unstable leaves.
        reference: the float64 run. A call without its like there has no reference: a stateful model answers
            otherwise at every call.
        other_threads: runs of the old environment with other thread counts; they give noise and make nothing unstable.
        unordered: paths whose order is no part of the answer, see ``harness/checks/outputs/ordering.py``.

    Returns:
        One ``CallComparison`` per call of the golden that the probe has too, in the golden's order, then one per call
        that only the probe has, with a single difference that says so. Calls that only the golden has are
        ``missing_calls``.

    Raises:
        DecodeError: a record is damaged: our fault or the worker's, never a finding about the model.
        ValueError: ``precision`` names no dtype.
    """
    noise = old_noise(golden, repeats, other_threads, unordered=unordered, precision=precision)
    comparer = _Comparer(golden, probe, reference, noise, precision, tuple(unordered))
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
        unordered_missing=_missing(unordered, golden),
    )


def _missing(unordered: Sequence[str], golden: Outputs) -> tuple[str, ...]:
    if not unordered or not golden.calls:
        return ()
    paths = [path for tree in golden.calls.values() for path in every_path(tree)]
    return tuple(pattern for pattern in unordered if not ordering.is_found(pattern, paths))


@dataclass(frozen=True, slots=True)
class _Comparer:
    """Compares call by call and remembers: from call 1 on, the bytes are mostly those of a call before."""

    golden: Outputs
    probe: Outputs
    reference: Outputs | None
    noise: OldNoise
    precision: Precision
    unordered: tuple[str, ...] = ()
    known: dict[Identity, TensorMetrics] = field(default_factory=dict)
    reference_leaves: dict[CallKey, dict[str, Spec]] = field(default_factory=dict)

    def call(self, key: CallKey) -> CallComparison:
        walks = walks_of(self.golden, self.probe, key, self.unordered)
        orders = orders_of(walks[0], self.golden, self.probe, key, unordered=self.unordered, precision=self.precision)
        pairs = [pair for walk in walks for pair in walk.pairs]
        kept = (self.unless_equal(pair, key, orders.get(pair.path)) for pair in pairs)
        tensors = tuple(tensor for tensor in kept if tensor is not None)
        call = CallComparison(
            input_set=key[0],
            call=key[1],
            tree=tuple(difference for walk in walks for difference in walk.differences),
            tensors=tensors,
            equal=len(pairs) - len(tensors),
            stride_changes=tuple(change for walk in walks for change in walk.stride_changes),
            opaque=tuple(path for walk in walks for path in walk.opaque),
        )
        return self.with_side_effects(call, key)

    def with_side_effects(self, call: CallComparison, key: CallKey) -> CallComparison:
        if self.golden.effects is None or self.probe.effects is None:
            return call
        old, new = self.golden.effects.get(key, NOTHING), self.probe.effects.get(key, NOTHING)
        return replace(
            call,
            inputs_changed=tuple(path for path in old.changed if path in new.changed),
            inputs_changed_old=tuple(path for path in old.changed if path not in new.changed),
            inputs_changed_new=tuple(path for path in new.changed if path not in old.changed),
            aliases_old=only_in(old, new),
            aliases_new=only_in(new, old),
        )

    def unless_equal(self, pair: LeafPair, key: CallKey, order: ordering.Permutation | None) -> TensorMetrics | None:
        """Return a leaf's numbers, None where equal (there may be 200,000); of samples others know the rest."""
        is_sample = "full" in pair.expected or "full" in pair.actual
        identity = identity_of(pair.expected)
        if order is None and not is_sample and identity is not None and identity == identity_of(pair.actual):
            return None
        metrics = self.tensor(pair, key, order)
        return None if metrics.bit_equal and not metrics.moved_rows and not is_sample else metrics

    def tensor(self, pair: LeafPair, key: CallKey, order: ordering.Permutation | None) -> TensorMetrics:
        expected, actual = identity_of(pair.expected), identity_of(pair.actual)
        noise = self.noise.of(key[0], pair.path)
        if order is not None:  # the reference has an order of its own
            return self.measure(pair, key, noise, None, order)
        reference = self.reference_spec(pair.path, key)
        truth = identity_of(reference)
        if expected is None or actual is None or (truth is None and reference is not None):
            return self.measure(pair, key, noise, reference)
        identity = (pair.path, noise, expected, actual, truth)
        metrics = self.known.get(identity)
        if metrics is None:
            metrics = self.known[identity] = self.measure(pair, key, noise, reference)
        return metrics

    def measure(
        self,
        pair: LeafPair,
        key: CallKey,
        noise: float | None,
        reference: Spec | None,
        order: ordering.Permutation | None = None,
    ) -> TensorMetrics:
        golden = decoded(pair.expected, self.golden.buffer, key, pair.path)
        probe = decoded(pair.actual, self.probe.buffer, key, pair.path)
        truth = None
        if reference is not None and self.reference is not None and not same_bits(golden, probe):
            truth = decoded(reference, self.reference.buffer, key, pair.path)
        if order is not None:
            probe = ordering.reordered(probe, order)
        metrics = tensor_metrics(pair.path, golden, probe, precision=self.precision, noise=noise, reference=truth)
        moved = 0 if order is None else int(np.count_nonzero(order != np.arange(len(order))))
        return replace(metrics, moved_rows=moved) if moved else metrics

    def reference_spec(self, path: str, key: CallKey) -> Spec | None:
        if self.reference is None:
            return None
        if key not in self.reference.calls:
            return None
        if key not in self.reference_leaves:
            self.reference_leaves[key] = dict(leaves(self.reference.calls[key]))
        return self.reference_leaves[key].get(path)


def _extra_call(key: CallKey) -> CallComparison:
    difference = TreeDifference(path="output", kind="structure", expected="no such call", actual=f"call {key[1]}")
    return CallComparison(input_set=key[0], call=key[1], tree=(difference,))


def hold_value(outputs: Outputs) -> bool:
    """Return whether any answer or changed input holds a finite number, text or truth value. Raises ``DecodeError``."""
    effects = (outputs.effects or {}).values()
    changed = (tree for effect in effects for tree in effect.changed.values())
    return any(_holds(tree, outputs.buffer) for tree in (*outputs.calls.values(), *changed))


def _holds(tree: Tree, buffer: Buffer) -> bool:
    kind, content = tree
    match kind:
        case "tensor":
            return bool(np.isfinite(decode(content, buffer).values).any())
        case "float" | "complex":
            return bool(np.isfinite(decode(plain_number(kind, content), buffer).values).all())
        case "list" | "tuple":
            return any(_holds(item, buffer) for item in content)
        case "dict":
            return any(_holds(item, buffer) for _, item in content)
        case "namedtuple":
            return any(_holds(item, buffer) for _, item in content[1])
        case _:
            return kind not in ("none", "object")
