"""Triton's configurations: requests and profile of what is served, and nothing made up of what is not described."""

from typing import Any

import pytest

from harness.core.errors import ConfigError
from harness.apps.fleet.stores.triton import TritonModel, models_in, read_config, served_versions

RANKER = """
# as NVIDIA's documentation writes it
name: "ranker"
platform: "pytorch_libtorch"
max_batch_size: 8
input [
  { name: "INPUT__1" data_type: TYPE_INT64 dims: [ -1 ] },
  { name: "INPUT__0" data_type: TYPE_FP32 dims: [ 6 ] }
]
output [ { name: "OUTPUT__0" data_type: TYPE_FP32 dims: [ 6 ] label_filename: "labels.txt" } ]
instance_group [ { count: 2 kind: KIND_GPU gpus: [ 0, 1 ] rate_limiter { resources [ { name: "R" count: 4 } ] } } ]
dynamic_batching { preferred_batch_size: [ 4, 8 ] max_queue_delay_microseconds: 100 }
sequence_batching { control_input [ { name: "START__2" control [ { kind: CONTROL_SEQUENCE_START int32_false_true: [ 0, 1 ] } ] } ] }
optimization { execution_accelerators { gpu_execution_accelerator : [ { name : "tensorrt" } ] } }
model_warmup [ { name: "one" batch_size: 1 inputs { key: "INPUT__1" value { data_type: TYPE_INT64 dims: 7 random_data: true } } } ]
parameters: { key: "DISABLE_OPTIMIZED_EXECUTION" value: { string_value: "true" } }
parameters: { key: "INTRA_OP_THREAD_COUNT" value: { string_value: "4" } }
parameters: { key: "ENABLE_NVFUSER" value: { string_value: "true" } }
"""  # noqa: E501  as it is written
X = 'input { name: "x" data_type: TYPE_FP32 dims: 4 }\n'


def model(text: str, **more: Any) -> TritonModel:
    return read_config(f'backend: "pytorch"\n{text}', file="c", **more)


def inputs_of(read: TritonModel, number: int = 0) -> dict[str, dict[str, Any]]:
    return {item["name"]: item for item in read.requests[number]["inputs"]}


def test_inputs_become_one_request_for_two_batches_and_open_sizes_stay_open() -> None:
    read = read_config(RANKER, file="config.pbtxt")
    (request,) = read.requests
    assert (request["name"], request["batches"], request["ordered"]) == ("example", [2, 5], False)
    found = inputs_of(read)
    assert list(found) == ["INPUT__1", "INPUT__0", "START__2"]  # the worker orders them: it knows forward
    assert (found["INPUT__1"]["dims"], found["INPUT__1"]["dtype"], found["INPUT__1"]["sizes"]) == ([-1], "int64", [7])
    assert (found["INPUT__0"]["dims"], found["INPUT__0"]["batched"]) == ([6], True)
    assert (found["START__2"]["cycle"], found["START__2"]["dtype"]) == ([1, 0], "int32")


def test_parameters_and_instances_become_the_serving_profile() -> None:
    read = read_config(RANKER, file="config.pbtxt")
    assert read.assignments == (
        "serving.switches.optimized_execution=false",
        "serving.switches.inference_mode=true",  # the backend's default
        "serving.intra_op_threads=4",
        "init_threads=2",
    )
    assert read.notes == ("the parameter ENABLE_NVFUSER has no setting here", "its instances are on GPUs")


