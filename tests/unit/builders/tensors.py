"""Builders of wire trees and their bytes, as the worker writes them."""

import hashlib
import json
import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from harness.core.measurement import ArmSample, Block, PairSample
from harness.artifacts.tensors.decode import Decoded, decode
from harness.artifacts.tensors.outputs import CallKey, Outputs
from harness.worker import wire

Array = npt.NDArray[Any]
Tree = list[Any]


class Recorder:
    """Collects tensors into one buffer; equal bytes are stored once, like the worker's ``TensorWriter``."""

    def __init__(self, *, hashed: bool = True) -> None:
        self.buffer = b""
        self._hashed = hashed
        self._known: dict[str, int] = {}

    def tensor(self, values: Any, dtype: str | None = None, shape: list[int] | None = None, **extra: Any) -> Tree:
        """Return a tensor tree; ``dtype`` names wire dtypes that NumPy lacks, for bit patterns in ``values``."""
        array = np.asarray(values)
        data = array.tobytes()
        digest = hashlib.sha256(data).hexdigest()
        if digest not in self._known:
            self._known[digest] = len(self.buffer)
            self.buffer += data
        shape = list(array.shape) if shape is None else shape
        spec: dict[str, Any] = {
            "dtype": dtype or array.dtype.name,
            "shape": shape,
            "stride": contiguous(shape),
            "device": "cpu",
        }
        spec |= {"offset": self._known[digest], "nbytes": len(data)}
        if self._hashed:
            spec["sha256"] = digest
        return ["tensor", spec | extra]

    def decoded(self, values: Any, dtype: str | None = None, shape: list[int] | None = None, **extra: Any) -> Decoded:
        """Return the tensor as the numerics read it back."""
        return decode(self.tensor(values, dtype, shape, **extra)[1], self.buffer)


def contiguous(shape: list[int]) -> list[int]:
    """Return row-major strides in elements."""
    return [math.prod(shape[axis + 1 :]) for axis in range(len(shape))]


def decoded(values: Any, dtype: str | None = None, shape: list[int] | None = None, **extra: Any) -> Decoded:
    """Return one tensor, read back from bytes of its own."""
    return Recorder().decoded(values, dtype, shape, **extra)


def near(value: Any, **tolerance: Any) -> Any:
    """Return ``pytest.approx``, typed so that it may stand in a tuple or a field."""
    return pytest.approx(value, **tolerance)


def float32(*values: float) -> Array:
    """Return a float32 vector."""
    return np.array(values, dtype=np.float32)


def bfloat16_patterns(values: Any) -> Array:
    """Return the uint16 patterns of values that bfloat16 holds exactly."""
    return (np.asarray(values, dtype=np.float32).view(np.uint32) >> np.uint32(16)).astype(np.uint16)


def outputs(*values: Any, input_set: str = "example", hashed: bool = True) -> Outputs:
    """Return one call per value, numbered from 0, each answering with one tensor."""
    recorder = Recorder(hashed=hashed)
    calls = {(input_set, call): recorder.tensor(value) for call, value in enumerate(values)}
    return Outputs(calls, recorder.buffer)


def write_answers(folder: Path, trees: Mapping[str, Tree], buffer: bytes = b"") -> str:
    """Write what models answered to the first call of their example in a probe; return its folder."""
    lines = [{"model": name, "set": "example", "call": 0, "tree": tree} for name, tree in trees.items()]
    return _write(folder, lines, buffer)


def write_calls(folder: Path, calls: Mapping[CallKey, Tree], model: str = "m") -> str:
    """Write what one model answered to some calls in a probe; return its folder."""
    return _write(
        folder, [{"model": model, "set": name, "call": call, "tree": tree} for (name, call), tree in calls.items()]
    )


def _write(folder: Path, lines: Sequence[Mapping[str, Any]], buffer: bytes = b"") -> str:
    (folder / wire.OUTPUTS).mkdir(parents=True, exist_ok=True)
    (folder / wire.OUTPUTS / wire.TENSORS_BIN).write_bytes(buffer)
    (folder / wire.OUTPUTS / wire.TENSORS_INDEX).write_text("".join(json.dumps(line) + "\n" for line in lines))
    return str(folder)


def arm_sample(load_s: float = 1.0, calls_s: tuple[float, ...] = (), **changes: Any) -> ArmSample:
    """Return what a process told beside its blocks."""
    return ArmSample(load_s=load_s, calls_s=calls_s, **changes)


def pair_sample(
    turns: Sequence[Mapping[str, float]] = (),
    *,
    round_: int = 0,
    model: str = "m",
    calls: int = 10,
    arms: Mapping[str, ArmSample] | None = None,
    **changes: Any,
) -> PairSample:
    """Return a sample with one block per turn and arm of so many seconds per call."""
    blocks = tuple(
        Block(arm=arm, turn=index, p50_s=p50_s, calls=calls)
        for index, turn in enumerate(turns)
        for arm, p50_s in turn.items()
    )
    return PairSample(model=model, round=round_, blocks=blocks, arms=arms or {}, **changes)
