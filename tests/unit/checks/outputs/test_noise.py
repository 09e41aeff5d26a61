"""How far the old side lies from itself."""

import math

import pytest

from harness.checks.outputs import noise, paired_calls
from harness.checks.outputs.noise import old_noise
from harness.checks.outputs.outputs import compare_outputs
from harness.artifacts.tensors.decode import Buffer, Decoded, Spec
from harness.artifacts.tensors.outputs import CallKey, Outputs
from tests.unit.builders.tensors import Recorder, float32, outputs


def test_other_thread_counts_give_noise_and_make_nothing_unstable() -> None:
    golden = outputs(float32(1), float32(2))
    found = old_noise(golden, [golden], [outputs(float32(1.5), float32(math.nan))])
    assert (found.largest, found.unstable) == ({("example", "output"): 0.5}, ())
    result = compare_outputs(
        "m", "alone", golden, outputs(float32(7), float32(2)), repeats=[golden], other_threads=[outputs(float32(1.25))]
    )
    assert result.tensors[0].noise_abs == 0.25


def test_noise_of_one_input_set_is_not_that_of_another() -> None:
    recorder = Recorder()
    one, other = recorder.tensor(float32(1)), recorder.tensor(float32(2))
    golden = Outputs({("a", 0): one, ("b", 0): one}, recorder.buffer)
    repeat = Outputs({("a", 0): one, ("b", 0): other}, recorder.buffer)
    assert old_noise(golden, [repeat]).largest == {("a", "output"): 0.0, ("b", "output"): 1.0}


def test_old_output_that_changes_shape_or_nan_is_unstable() -> None:
    assert old_noise(outputs(float32(1)), [outputs(float32(1, 2))]).unstable == ("output",)
    flicker = old_noise(outputs(float32(1)), [outputs(float32(math.nan))])
    assert (flicker.unstable, flicker.largest) == (("output",), {("example", "output"): 0.0})


def test_the_same_bytes_are_measured_once_however_many_calls_have_them(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[str] = []

    def decoded(spec: Spec, buffer: Buffer, key: CallKey, path: str) -> Decoded:
        seen.append(path)
        return paired_calls.decoded(spec, buffer, key, path)

    monkeypatch.setattr(noise, "decoded", decoded)
    golden, repeat = outputs(*[float32(1)] * 50), outputs(*[float32(3)] * 50)
    assert old_noise(golden, [repeat, repeat]).largest == {("example", "output"): 2.0}
    assert len(seen) == 2
