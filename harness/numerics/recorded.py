"""Two golden records of one model, compared: both may hold samples in the place of large tensors."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from harness.domain.comparison import OutputComparison
from harness.numerics.compare import compare_outputs
from harness.numerics.outputs import CallKey, Outputs
from harness.numerics.sampling import like_golden, mapped
from harness.numerics.structure import leaves
from harness.numerics.tolerances import Precision

Place = tuple[CallKey, str]


def compare_records(
    model: str, old: Outputs, new: Outputs, *, precision: Precision = None, unordered: Sequence[str] = ()
) -> OutputComparison:
    """Return every difference between what two records of ``model`` hold.

    Samples are compared as samples: ``TensorMetrics.sampled`` where the whole tensors are not known to be equal.
    Tensors of which the whole has another shape differ in structure, whatever shape their samples have.

    Args:
        precision, unordered: see ``compare_outputs``.

    Raises:
        DecodeError: a record is damaged.
    """
    ours, theirs = _wholes(old), _wholes(new)
    comparison = compare_outputs(
        model,
        "golden",
        _with_whole_shapes(like_golden(old, new), ours, theirs),
        _with_whole_shapes(like_golden(new, old), theirs, ours),
        precision=precision,
        unordered=unordered,
    )
    open_places = {
        place
        for place in ours.keys() & theirs.keys()
        if "full" in {**ours[place], **theirs[place]} and _whole(ours[place])[1] != _whole(theirs[place])[1]
    }
    calls = []
    for call in comparison.calls:
        key = (call.input_set, call.call)
        tensors = tuple(replace(item, sampled=(key, item.path) in open_places) for item in call.tensors)
        calls.append(replace(call, tensors=tensors))
    return replace(comparison, calls=tuple(calls))


def _wholes(outputs: Outputs) -> Mapping[Place, Mapping[str, Any]]:
    """Return the spec of every tensor, by its place."""
    return {(key, path): spec for key, tree in outputs.calls.items() for path, spec in leaves(tree)}


def _whole(spec: Mapping[str, Any]) -> tuple[list[int], str]:
    """Return shape and digest of a tensor, or of the one that it is a sample of."""
    whole = spec.get("full", spec)
    return whole.get("shape", []), whole.get("sha256", "")


def _with_whole_shapes(
    outputs: Outputs, own: Mapping[Place, Mapping[str, Any]], other: Mapping[Place, Mapping[str, Any]]
) -> Outputs:
    """Return the outputs with the whole's shape in every spec where the two wholes differ in shape.

    The bytes then fit no longer, but leaves of different shapes are never decoded.
    """
    moved = {
        place: _whole(own[place])[0]
        for place in own.keys() & other.keys()
        if _whole(own[place])[0] != _whole(other[place])[0]
    }
    if not moved:
        return outputs

    def shaped(key: CallKey) -> Any:
        return lambda spec, path: {**spec, "shape": moved.get((key, path), spec["shape"])}

    calls = {key: mapped(tree, shaped(key)) for key, tree in outputs.calls.items()}
    return replace(outputs, calls=calls)
