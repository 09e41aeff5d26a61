"""Triton model repositories: which file of a model is served, with which requests and which settings. Pure.

``config.pbtxt`` is read by protobuf's own parser of its text format, against what matters here of ``ModelConfig``
(https://github.com/triton-inference-server/common/blob/main/protobuf/model_config.proto); other fields are passed over.
Texts have names and no numbers, so the fields are numbered as they stand here.
"""

import functools
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import Any, Final

from harness.errors import ConfigError
from harness.settings.table import ROWS

CONFIG: Final = "config.pbtxt"
DEFAULT_FILE: Final = "model.pt"
NEEDED: Final = "pip install protobuf, or torchscript-upgrade-gate[fleet]"
TYPES: Final = (
    *("TYPE_INVALID", "TYPE_BOOL", "TYPE_UINT8", "TYPE_UINT16", "TYPE_UINT32", "TYPE_UINT64", "TYPE_INT8"),
    *("TYPE_INT16", "TYPE_INT32", "TYPE_INT64", "TYPE_FP16", "TYPE_FP32", "TYPE_FP64", "TYPE_STRING", "TYPE_BF16"),
)
# Those that are not here no described request can have.
DTYPES: Final[Mapping[str, str]] = {
    "TYPE_BOOL": "bool",
    "TYPE_UINT8": "uint8",
    "TYPE_INT8": "int8",
    "TYPE_INT16": "int16",
    "TYPE_INT32": "int32",
    "TYPE_INT64": "int64",
    "TYPE_FP16": "float16",
    "TYPE_FP32": "float32",
    "TYPE_FP64": "float64",
    "TYPE_BF16": "bfloat16",
}
# Lists of messages need no colon before them, so the parser cannot pass over one that nothing describes.
SKIPPED: Final = (
    *("output", "batch_input", "batch_output", "optimization", "dynamic_batching", "sequence_batching"),
    *("ensemble_scheduling", "model_warmup", "model_operations", "model_transaction_policy", "model_metrics"),
    *("model_repository_agents", "response_cache", "control_input", "control", "state", "initial_state", "step"),
    *("gpu_execution_accelerator", "cpu_execution_accelerator", "execution_accelerators", "graph_spec", "inputs"),
    *("secondary_devices", "rate_limiter", "resources", "agents", "metric_control", "oldest", "direct", "cuda"),
)
FIRST_SKIPPED: Final = 100
PYTORCH: Final = ("pytorch", "pytorch_libtorch")
KINDS: Final = ("KIND_AUTO", "KIND_GPU", "KIND_CPU", "KIND_MODEL")
# Of a dimension that the configuration leaves open; chosen small, and no divisor of usual sizes' neighbours.
OPEN_DIMENSION: Final = 8
# Batches of the described requests, as far as the model takes them: two, so that a second shape is met.
BATCHES: Final = (2, 5)
# What the backend has where the configuration says nothing: it runs models in inference mode.
DEFAULTS: Final = {"INFERENCE_MODE": "true"}
POSITION: Final = re.compile(r"__(\d+)\Z")


@dataclass(frozen=True, kw_only=True, slots=True)
class TritonModel:
    """What a configuration says.

    Attributes:
        is_pytorch: whether Triton's PyTorch backend serves it; otherwise the rest is empty.
        file: name of the artifact in a version's folder.
        requests: as ``models.toml`` describes them; none where an input cannot be described.
        assignments: its serving profile, as of ``--set``.
        notes: what could not be taken over.
    """

    is_pytorch: bool
    file: str = DEFAULT_FILE
    requests: tuple[Mapping[str, Any], ...] = ()
    assignments: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()


def read_config(text: str, *, file: str) -> TritonModel:
    """Return what ``config.pbtxt`` says of a model.

    Raises:
        ConfigError: it is no text of a ``ModelConfig``; names the line. Or protobuf is not installed.
    """
    config = _parsed(text, file)
    if config.backend not in PYTORCH and config.platform not in PYTORCH:
        return TritonModel(is_pytorch=False)
    inputs = _in_order(config.input)
    why_not = next((why for item in inputs if (why := _why_not_described(item))), "")
    if not inputs:
        why_not = "it names no input"
    notes = [f"{CONFIG} describes no request: {why_not}"] if why_not else []
    requests = () if why_not else tuple(_requests(inputs, config.max_batch_size))
    assignments, more = _profile(config)
    return TritonModel(
        is_pytorch=True,
        file=config.default_model_filename or DEFAULT_FILE,
        requests=requests,
        assignments=assignments,
        notes=(*notes, *more),
    )


