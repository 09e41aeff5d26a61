"""Golden values small enough for git, and what a sample can decide."""

import hashlib
from typing import Any

import numpy as np
import pytest

from harness.checks.outputs.outputs import compare_outputs
from harness.core.comparison import OutputComparison, TensorMetrics
from harness.artifacts.tensors.decode import decode
from harness.artifacts.tensors.outputs import Outputs
from harness.artifacts.tensors.samples import MAX_BYTES, SAMPLES, like_golden, mark_sampled, sampled
from tests.unit.builders.tensors import Array, Recorder, outputs

LARGE = np.arange(50_000, dtype=np.float32)  # every 49th element is sampled


def spec_of(found: Outputs, call: int = 0) -> dict[str, Any]:
    kind, spec = found.calls["example", call]
    assert kind == "tensor"
    return dict(spec)


def judge(golden: Outputs, probe: Outputs) -> OutputComparison:
    """Return the comparison as the compare stage makes it."""
    return mark_sampled(compare_outputs("m", "alone", golden, like_golden(probe, golden)), golden, probe)


def only(comparison: OutputComparison) -> TensorMetrics:
    (tensor,) = comparison.tensors
    return tensor


def with_change(index: int, amount: float = 1.0) -> Array:
    changed = LARGE.copy()
    changed[index] += amount
    return changed


