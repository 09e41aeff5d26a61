"""Two records of one model: samples against samples, and shapes by the whole tensor."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from harness.core.comparison import OutputComparison, TensorMetrics
from harness.core.environment import Fingerprint
from harness.core.golden import GoldenRecord, RecordChange, Source
from harness.core.models import Artifact, InputSet
from harness.core.probe import ServingProfile
from harness.apps.golden.review import change_of, compare_records, facts_between
from harness.artifacts.tensors.samples import sampled
from tests.unit.builders.golden_reviews import IDS, NAN, SCORES, STRUCTURE, call, compared
from tests.unit.builders.requests import float32, golden_outputs

LARGE = np.arange(1, 50_001, dtype=np.float32)


def kept(*values: Any) -> Any:
    return sampled(golden_outputs(*values))


def only(comparison: OutputComparison) -> TensorMetrics:
    (tensor,) = comparison.calls[0].tensors
    assert comparison.calls[0].tree == ()
    return tensor


def test_equal_samples_of_equal_tensors_are_equal() -> None:
    tensor = only(compare_records("m", kept(LARGE), kept(LARGE.copy())))
    assert (tensor.bit_equal, tensor.sampled) == (True, False)


def test_equal_samples_of_other_tensors_decide_nothing() -> None:
    other = LARGE.copy()
    other[1] += 1
    tensor = only(compare_records("m", kept(LARGE), kept(other)))
    assert (tensor.bit_equal, tensor.sampled) == (True, True)


def test_samples_that_differ_have_numbers() -> None:
    other = LARGE.copy()
    other[0] += 2
    tensor = only(compare_records("m", kept(LARGE), kept(other)))
    assert (tensor.max_abs, tensor.sampled, tensor.elements) == (2.0, True, 1021)


@pytest.mark.parametrize("small_first", [False, True])
def test_wholes_of_another_shape_differ_in_structure_though_their_samples_agree(small_first: bool) -> None:
    """Half as many elements at half the step: both samples have 1,000 elements."""
    one, other = kept(np.arange(8000, dtype=np.float32)), kept(np.arange(16_000, dtype=np.float32))
    if small_first:
        one, other = other, one
    (call,) = compare_records("m", one, other).calls
    assert [found.kind for found in call.tree] == ["structure"]
    assert {"(8000,)", "(16000,)"} == {
        text.removeprefix("shape ") for text in (call.tree[0].expected, call.tree[0].actual)
    }
    assert call.tensors == ()


def test_a_tensor_as_large_as_the_others_sample_is_another_shape() -> None:
    whole = np.arange(8000, dtype=np.float32)
    (call,) = compare_records("m", kept(whole), kept(whole[::8].copy())).calls
    assert call.tree[0].expected == "shape (8000,)" and call.tree[0].actual == "shape (1000,)"


@pytest.mark.parametrize("wide_first", [False, True])
def test_one_that_is_a_sample_only_for_its_dtype_is_compared_element_by_element(wide_first: bool) -> None:
    narrow = np.linspace(1, 2, 3000, dtype=np.float32)
    one, other = kept(narrow), kept(narrow.astype(np.float64))
    if wide_first:
        one, other = other, one
    (call,) = compare_records("m", one, other).calls
    assert [found.kind for found in call.tree] == ["dtype"]
    assert (call.tensors[0].max_abs, call.tensors[0].elements) == (0.0, 1000)


def test_small_tensors_are_compared_whole() -> None:
    tensor = only(compare_records("m", kept(float32(1, 2)), kept(float32(1, 3))))
    assert (tensor.max_abs, tensor.sampled) == (1.0, False)


def test_calls_that_only_one_has_are_said() -> None:
    one, two = kept(float32(1)), kept(float32(1), float32(1))
    assert compare_records("m", two, one).missing_calls == (("example", 1),)
    assert compare_records("m", one, two).calls[1].tree[0].actual == "call 1"


SMALL = replace(SCORES, max_abs=5e-5, mismatched=0)
OTHER_TREE = STRUCTURE.comparison.calls[0] if STRUCTURE.comparison else call(0)


@pytest.mark.parametrize(
    ("comparison", "change", "said"),
    [
        (compared(call(0, IDS)), RecordChange.SAME, "1 tensor, bit for bit the same"),
        (
            compared(call(0, IDS, SMALL)),
            RecordChange.WITHIN,
            "1 of 2 tensors differs, all within tolerance: off by up to 5e-06",
        ),
        (
            compared(call(0, SMALL, SCORES)),
            RecordChange.BEYOND,
            "2 of 2 tensors differ, 1 beyond tolerance: off by up to 0.002",
        ),
        (compared(call(0, NAN)), RecordChange.BEYOND, "NaN or Inf moved in 2 elements"),
        (compared(call(0, replace(IDS, sampled=True))), RecordChange.UNKNOWN, "1 of them known by a sample only"),
        (compared(call(0, replace(IDS, sampled=True), SCORES)), RecordChange.BEYOND, "2 of 2 tensors differ, 1 beyond"),
        (compared(call(0, replace(SMALL, sampled=True))), RecordChange.UNKNOWN, "known by a sample only"),
        (compared(OTHER_TREE), RecordChange.STRUCTURE, "output[1]: shape (3,) -> shape (4,)"),
        (compared(call(0, SCORES), lost=(("b", 0), ("b", 1))), RecordChange.STRUCTURE, "2 calls gone"),
    ],
)
def test_the_gravest_change_is_reported(comparison: OutputComparison, change: RecordChange, said: str) -> None:
    found, words = change_of(comparison)
    assert found is change
    assert said in words


def test_the_sentence_names_the_worst_place() -> None:
    found = change_of(compared(call(0, SMALL), call(1, SCORES, input_set="batch_7")))
    assert found[1].endswith("of the largest value (batch_7 call 1 output['scores'])")


def test_many_differences_of_structure_are_counted() -> None:
    trees = tuple(replace(OTHER_TREE.tree[0], path=f"output[{index}]") for index in range(5))
    _, words = change_of(compared(replace(OTHER_TREE, tree=trees)))
    assert words.count("shape (3,)") == 3 and words.endswith("; and 2 more")


def record(**changes: object) -> GoldenRecord:
    artifact = Artifact(
        model="m",
        path="",
        digest="d" * 64,
        size_bytes=9,
        operators=("aten::add", "aten::mul"),
        inputs_dir="",
        input_sets=(InputSet(name="example"),),
        inputs_digest="1" * 64,
    )
    made = GoldenRecord(
        model="m",
        device="cpu",
        producer=Fingerprint(torch="2.1.2", git_revision="abc"),
        artifact=artifact,
        inputs=[],
        answers=[],
        files={},
    )
    return replace(made, **changes)  # type: ignore[arg-type]


def test_equal_records_have_nothing_between_them() -> None:
    assert facts_between(record(), record()) == {}


def test_records_of_two_gpus_differ_in_both_their_facts() -> None:
    old = record(producer=replace(record().producer, cuda="12.1", gpu="A10"))
    new = record(producer=replace(record().producer, cuda="12.4", gpu="H200"))
    assert facts_between(old, new) == {"cuda": ("12.1", "12.4"), "gpu": ("A10", "H200")}


def test_what_else_differs_is_named_on_both_sides() -> None:
    old = record()
    profile = ServingProfile(name="fused", switches={"cpu_fusion": True}, numerics={"tf32": "off"})
    new = record(
        producer=replace(old.producer, torch="2.6.0", gpu="H200"),
        artifact=replace(old.artifact, digest="e" * 64, operators=("aten::add", "aten::div")),
        inputs=[{"set": "example", "tree": ["int", 3]}],
        source=Source(run="later", profile=profile),
    )
    assert facts_between(old, new) == {
        "torch": ("2.1.2", "2.6.0"),
        "gpu": ("none", "H200"),
        "artifact": ("dddddddddddd", "eeeeeeeeeeee"),
        "operators": ("only here: aten::mul", "only here: aten::div"),
        "inputs": ("4f53cda18c2b", "2f18359c185d"),
        "profile": ("unknown", "fused (1/1 threads, cpu_fusion=True, tf32=off)"),
    }