def served_versions(text: str, versions: Sequence[int], *, file: str) -> tuple[int, ...]:
    """Return which of the versions of a model Triton serves: the newest, unless ``version_policy`` says otherwise."""
    policy = _parsed(text, file).version_policy
    ordered = sorted(versions)
    choice = policy.WhichOneof("policy_choice")
    if choice == "all":
        return tuple(ordered)
    if choice == "specific":
        return tuple(version for version in ordered if version in set(policy.specific.versions))
    return tuple(ordered[-max(policy.latest.num_versions, 1) :])


def models_in(paths: Sequence[str]) -> dict[str, dict[int, list[str]]]:
    """Return the folder of each model -> version -> its files, for every ``NAME/config.pbtxt`` among ``paths``."""
    folders = {str(PurePosixPath(path).parent): path for path in paths if PurePosixPath(path).name == CONFIG}
    found: dict[str, dict[int, list[str]]] = {folder: {} for folder in folders}
    for path in paths:
        parts = PurePosixPath(path)
        version, folder = parts.parent.name, str(parts.parent.parent)
        if folder in found and version.isdecimal() and version != "0":
            found[folder].setdefault(int(version), []).append(path)
    return found


def _in_order(inputs: Sequence[Any]) -> list[Any]:
    """Return the inputs as the model takes them: ``NAME__POSITION`` says it, else the order in which they stand."""
    placed = [(int(found[1]), item) for item in inputs if (found := POSITION.search(item.name)) is not None]
    if len(placed) < len(inputs):
        return list(inputs)
    return [item for _, item in sorted(placed, key=lambda pair: pair[0])]


def _why_not_described(item: Any) -> str:
    named = TYPES[item.data_type]
    return "" if named in DTYPES else f"{item.name} is of {named}"


def _requests(inputs: Sequence[Any], max_batch_size: int) -> list[Mapping[str, Any]]:
    batches = [min(batch, max_batch_size) for batch in BATCHES] if max_batch_size > 0 else [0]
    names = ("example", "larger")
    return [
        {"name": name, "method": "forward", "arguments": [_argument(item, batch) for item in inputs]}
        for name, batch in zip(names, dict.fromkeys(batches), strict=False)
    ]


def _argument(item: Any, batch: int) -> Mapping[str, Any]:
    dims = item.reshape.shape if item.HasField("reshape") else item.dims
    shape = [OPEN_DIMENSION if size < 0 else int(size) for size in dims]
    return {"shape": [*([batch] if batch else []), *shape], "dtype": DTYPES[TYPES[item.data_type]]}


