"""Compares two golden records, for the person who decides whether to accept one."""

import hashlib
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from harness.artifacts.tensors.outputs import CallKey, Outputs
from harness.artifacts.tensors.samples import like_golden
from harness.artifacts.tensors.trees import leaves, mapped
from harness.checks.outputs.findings import deciding_rule, error_of
from harness.checks.outputs.outputs import compare_outputs
from harness.checks.outputs.tolerances import Precision
from harness.core.comparison import OutputComparison
from harness.core.golden import GoldenRecord, RecordChange, RecordDiff
from harness.core.text import counted, first_few, joined

_MOST_NAMED = 3


def gravest_first(diffs: Iterable[RecordDiff]) -> tuple[RecordDiff, ...]:
    """Return the diffs in the order of ``RecordChange``, those of one change by their models."""
    changes = list(RecordChange)
    return tuple(sorted(diffs, key=lambda diff: (changes.index(diff.change), diff.model)))


def change_of(comparison: OutputComparison) -> tuple[RecordChange, str]:
    places = [(call, tensor) for call in comparison.calls for tensor in call.tensors]
    trees = [difference for call in comparison.calls for difference in call.tree]
    lost = len(comparison.missing_calls)
    if trees or lost:
        others = [f"{difference.path}: {difference.expected} -> {difference.actual}" for difference in trees]
        gone = f"{counted(lost, 'call')} gone" if lost else ""
        return RecordChange.STRUCTURE, joined(gone, first_few(others, _MOST_NAMED, "; "))
    other = [(call, tensor) for call, tensor in places if not tensor.bit_equal or tensor.sampled]
    tensors = counted(len(places) + sum(call.equal for call in comparison.calls), "tensor")
    all_of = f"of {tensors}"
    if not other:
        return RecordChange.SAME, f"{tensors}, bit for bit the same"
    moved = sum(tensor.nan_mismatches + tensor.inf_mismatches for _, tensor in other)
    call, worst = max(other, key=lambda place: error_of(place[1]))
    size = f"off by up to {error_of(worst):.2g} of the largest value ({call.input_set} call {call.call} {worst.path})"
    beyond = [tensor for _, tensor in other if not deciding_rule(tensor)[1]]
    differ = f"{len(other)} {all_of} {'differs' if len(other) == 1 else 'differ'}"
    if beyond:
        placed = f", NaN or Inf moved in {counted(moved, 'element')}" if moved else ""
        return RecordChange.BEYOND, f"{differ}, {len(beyond)} beyond tolerance: {size}{placed}"
    sampled = sum(tensor.sampled for _, tensor in other)
    if sampled:
        return RecordChange.UNKNOWN, f"{differ}, {sampled} of them known by a sample only: {size}"
    return RecordChange.WITHIN, f"{differ}, all within tolerance: {size}"


def facts_between(old: GoldenRecord, new: GoldenRecord) -> Mapping[str, tuple[str, str]]:
    pairs = {
        "torch": (old.producer.torch, new.producer.torch),
        "revision": (_short(old.producer.git_revision), _short(new.producer.git_revision)),
        "python": (old.producer.python, new.producer.python),
        "cuda": (old.producer.cuda or "none", new.producer.cuda or "none"),
        "gpu": (old.producer.gpu or "none", new.producer.gpu or "none"),
        "processor": (f"{old.producer.cpu} {old.producer.isa}", f"{new.producer.cpu} {new.producer.isa}"),
        "threads": (_threads(old), _threads(new)),
        "libraries": (old.producer.libraries or "none", new.producer.libraries or "none"),
        "device": (old.device, new.device),
        "artifact": (_short(old.artifact.digest), _short(new.artifact.digest)),
        "operators": _only_in(old.artifact.operators, new.artifact.operators),
        "artifact bytes": (str(old.artifact.size_bytes), str(new.artifact.size_bytes)),
        "input sets": (_input_sets(old), _input_sets(new)),
        "inputs": (_short(_inputs(old)), _short(_inputs(new))),
        "seed": (str(old.artifact.seed), str(new.artifact.seed)),
        "calls": (str(len(old.answers)), str(len(new.answers))),
        "profile": (_profile(old), _profile(new)),
    }
    return {name: (before, other) for name, (before, other) in pairs.items() if before != other}


def _short(digest: str | None) -> str:
    return (digest or "unknown")[:12]


def _threads(record: GoldenRecord) -> str:
    return f"{record.producer.intra_op_threads} intra-op, {record.producer.inter_op_threads} inter-op"


def _only_in(old: tuple[str, ...], new: tuple[str, ...]) -> tuple[str, str]:
    """Return the operators that only one of the two has."""
    both = {*old} & {*new} | {""}  # older records hold it for all nodes without a schema
    return _some(sorted({*old} - both)), _some(sorted({*new} - both))


def _some(names: list[str]) -> str:
    return f"only here: {first_few(names, _MOST_NAMED)}" if names else "nothing of its own"


def _input_sets(record: GoldenRecord) -> str:
    return ", ".join(f"{item.name} ({item.method})" for item in record.artifact.input_sets) or "none"


def _inputs(record: GoldenRecord) -> str:
    return hashlib.sha256(json.dumps(record.inputs, sort_keys=True).encode()).hexdigest()


def _profile(record: GoldenRecord) -> str:
    profile = record.profile
    if profile is None:
        return "unknown"
    more = {**profile.switches, **profile.numerics}
    settings = ", ".join(f"{name}={value}" for name, value in sorted(more.items()))
    threads = f"{profile.intra_op_threads}/{profile.inter_op_threads} threads"
    return f"{profile.name} ({threads}{', ' if settings else ''}{settings})"


Place = tuple[CallKey, str]


def compare_records(
    model: str, old: Outputs, new: Outputs, *, precision: Precision = None, unordered: Sequence[str] = ()
) -> OutputComparison:
    """Return every difference between what two records of ``model`` hold.

    Samples are compared as samples: ``TensorMetrics.sampled`` if the whole tensors are not known to be equal. Tensors
    whose whole has another shape differ in structure, whatever the shape of their samples. ``precision``,
    ``unordered``: see ``compare_outputs``. Raises ``DecodeError``: a record is damaged.
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
    return {(key, path): spec for key, tree in outputs.calls.items() for path, spec in leaves(tree)}


def _whole(spec: Mapping[str, Any]) -> tuple[list[int], str]:
    """Return shape and digest of a tensor, or of the tensor that it samples."""
    whole = spec.get("full", spec)
    return whole.get("shape", []), whole.get("sha256", "")


def _with_whole_shapes(
    outputs: Outputs, own: Mapping[Place, Mapping[str, Any]], other: Mapping[Place, Mapping[str, Any]]
) -> Outputs:
    """Return the outputs with whole shapes in specs that differ there; leaves of unlike shapes are never decoded."""
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
