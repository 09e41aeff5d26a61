"""Golden values small enough for git: large tensors become a strided sample, and the probe is cut to match.

A sampled leaf keeps the digest of the whole tensor. If the probe's digest is the same, equality is decided; if
not, the sample can prove a difference and cannot prove agreement, so ``TensorMetrics.sampled`` is set.
"""

import hashlib
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from harness.artifacts.tensors.outputs import Outputs
from harness.artifacts.tensors.trees import leaves, mapped
from harness.core.comparison import OutputComparison
from harness.worker import wire

MAX_BYTES = 16 * 1024
SAMPLES = 1024

Spec = dict[str, Any]


class _Bytes:
    """Appends byte strings, equal ones once; ``offset`` of each is what specs point to."""

    def __init__(self) -> None:
        self.data = bytearray()
        self._known: dict[bytes, int] = {}

    def add(self, data: bytes) -> int:
        offset = self._known.get(data)
        if offset is None:
            offset = self._known[data] = len(self.data)
            self.data += data
        return offset


def sampled(outputs: Outputs) -> Outputs:
    """Return ``outputs``, tensors above 16 KiB as about 1024 strided elements; ``"full"`` describes the whole."""
    store = _Bytes()

    def shrink(spec: Spec, _path: str) -> Spec:
        data = _bytes_of(spec, outputs)
        if len(data) <= MAX_BYTES or "scales" in spec.get("quantizer", {}):  # a cut would part channels from scales
            return {**spec, "offset": store.add(data)}
        elements = len(data) // wire.DTYPE_BYTES[spec["dtype"]]
        step = -(-elements // SAMPLES)
        full = {"shape": spec["shape"], "sha256": spec["sha256"], "step": step}
        return _sample(spec, data, full, store)

    calls = {key: mapped(tree, shrink) for key, tree in outputs.calls.items()}
    return Outputs(calls=calls, buffer=bytes(store.data))


def like_golden(probe: Outputs, golden: Outputs) -> Outputs:
    """Return ``probe`` with the leaves that ``golden`` holds as samples cut to the same elements."""
    cuts = _full_specs(golden)
    if not cuts:
        return probe
    store = _Bytes()

    def cut_of(key: tuple[str, int]) -> Any:
        def cut(spec: Spec, path: str) -> Spec:
            data = _bytes_of(spec, probe)
            full = cuts.get((key, path))
            if full is None or full["shape"] != spec["shape"]:
                return {**spec, "offset": store.add(data)}
            return _sample(spec, data, full, store)

        return cut

    calls = {key: mapped(tree, cut_of(key)) for key, tree in probe.calls.items()}
    return Outputs(calls=calls, buffer=bytes(store.data))


def mark_sampled(comparison: OutputComparison, golden: Outputs, probe: Outputs) -> OutputComparison:
    """Set ``sampled`` on leaves not known to be wholly equal; ``probe``: before ``like_golden``, whole digests."""
    cuts = _full_specs(golden)
    if not cuts:
        return comparison
    digests = {(key, path): spec.get("sha256") for key, tree in probe.calls.items() for path, spec in leaves(tree)}
    calls = []
    for call in comparison.calls:
        key = (call.input_set, call.call)
        tensors = tuple(
            replace(tensor, sampled=True)
            if (key, tensor.path) in cuts and digests.get((key, tensor.path)) != cuts[key, tensor.path]["sha256"]
            else tensor
            for tensor in call.tensors
        )
        calls.append(replace(call, tensors=tensors))
    return replace(comparison, calls=tuple(calls))


def _full_specs(golden: Outputs) -> Mapping[tuple[tuple[str, int], str], Spec]:
    return {
        (key, path): spec["full"] for key, tree in golden.calls.items() for path, spec in leaves(tree) if "full" in spec
    }


def _sample(spec: Spec, data: bytes, full: Spec, store: _Bytes) -> Spec:
    width = wire.DTYPE_BYTES[spec["dtype"]]
    elements = np.frombuffer(data, dtype=np.dtype((np.void, width)))[:: full["step"]]
    part = elements.tobytes()
    return {
        **spec,
        "shape": [len(elements)],
        "stride": [1],
        "offset": store.add(part),
        "nbytes": len(part),
        "sha256": hashlib.sha256(part).hexdigest(),
        "full": full,
    }


def _bytes_of(spec: Spec, outputs: Outputs) -> bytes:
    return bytes(memoryview(outputs.buffer)[spec["offset"] : spec["offset"] + spec["nbytes"]])