def _profile(config: Any) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return the settings that the parameters and the instances mean, and what has no setting here."""
    said = {**DEFAULTS, **{name: value.string_value for name, value in config.parameters.items()}}
    known = {row.triton: row for row in ROWS if row.triton}
    assignments, notes = [], []
    for name, text in sorted(said.items()):
        row = known.get(name)
        if row is None:
            notes.append(f"the parameter {name} has no setting here")
            continue
        value = text.strip().lower()
        if row.values is bool and value in ("true", "false", "1", "0"):
            is_on = (value in ("true", "1")) != name.startswith("DISABLE_")
            assignments.append(f"{row.key}={str(is_on).lower()}")
        elif row.values is not bool and value.isdecimal() and int(value) > 0:
            assignments.append(f"{row.key}={int(value)}")
        else:
            notes.append(f"the parameter {name} is {text!r}, which is no value of it")
    instances = sum(group.count or 1 for group in config.instance_group)
    if instances > 1:
        assignments.append(f"init_threads={instances}")
    if any(KINDS[group.kind] == "KIND_GPU" for group in config.instance_group if group.kind < len(KINDS)):
        notes.append("its instances are on GPUs")
    return tuple(assignments), tuple(notes)


def _parsed(text: str, file: str) -> Any:
    try:
        from google.protobuf import text_format  # noqa: PLC0415  only a Triton repository needs it
    except ImportError as error:
        raise ConfigError(f"{file}: reading it needs protobuf", NEEDED) from error
    try:
        return text_format.Parse(text, _message_class()(), allow_unknown_field=True)
    except text_format.ParseError as error:
        raise ConfigError(
            f"{file}: no configuration of Triton: {error}", "mend the file, or leave the model out"
        ) from None


@functools.cache
def _message_class() -> Any:
    """Return the class of ``ModelConfig``, of the fields that are read here, with Triton's numbers and types."""
    from google.protobuf import descriptor_pb2, descriptor_pool, message_factory  # noqa: PLC0415

    field = descriptor_pb2.FieldDescriptorProto
    file = descriptor_pb2.FileDescriptorProto(name="gate/model_config.proto", package="gate", syntax="proto3")

    def enum(name: str, values: Sequence[str]) -> None:
        made = file.enum_type.add(name=name)
        for number, value in enumerate(values):
            made.value.add(name=value, number=number)

    def message(name: str, *fields: tuple[str, Any, str, bool], of: Any = None) -> Any:
        made = (of.nested_type if of is not None else file.message_type).add(name=name)
        for number, (label, kind, type_name, repeated) in enumerate(fields, start=1):
            made.field.add(
                name=label,
                number=number,
                type=kind,
                type_name=type_name or None,
                label=field.LABEL_REPEATED if repeated else field.LABEL_OPTIONAL,
            )
        return made

    def skipped(of: Any) -> None:
        for number, name in enumerate(SKIPPED, start=FIRST_SKIPPED):
            of.field.add(
                name=name, number=number, type=field.TYPE_MESSAGE, type_name=".gate.Skipped", label=field.LABEL_REPEATED
            )

    text, whole, many = (field.TYPE_STRING, ""), (field.TYPE_INT64, ""), True
    enum("DataType", TYPES)
    enum("Kind", KINDS)
    skipped(message("Skipped"))
    message("Reshape", ("shape", *whole, many))
    message(
        "Input",
        ("name", *text, False),
        ("data_type", field.TYPE_ENUM, ".gate.DataType", False),
        ("dims", *whole, many),
        ("reshape", field.TYPE_MESSAGE, ".gate.Reshape", False),
    )
    skipped(message("Group", ("count", *whole, False), ("kind", field.TYPE_ENUM, ".gate.Kind", False)))
    message("Parameter", ("string_value", *text, False))
    message("Latest", ("num_versions", *whole, False))
    message("All")
    message("Specific", ("versions", *whole, many))
    policy = message(
        "Policy",
        ("latest", field.TYPE_MESSAGE, ".gate.Latest", False),
        ("all", field.TYPE_MESSAGE, ".gate.All", False),
        ("specific", field.TYPE_MESSAGE, ".gate.Specific", False),
    )
    policy.oneof_decl.add(name="policy_choice")
    for choice in policy.field:
        choice.oneof_index = 0
    config = message(
        "ModelConfig",
        ("platform", *text, False),
        ("backend", *text, False),
        ("version_policy", field.TYPE_MESSAGE, ".gate.Policy", False),
        ("max_batch_size", *whole, False),
        ("input", field.TYPE_MESSAGE, ".gate.Input", many),
        ("instance_group", field.TYPE_MESSAGE, ".gate.Group", many),
        ("default_model_filename", *text, False),
        ("parameters", field.TYPE_MESSAGE, ".gate.ModelConfig.ParametersEntry", many),
    )
    skipped(config)
    entry = message(
        "ParametersEntry",
        ("key", *text, False),
        ("value", field.TYPE_MESSAGE, ".gate.Parameter", False),
        of=config,
    )
    entry.options.map_entry = True
    pool = descriptor_pool.DescriptorPool()
    pool.Add(file)
    return message_factory.GetMessageClass(pool.FindMessageTypeByName("gate.ModelConfig"))