@pytest.mark.parametrize(
    ("text", "dims"),
    [
        ("dims: [ 3, 4 ] reshape { shape: [ 12 ] }", [12]),
        ("dims: 1 reshape: { }", []),
        ("dims: 1 reshape { shape: [ ] }", []),
        ("dims: [ -1, 3 ]", [-1, 3]),
    ],
)
def test_a_reshape_is_what_the_model_sees(text: str, dims: list[int]) -> None:
    read = model(f'input {{ name: "x" data_type: TYPE_BF16 {text} }}')
    assert inputs_of(read)["x"]["dims"] == dims
    assert read.requests[0]["batches"] == []


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ('input { name: "x" data_type: TYPE_UINT32 dims: 1 }', "x is of TYPE_UINT32"),
        ('input { name: "x" dims: 1 }', "x is of TYPE_INVALID"),
        ('input { name: "x" data_type: 99 dims: 1 }', "x is of data type 99"),
        ('input { name: "x" data_type: -1 dims: 1 }', "x is of data type -1"),
        ('input { name: "x" data_type: TYPE_FP32 }', "x has no dims"),
        ('input { name: "x" data_type: TYPE_FP32 dims: [ 2, 0 ] }', "x has a dimension of 0"),
        ('input { name: "x" data_type: TYPE_FP32 dims: -2 }', "x has a dimension of -2"),
        ('input { name: "x" data_type: TYPE_FP32 dims: [ 9000000000, 9000000000 ] }', "more than 268,435,456 elements"),
        ("input { data_type: TYPE_FP32 dims: 1 }", "an input has no name"),
        (X + X, "two inputs are called x"),
        (X + 'batch_input { target_name: "n" data_type: TYPE_FP16 source_input: "x" }', "n is no batch_input"),
        (X + 'batch_input { kind: 7 target_name: "n" data_type: TYPE_FP32 source_input: "x" }', "n is no batch_input"),
        (X + 'sequence_batching { control_input { name: "S__1" } }', "S__1 has 0 controls"),
        (X + 'sequence_batching { control_input { name: "S__1" control { kind: 9 } } }', "control of kind 9"),
        (X + 'sequence_batching { control_input { name: "S__1" control { } } }', "no value for false and true"),
        ("", "it names no input"),
    ],
)
def test_what_cannot_be_described_is_said_and_not_made_up(text: str, why: str) -> None:
    read = model(text)
    assert read.requests == ()
    assert "describes no request" in read.notes[0] and why in read.notes[0]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("kind: CONTROL_SEQUENCE_START fp32_false_true: [ 0, 1 ]", ("float32", [1.0, 0.0])),
        ("kind: CONTROL_SEQUENCE_READY int32_false_true: [ 0, 7 ]", ("int32", [7])),
        ("kind: CONTROL_SEQUENCE_END bool_false_true: [ false, true ]", ("bool", [False, True])),
        ("kind: CONTROL_SEQUENCE_CORRID data_type: TYPE_INT64", ("int64", [1, 2, 3, 4, 5])),
    ],
)
def test_control_inputs_of_sequences_have_the_values_of_their_configuration(text: str, expected: Any) -> None:
    read = model(f'{X} sequence_batching {{ control_input {{ name: "C__1" control [ {{ {text} }} ] }} }}')
    made = inputs_of(read)["C__1"]
    assert (made["dtype"], made["cycle"]) == expected and made["kind"] == "control"


def test_states_and_counts_of_batches_are_inputs_too() -> None:
    read = model(
        'max_batch_size: 4 input { name: "v" data_type: TYPE_FP32 dims: -1 allow_ragged_batch: true }'
        'sequence_batching { state { input_name: "S__1" output_name: "T__1" data_type: TYPE_FP32 dims: 4 } }'
        'batch_input { kind: BATCH_ITEM_SHAPE target_name: "n" data_type: TYPE_INT32 source_input: "v" }'
    )
    found = inputs_of(read)
    assert [found[name]["kind"] for name in found] == ["input", "state", "batch"]
    assert (found["v"]["ragged"], found["v"]["batched"]) == (True, False)
    assert (found["n"]["counts"], found["n"]["of"]) == ("BATCH_ITEM_SHAPE", "v")


WARM = 'model_warmup {{ name: "first one" batch_size: {} inputs {{ key: "x" value {{ {} }} }} }}'


def test_warm_ups_give_requests_with_their_values() -> None:
    zero = WARM.format(2, "data_type: TYPE_FP32 dims: 4 zero_data: true")
    read = model(f"max_batch_size: 2 {X} {zero}")
    assert [request["name"] for request in read.requests] == ["example", "warmup_first_one"]
    assert inputs_of(read, 1)["x"]["zero"] is True and read.requests[1]["batches"] == [2]
    stored = WARM.format(0, 'data_type: TYPE_FP32 dims: 4 input_data_file: "x.bin"')
    read = model(X + stored, warmup_file={"x.bin": bytes(16)}.get)
    assert inputs_of(read, 1)["x"]["bytes"] == "AAAAAAAAAAAAAAAAAAAAAA=="


@pytest.mark.parametrize(
    ("batch", "text", "why"),
    [
        (0, 'data_type: TYPE_FP32 dims: 4 input_data_file: "gone"', "gone is not read"),
        (3, "data_type: TYPE_FP32 dims: 4 zero_data: true", "its batch_size is 3"),
        (0, "data_type: TYPE_INT8 dims: 4 zero_data: true", "x is another there"),
        (0, "data_type: TYPE_FP32 dims: -1 zero_data: true", "x is another there"),
    ],
)
def test_a_warm_up_that_is_not_taken_over_is_told(batch: int, text: str, why: str) -> None:
    read = model(X + WARM.format(batch, text))
    assert len(read.requests) == 1
    assert any(why in note for note in read.notes)


