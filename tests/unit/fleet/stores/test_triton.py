"""Triton's configurations: requests and profile of what is served, and nothing made up of what is not described."""

import pytest

from harness.errors import ConfigError
from harness.fleet.stores.triton import models_in, read_config, served_versions

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
sequence_batching { control_input [ { name: "START" control [ { kind: CONTROL_SEQUENCE_START } ] } ] }
optimization { execution_accelerators { gpu_execution_accelerator : [ { name : "tensorrt" } ] } }
model_warmup [ { name: "one" batch_size: 1 inputs { key: "INPUT__0" value { data_type: TYPE_FP32 dims: 6 } } } ]
parameters: { key: "DISABLE_OPTIMIZED_EXECUTION" value: { string_value: "true" } }
parameters: { key: "INTRA_OP_THREAD_COUNT" value: { string_value: "4" } }
parameters: { key: "ENABLE_NVFUSER" value: { string_value: "true" } }
"""


def config(text: str) -> str:
    return f'backend: "pytorch"\n{text}'


def test_inputs_become_requests_of_two_batches_in_the_order_of_their_positions() -> None:
    model = read_config(RANKER, file="config.pbtxt")
    assert [request["name"] for request in model.requests] == ["example", "larger"]
    assert model.requests[0]["arguments"] == [
        {"shape": [2, 6], "dtype": "float32"},
        {"shape": [2, 8], "dtype": "int64"},
    ]
    assert model.requests[1]["arguments"][0]["shape"] == [5, 6]


def test_parameters_and_instances_become_the_serving_profile() -> None:
    model = read_config(RANKER, file="config.pbtxt")
    assert model.assignments == (
        "serving.switches.optimized_execution=false",
        "serving.switches.inference_mode=true",  # the backend's default
        "serving.intra_op_threads=4",
        "init_threads=2",
    )
    assert model.notes == ("the parameter ENABLE_NVFUSER has no setting here", "its instances are on GPUs")


def test_without_batches_a_model_is_asked_once_in_the_shape_that_stands_there() -> None:
    text = config('input { name: "x" data_type: TYPE_BF16 dims: [ 3, 4 ] reshape { shape: [ 12 ] } }')
    (request,) = read_config(text, file="c").requests
    assert request["arguments"] == [{"shape": [12], "dtype": "bfloat16"}]


@pytest.mark.parametrize("kind", ["TYPE_STRING", "TYPE_UINT32"])
def test_what_cannot_be_described_is_said_and_not_made_up(kind: str) -> None:
    model = read_config(config(f'input {{ name: "words" data_type: {kind} dims: 1 }}'), file="c")
    assert model.requests == ()
    assert kind in model.notes[0] and "words" in model.notes[0]


def test_a_value_that_is_none_of_its_parameter_is_told() -> None:
    text = config('parameters { key: "INTRA_OP_THREAD_COUNT" value { string_value: "many" } }')
    model = read_config(text, file="c")
    assert model.assignments == ("serving.switches.inference_mode=true",)
    assert any("'many'" in note for note in model.notes)


def test_models_of_other_backends_are_none_of_ours() -> None:
    assert not read_config('platform: "onnxruntime_onnx" max_batch_size: 4', file="c").is_pytorch


def test_a_text_that_is_no_configuration_is_refused_with_its_line() -> None:
    with pytest.raises(ConfigError, match=r"ranker/config.pbtxt: no configuration of Triton: 2"):
        read_config('backend: "pytorch"\nmax_batch_size: "eight"', file="ranker/config.pbtxt")


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
    assert served_versions(config(policy), [12, 1, 3], file="c") == served


def test_only_numbered_folders_below_a_configuration_are_versions() -> None:
    paths = ["a/config.pbtxt", "a/1/model.pt", "a/1/labels.txt", "a/old/model.pt", "a/0/model.pt", "b/1/model.pt"]
    assert models_in(paths) == {"a": {1: ["a/1/model.pt", "a/1/labels.txt"]}}