def test_small_tensors_are_kept_whole() -> None:
    values = np.arange(MAX_BYTES // 4, dtype=np.float32)
    small = sampled(outputs(values))
    assert "full" not in spec_of(small)
    assert np.array_equal(decode(spec_of(small), small.buffer).values, values)


def test_tensor_one_element_larger_is_sampled() -> None:
    assert "full" in spec_of(sampled(outputs(np.arange(MAX_BYTES // 4 + 1, dtype=np.float32))))


@pytest.mark.parametrize("count", [4097, 5000, 50_000, 1_000_000])
def test_sample_is_evenly_strided_and_never_larger_than_promised(count: int) -> None:
    values = np.arange(count, dtype=np.float32)
    small = sampled(outputs(values))
    spec = spec_of(small)
    found = decode(spec, small.buffer).values
    assert np.array_equal(found, values[:: spec["full"]["step"]])
    assert SAMPLES * 3 // 4 <= found.size <= SAMPLES
    assert spec["shape"] == [found.size]
    assert spec["nbytes"] == len(small.buffer) == found.nbytes


def test_sample_remembers_shape_and_digest_of_the_whole() -> None:
    whole = LARGE.reshape(100, 500)
    spec = spec_of(sampled(outputs(whole)))
    assert spec["full"] == {"shape": [100, 500], "sha256": hashlib.sha256(whole.tobytes()).hexdigest(), "step": 49}
    assert spec["sha256"] != spec["full"]["sha256"]
    assert spec["sha256"] == hashlib.sha256(LARGE[::49].tobytes()).hexdigest()


def test_equal_calls_share_their_bytes() -> None:
    assert len(sampled(outputs(LARGE, LARGE)).buffer) == len(sampled(outputs(LARGE)).buffer)
    assert len(sampled(outputs(LARGE, LARGE + 1)).buffer) == 2 * len(sampled(outputs(LARGE)).buffer)


@pytest.mark.parametrize("dtype", ["bfloat16", "float16", "complex32", "complex128", "bool", "qint8"])
def test_elements_of_every_width_are_cut_whole(dtype: str) -> None:
    width = {"bfloat16": 2, "float16": 2, "complex32": 4, "complex128": 16, "bool": 1, "qint8": 1}[dtype]
    patterns = np.random.default_rng(0).integers(0, 2, 20_000 * width).astype(np.uint8)
    extra = {"quantizer": {"scale": 0.5, "zero_point": 0}} if dtype == "qint8" else {}
    recorder = Recorder()
    tree = recorder.tensor(patterns, dtype, [20_000], **extra)
    small = sampled(Outputs({("example", 0): tree}, recorder.buffer))
    expected = patterns.reshape(20_000, width)[::20].tobytes()
    assert small.buffer == expected
    assert decode(spec_of(small), small.buffer).values.shape == (1000,)


def test_tensor_with_a_quantizer_per_channel_is_kept_whole() -> None:
    recorder = Recorder()
    quantizer = {"scales": [0.1, 0.2], "zero_points": [0, 1], "axis": 0}
    codes = np.zeros((2, 20_000), dtype=np.int8)
    golden = Outputs({("example", 0): recorder.tensor(codes, "qint8", quantizer=quantizer)}, recorder.buffer)
    small = sampled(golden)
    assert decode(spec_of(small), small.buffer).values.shape == (2, 20_000)
    (call,) = judge(small, golden).calls
    assert (call.equal, call.tensors) == (1, ())


def test_containers_and_plain_values_keep_their_places() -> None:
    recorder = Recorder()
    large, tiny = recorder.tensor(LARGE), recorder.tensor(np.ones(3, dtype=np.float32))
    tree: Any = [
        "dict",
        [
            [["str", "a"], ["tuple", [["float", "1.5"], large, ["none", None]]]],
            [["str", "b"], ["namedtuple", ["Box", [["score", tiny], ["boxes", ["list", [large]]]]]]],
            [["int", 3], ["complex", ["1.0", "2.0"]]],
        ],
    ]
    whole = Outputs({("example", 0): tree}, recorder.buffer)
    small = sampled(whole)
    comparison = judge(small, whole)
    assert comparison.calls[0].tree == ()
    found = {tensor.path: (tensor.elements, tensor.bit_equal) for tensor in comparison.tensors}
    assert found == {"output['a'][1]": (1021, True), "output['b'].boxes[0]": (1021, True)}
    assert comparison.calls[0].equal == 3


def test_golden_without_samples_leaves_the_probe_alone() -> None:
    golden, probe = outputs(np.ones(3)), outputs(LARGE)
    assert like_golden(probe, golden) is probe
    comparison = compare_outputs("m", "alone", golden, probe)
    assert mark_sampled(comparison, golden, probe) is comparison


def test_equal_whole_tensor_is_decided_by_its_digest() -> None:
    tensor = only(judge(sampled(outputs(LARGE)), outputs(LARGE)))
    assert (tensor.bit_equal, tensor.sampled, tensor.elements) == (True, False, 1021)


def test_difference_between_the_samples_cannot_be_decided() -> None:
    tensor = only(judge(sampled(outputs(LARGE)), outputs(with_change(1))))
    assert (tensor.bit_equal, tensor.sampled, tensor.max_abs) == (True, True, 0.0)


def test_difference_in_a_sample_is_proven() -> None:
    tensor = only(judge(sampled(outputs(LARGE)), outputs(with_change(490, 1000))))
    assert (tensor.bit_equal, tensor.sampled, tensor.max_abs, tensor.worst_index) == (False, True, 1000.0, (10,))
    assert tensor.mismatched == 1


def test_other_shape_is_a_difference_of_structure() -> None:
    (call,) = judge(sampled(outputs(LARGE)), outputs(LARGE.reshape(2, -1))).calls
    assert [item.kind for item in call.tree] == ["structure"]
    assert call.tensors == ()


def test_only_leaves_that_are_samples_are_marked() -> None:
    def pair(large: Array, tiny: float) -> Outputs:
        recorder = Recorder()
        tree = ["tuple", [recorder.tensor(large), recorder.tensor(np.float32(tiny))]]
        return Outputs({("example", 0): tree}, recorder.buffer)

    found = judge(sampled(pair(LARGE, 1.0)), pair(with_change(1), 2.0)).tensors
    assert [tensor.sampled for tensor in found] == [True, False]
    assert [tensor.bit_equal for tensor in found] == [True, False]


def test_every_call_has_a_mark_of_its_own() -> None:
    comparison = judge(sampled(outputs(LARGE, LARGE)), outputs(LARGE, with_change(1)))
    assert [tensor.sampled for tensor in comparison.tensors] == [False, True]


def test_call_that_only_the_probe_has_is_reported_and_does_no_harm() -> None:
    comparison = judge(sampled(outputs(LARGE)), outputs(LARGE, LARGE))
    assert [item.actual for item in comparison.calls[1].tree] == ["call 1"]