@pytest.mark.parametrize("value", ["many", "0", "-3", "9" * 30, "1" * 5000, "\u0664", "1025"])
def test_a_value_that_is_none_of_its_parameter_is_told(value: str) -> None:
    read = model(f'parameters {{ key: "INTRA_OP_THREAD_COUNT" value {{ string_value: "{value}" }} }}')
    assert read.assignments == ("serving.switches.inference_mode=true",)
    (note,) = [note for note in read.notes if "INTRA_OP_THREAD_COUNT" in note]
    assert "expected 1 to 1,024" in note and len(note) < 120


def test_more_instances_than_load_here_are_told() -> None:
    read = model("instance_group { count: 2000000000 } instance_group { count: -5 }")
    assert "init_threads=64" in read.assignments
    assert any("2,000,000,001 instances" in note for note in read.notes)


@pytest.mark.parametrize(
    ("text", "beside", "expected"),
    [
        ('platform: "onnxruntime_onnx" max_batch_size: 4', (), (False, "onnxruntime_onnx", "model.pt")),
        ('platform: "ensemble"', ("model.pt",), (False, "ensemble", "model.pt")),
        ('backend: "python"', ("model.pt", "model.py"), (False, "python", "model.pt")),
        ("", ("model.onnx",), (False, "", "model.pt")),
        ("", ("model.pt", "labels.txt"), (True, "pytorch", "model.pt")),
        ("", ("model.pt2",), (True, "pytorch", "model.pt2")),
        ('default_model_filename: "model.pt"', (), (True, "pytorch", "model.pt")),
        ('default_model_filename: "net.ts"', ("model.pt",), (False, "", "model.pt")),
        ('platform: "libtorch"', (), (True, "pytorch", "model.pt")),
        ('platform: "torch_aoti"', (), (True, "pytorch", "model.pt2")),
        ('platform: "torch_aoti" default_model_filename: "a.pt2"', (), (True, "pytorch", "a.pt2")),
        ('backend: "pytorch" platform: "torch_aoti"', (), (True, "pytorch", "model.pt2")),
    ],
)
def test_what_the_configuration_does_not_say_is_completed_as_triton_does(
    text: str, beside: tuple[str, ...], expected: tuple[bool, str, str]
) -> None:
    read = read_config(text, file="c", beside=beside)
    assert (read.is_pytorch, read.backend, read.file) == expected


def test_a_runtime_in_python_takes_inputs_in_the_order_of_the_configuration() -> None:
    assert model(f'runtime: "model.py" {X}').requests[0]["ordered"] is True


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ('max_batch_size: "eight"', "2"),
        ("max_batch_size: 3000000000", "range"),
        (f"max_batch_size: {'9' * 5000}", "c: no configuration"),
        ("optimization { " * 3000, "nested too deeply"),
        ("input [ " + "{ reshape " * 2000, "c: no configuration"),
        ('parameters { key: "\\xff\\xfe" }', "c: no configuration"),
        ("version_policy { all { } latest { } }", "c: no configuration"),
    ],
)
def test_a_text_that_is_no_configuration_is_refused_in_one_line(text: str, why: str) -> None:
    with pytest.raises(ConfigError, match="c: no configuration of Triton") as caught:
        model(text)
    message = str(caught.value)
    assert why in message and len(message) < 500 and "\n" not in message.strip()


@pytest.mark.parametrize(
    ("policy", "served"),
    [
        ("", (12,)),
        ("version_policy: { latest { num_versions: 2 } }", (3, 12)),
        ("version_policy: { all {} }", (1, 3, 12)),
        ("version_policy: { specific { versions: [ 1, 7 ] } }", (1,)),
    ],
)
def test_the_versions_that_triton_serves(policy: str, served: tuple[int, ...]) -> None:
    assert served_versions(f'backend: "pytorch" {policy}', [12, 1, 3], file="c") == served


@pytest.mark.parametrize("folder", ["01", "007", "old", "1_old", "-1", "\u0661", "9" * 40, "1.0"])
def test_only_folders_of_whole_numbers_without_zeros_before_them_are_versions(folder: str) -> None:
    paths = ["a/config.pbtxt", "a/1/model.pt", "a/1/labels.txt", f"a/{folder}/model.pt", "b/1/model.pt"]
    assert models_in(paths) == {"a": {1: ["a/1/model.pt", "a/1/labels.txt"]}}


def test_version_0_is_one() -> None:
    assert models_in(["a/config.pbtxt", "a/0/model.pt"]) == {"a": {0: ["a/0/model.pt"]}}
