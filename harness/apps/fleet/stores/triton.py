"""Triton model repositories: which file of a model is served, with which requests and which settings. Pure.

``config.pbtxt`` is read by protobuf's own parser of its text format, against what matters here of ``ModelConfig``
(https://github.com/triton-inference-server/common/blob/main/protobuf/model_config.proto); other fields are passed over.
Texts have names and no numbers, so the fields are numbered as they stand here.

What is served follows ``src/model_config_utils.cc`` and ``src/model_repository_manager/model_lifecycle.cc`` of
https://github.com/triton-inference-server/core. How inputs become arguments is known where the artifact is loaded, to
``harness/worker/requests/served.py``.
"""

import base64
import functools
import math
import re
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import Any, Final, NamedTuple

from harness.core.errors import ConfigError, EnvironmentUnavailable
from harness.core.models import ArtifactKind
from harness.serving.settings.table import ROWS

CONFIG: Final = "config.pbtxt"
DEFAULT_FILE: Final = "model.pt"
PACKAGE_FILE: Final = "model.pt2"
WARMUP_FOLDER: Final = "warmup"
MEND: Final = "mend the file, or leave the model out"
NEEDED: Final = "pip install protobuf, or torchscript-gate[fleet]"
TYPES: Final = (
    *("TYPE_INVALID", "TYPE_BOOL", "TYPE_UINT8", "TYPE_UINT16", "TYPE_UINT32", "TYPE_UINT64", "TYPE_INT8"),
    *("TYPE_INT16", "TYPE_INT32", "TYPE_INT64", "TYPE_FP16", "TYPE_FP32", "TYPE_FP64", "TYPE_STRING", "TYPE_BF16"),
)
# Those that are not here no request can have.
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
    "TYPE_STRING": "text",
    "TYPE_BF16": "bfloat16",
}
KINDS: Final = ("KIND_AUTO", "KIND_GPU", "KIND_CPU", "KIND_MODEL")
CONTROLS: Final = (
    *("CONTROL_SEQUENCE_START", "CONTROL_SEQUENCE_READY", "CONTROL_SEQUENCE_END", "CONTROL_SEQUENCE_CORRID"),
)
COUNTS: Final = (
    *("BATCH_ELEMENT_COUNT", "BATCH_ACCUMULATED_ELEMENT_COUNT", "BATCH_ACCUMULATED_ELEMENT_COUNT_WITH_ZERO"),
    *("BATCH_MAX_ELEMENT_COUNT_AS_SHAPE", "BATCH_ITEM_SHAPE", "BATCH_ITEM_SHAPE_FLATTEN"),
)
ENUMS: Final = {"DataType": TYPES, "GroupKind": KINDS, "ControlKind": CONTROLS, "CountKind": COUNTS}
# name:type of each field; * for a list, {} for a map from texts, ? for one of which only one is set.
MESSAGES: Final[Mapping[str, str]] = {
    "ModelConfig": "platform:string backend:string runtime:string version_policy:Policy max_batch_size:int32"
    " input:Input* instance_group:Group* default_model_filename:string parameters:Parameter{} batch_input:Count*"
    " sequence_batching:Sequences model_warmup:Warmup*",
    "Policy": "latest:Latest? all:All? specific:Specific?",
    "Latest": "num_versions:int64",
    "All": "",
    "Specific": "versions:int64*",
    "Input": "name:string data_type:DataType dims:int64* reshape:Reshape allow_ragged_batch:bool",
    "Reshape": "shape:int64*",
    "Group": "count:int32 kind:GroupKind",
    "Parameter": "string_value:string",
    "Count": "kind:CountKind target_name:string* data_type:DataType source_input:string*",
    "Sequences": "control_input:ControlInput* state:State*",
    "ControlInput": "name:string control:Control*",
    "Control": "kind:ControlKind data_type:DataType int32_false_true:int32* fp32_false_true:float*"
    " bool_false_true:bool*",
    "State": "input_name:string data_type:DataType dims:int64*",
    "Warmup": "name:string batch_size:int64 inputs:WarmupInput{}",
    "WarmupInput": "data_type:DataType dims:int64* zero_data:bool? random_data:bool? input_data_file:string?",
}
# Lists of messages need no colon before them, so the parser cannot pass over one that nothing describes.
SKIPPED: Final = (
    *("output", "batch_output", "optimization", "dynamic_batching", "ensemble_scheduling", "model_operations"),
    *("model_transaction_policy", "model_metrics", "model_repository_agents", "response_cache", "initial_state"),
    *("step", "gpu_execution_accelerator", "cpu_execution_accelerator", "execution_accelerators", "graph_spec"),
    *("secondary_devices", "rate_limiter", "resources", "agents", "metric_control", "oldest", "direct", "cuda"),
)
SKIPS: Final = ("Skipped", "ModelConfig", "Group", "Sequences", "State")
"""Messages in which these may stand."""
FIRST_SKIPPED: Final = 100
PYTORCH, LIBTORCH, AOTI = "pytorch", ("pytorch_libtorch", "libtorch"), "torch_aoti"
LOADS: Final = {**dict.fromkeys(LIBTORCH, ArtifactKind.TORCHSCRIPT), AOTI: ArtifactKind.PACKAGE}
# Batches of the described requests, as far as the model takes them: two, so that a second shape is met.
BATCHES: Final = (2, 5)
# What the backend has where the configuration says nothing: it runs models in inference mode.
DEFAULTS: Final = {"INFERENCE_MODE": "true"}
MOST_THREADS, MOST_INSTANCES = 1024, 64
MOST_INPUTS, MOST_DIMENSIONS, MOST_ELEMENTS = 256, 64, 1 << 28
MOST_VERSION_DIGITS, LONGEST_NAME = 18, 255
MOST_SHOWN: Final = 40


class _NotDescribed(Exception):
    """An input that no request can have; the message says why."""


@dataclass(frozen=True, kw_only=True, slots=True)
class TritonModel:
    """What a configuration says.

    Attributes:
        is_pytorch: whether Triton's PyTorch backend serves it; otherwise the rest is empty.
        backend: as the configuration says, or as Triton completes it; empty where nothing tells.
        loads: what the backend loads there; None where nothing tells.
        requests: what the worker makes requests of: the first with all inputs, whatever their values are, others with
            those that ``model_warmup`` gives; none where an input cannot be described.
    """

    is_pytorch: bool
    backend: str = ""
    file: str = DEFAULT_FILE
    loads: ArtifactKind | None = None
    requests: tuple[Mapping[str, Any], ...] = ()
    assignments: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()


def read_config(
    text: str,
    *,
    file: str,
    beside: Collection[str] = (),
    warmup_file: Callable[[str], bytes | None] = lambda _name: None,
) -> TritonModel:
    """Return what ``config.pbtxt`` says of a model.

    ``beside``: names of the files in the first version's folder, by which Triton completes a configuration;
    ``warmup_file`` returns what a file in the model's folder ``warmup`` holds. Raises ``ConfigError``: it is no text of
    a ``ModelConfig``; names the line where there is one; ``EnvironmentUnavailable``: protobuf is not installed.
    """
    config = _parsed(text, file)
    backend, platform = _completed(config, beside)
    if backend != PYTORCH:
        return TritonModel(is_pytorch=False, backend=_shown(backend or config.platform))
    named = config.default_model_filename
    if len(named) > LONGEST_NAME or not named.isprintable():
        raise ConfigError(f"{file}: default_model_filename is {_shown(named)}, and no name of a file", MEND)
    requests: tuple[Mapping[str, Any], ...] = ()
    notes = []
    try:
        inputs = _inputs(config)
        batches = tuple(dict.fromkeys(min(batch, config.max_batch_size) for batch in BATCHES if _batches(config)))
        runtime = config.runtime.endswith(".py")
        warmups, more = _warmups(config, inputs, ordered=runtime, warmup_file=warmup_file)
        notes += more
        requests = (
            _request("example", [_with_sizes(item, config) for item in inputs], batches, ordered=runtime),
            *warmups,
        )
    except _NotDescribed as error:
        notes.append(f"{CONFIG} describes no request: {error}")
    assignments, other_notes = _profile(config)
    return TritonModel(
        is_pytorch=True,
        backend=backend,
        file=named or (PACKAGE_FILE if platform == AOTI else DEFAULT_FILE),
        loads=LOADS.get(platform),
        requests=requests,
        assignments=assignments,
        notes=(*notes, *other_notes),
    )


def served_versions(text: str, versions: Sequence[int], *, file: str) -> tuple[int, ...]:
    """Return which of the versions of a model Triton serves: the newest, unless ``version_policy`` says otherwise."""
    policy = _parsed(text, file).version_policy
    ordered = sorted(versions)
    choice = policy.WhichOneof("choice")
    if choice == "all":
        return tuple(ordered)
    if choice == "specific":
        return tuple(version for version in ordered if version in set(policy.specific.versions))
    return tuple(ordered[-max(policy.latest.num_versions, 1) :])


def models_in(paths: Sequence[str]) -> dict[str, dict[int, list[str]]]:
    """Return the folder of each model -> version -> its files, for every ``NAME/config.pbtxt`` among ``paths``."""
    folders = {str(PurePosixPath(path).parent): path for path in paths if PurePosixPath(path).name == CONFIG}
    versions_of: dict[str, dict[int, list[str]]] = {folder: {} for folder in folders}
    for path in paths:
        parts = PurePosixPath(path)
        version, folder = parts.parent.name, str(parts.parent.parent)
        if folder in versions_of and _is_version(version):
            versions_of[folder].setdefault(int(version), []).append(path)
    return versions_of


def _is_version(folder: str) -> bool:
    """Whether Triton takes a folder for a version: a number without zeros before it."""
    is_number = folder.isascii() and folder.isdecimal() and len(folder) <= MOST_VERSION_DIGITS
    return is_number and (folder == "0" or not folder.startswith("0"))


def _completed(config: Any, beside: Collection[str]) -> tuple[str, str]:
    """Return backend and platform of a configuration, as Triton completes it where it does not say them."""
    backend, platform, named = config.backend, config.platform, config.default_model_filename
    if backend:
        return PYTORCH if backend in LIBTORCH else backend, platform
    if platform in (PYTORCH, *LIBTORCH, AOTI):
        return PYTORCH, platform
    if named in (DEFAULT_FILE, PACKAGE_FILE):
        return PYTORCH, platform
    if not platform and not named:
        for name, completed in ((DEFAULT_FILE, LIBTORCH[0]), (PACKAGE_FILE, AOTI)):
            if name in beside:
                return PYTORCH, completed
    return "", platform


def _batches(config: Any) -> bool:
    return bool(config.max_batch_size > 0)


def _request(
    name: str, inputs: Sequence[Mapping[str, Any]], batches: Sequence[int], *, ordered: bool
) -> Mapping[str, Any]:
    return {
        "name": name,
        "method": "forward",
        "said_by": CONFIG,
        "ordered": ordered,
        "batches": list(batches),
        "inputs": list(inputs),
    }


def _inputs(config: Any) -> list[dict[str, Any]]:
    """Return all tensors that the backend passes: of clients, states and control of sequences, counts of batches."""
    if not config.input:
        raise _NotDescribed("it names no input")
    inputs = [_input(item, config) for item in config.input]
    inputs += [
        _described("state", state.input_name, state, state.dims, batched=_batches(config))
        for state in config.sequence_batching.state
    ]
    inputs += [_control(item, batched=_batches(config)) for item in config.sequence_batching.control_input]
    for item in config.batch_input:
        inputs += [_count(item, name) for name in item.target_name]
    if len(inputs) > MOST_INPUTS:
        raise _NotDescribed(f"it has more than {MOST_INPUTS} inputs")
    names = [item["name"] for item in inputs]
    twice = next((name for name in names if names.count(name) > 1), None)
    if twice is not None:
        raise _NotDescribed(f"two inputs are called {_shown(twice)}")
    return inputs


def _input(item: Any, config: Any) -> dict[str, Any]:
    dims = item.reshape.shape if item.HasField("reshape") else item.dims
    if not dims and not item.HasField("reshape"):
        raise _NotDescribed(f"{_shown(item.name)} has no dims")
    ragged = item.allow_ragged_batch and _batches(config)
    made = _described("input", item.name, item, dims, batched=_batches(config) and not ragged)
    return {**made, "ragged": True} if ragged else made


def _described(kind: str, name: str, item: Any, dims: Sequence[int], *, batched: bool) -> dict[str, Any]:
    if not name:
        raise _NotDescribed(f"an {'input' if kind == 'input' else 'input for a state'} has no name")
    sizes = [int(size) for size in dims]
    wrong = next((size for size in sizes if size < -1 or size == 0), None)
    if wrong is not None:
        raise _NotDescribed(f"{_shown(name)} has a dimension of {wrong}, expected 1 or more, or -1")
    if len(sizes) > MOST_DIMENSIONS or math.prod(max(size, 1) for size in sizes) > MOST_ELEMENTS:
        raise _NotDescribed(f"{_shown(name)} has more than {MOST_ELEMENTS:,} elements, or {MOST_DIMENSIONS} dimensions")
    dtype = _dtype(name, item.data_type)
    return {"name": name, "kind": kind, "dtype": dtype, "dims": sizes, "batched": batched, "ragged": False}


def _dtype(name: str, number: int) -> str:
    known = TYPES[number] if 0 <= number < len(TYPES) else f"data type {number}"
    if known not in DTYPES:
        raise _NotDescribed(f"{_shown(name)} is of {known}")
    return DTYPES[known]


def _control(item: Any, *, batched: bool) -> dict[str, Any]:
    if len(item.control) != 1:
        raise _NotDescribed(f"{_shown(item.name)} has {len(item.control)} controls, expected 1")
    (control,) = item.control
    if not 0 <= control.kind < len(CONTROLS):
        raise _NotDescribed(f"{_shown(item.name)} is a control of kind {control.kind}")
    kind = CONTROLS[control.kind]
    made = {"name": item.name, "kind": "control", "dims": [1], "batched": batched, "ragged": False}
    if kind == "CONTROL_SEQUENCE_CORRID":
        return {**made, "dtype": _dtype(item.name, control.data_type), "cycle": [1, 2, 3, 4, 5]}
    for dtype, pair in (
        ("int32", control.int32_false_true),
        ("float32", control.fp32_false_true),
        ("bool", control.bool_false_true),
    ):
        if len(pair) == 2:
            no, yes = pair
            cycles = {"CONTROL_SEQUENCE_START": [yes, no], "CONTROL_SEQUENCE_END": [no, yes]}
            return {**made, "dtype": dtype, "cycle": cycles.get(kind, [yes])}
    raise _NotDescribed(f"{_shown(item.name)} gives no value for false and true")


def _count(item: Any, name: str) -> dict[str, Any]:
    dtype = _dtype(name, item.data_type)
    if not 0 <= item.kind < len(COUNTS) or not item.source_input or dtype not in ("float32", "int32"):
        raise _NotDescribed(f"{_shown(name)} is no batch_input that the server makes")
    return {
        "name": name,
        "kind": "batch",
        "dtype": dtype,
        "dims": [-1],
        "batched": False,
        "ragged": False,
        "counts": COUNTS[item.kind],
        "of": item.source_input[0],
    }


class _Warm(NamedTuple):
    """Inputs of one warm-up, each with its values where it gives them, and whether it gives any."""

    inputs: list[Mapping[str, Any]]
    has_values: bool


def _warmups(
    config: Any,
    inputs: Sequence[Mapping[str, Any]],
    *,
    ordered: bool,
    warmup_file: Callable[[str], bytes | None],
) -> tuple[list[Mapping[str, Any]], list[str]]:
    """Return the requests whose values ``model_warmup`` gives, and notes on what of them is not taken over."""
    requests: list[Mapping[str, Any]] = []
    notes = []
    for item in config.model_warmup:
        try:
            warm = _warm(item, inputs, warmup_file)
            batch = item.batch_size or 1
            if not 1 <= batch <= max(config.max_batch_size, 1):
                raise _NotDescribed(f"its batch_size is {item.batch_size}, and max_batch_size {config.max_batch_size}")
        except _NotDescribed as error:
            notes.append(f"model_warmup {_shown(item.name)} is not taken over: {error}")
            continue
        if warm.has_values and len(requests) < MOST_INPUTS:
            word = re.sub(r"\W", "_", item.name, flags=re.ASCII)[:MOST_SHOWN]
            name = f"warmup_{word}" if all(other["name"] != f"warmup_{word}" for other in requests) else ""
            batches = [batch] if _batches(config) else []
            requests.append(_request(name or f"warmup_{len(requests) + 1}_", warm.inputs, batches, ordered=ordered))
    return requests, notes


def _warm(item: Any, inputs: Sequence[Mapping[str, Any]], warmup_file: Callable[[str], bytes | None]) -> _Warm:
    has_values = False
    made: list[Mapping[str, Any]] = []
    for known in inputs:
        if known["name"] not in item.inputs:
            made.append(known)
            continue
        given = item.inputs[known["name"]]
        what = _described("input", known["name"], given, given.dims, batched=known["batched"])
        if what["dtype"] != known["dtype"] or -1 in what["dims"] or known["ragged"]:
            raise _NotDescribed(f"{_shown(known['name'])} is another there, or ragged")
        choice = given.WhichOneof("choice")
        values: dict[str, Any] = {}
        if choice == "zero_data" and what["dtype"] != "text":
            values = {"zero": True}
        elif choice == "input_data_file":
            data = warmup_file(given.input_data_file)
            if data is None or what["dtype"] == "text":
                raise _NotDescribed(f"{_shown(given.input_data_file)} is not read")
            values = {"bytes": base64.b64encode(data).decode()}
        has_values = has_values or bool(values)
        made.append({**known, "dims": what["dims"], **values})
    return _Warm(made, has_values)


def _with_sizes(item: Mapping[str, Any], config: Any) -> Mapping[str, Any]:
    """Return an input with open dimensions with the sizes that the first warm-up of it has, which are tried first."""
    if -1 not in item["dims"]:
        return item
    for warmup in config.model_warmup:
        if item["name"] in warmup.inputs:
            sizes = [int(size) for size in warmup.inputs[item["name"]].dims]
            if len(sizes) == len(item["dims"]) and 0 < math.prod(sizes) <= MOST_ELEMENTS and min(sizes) > 0:
                return {**item, "sizes": sizes}
    return item


def _shown(text: str) -> str:
    return text if text.isprintable() and len(text) <= MOST_SHOWN else f"{ascii(text)[:MOST_SHOWN]}..."


def _profile(config: Any) -> tuple[tuple[str, ...], tuple[str, ...]]:
    parameters = {**DEFAULTS, **{name: value.string_value for name, value in config.parameters.items()}}
    known = {row.triton: row for row in ROWS if row.triton}
    assignments, notes = [], []
    for name, text in sorted(parameters.items()):
        row = known.get(name)
        if row is None:
            notes.append(f"the parameter {_shown(name)} has no setting here")
            continue
        value = text.strip().lower()
        if row.values is bool and value in ("true", "false", "1", "0"):
            is_on = (value in ("true", "1")) != name.startswith("DISABLE_")
            assignments.append(f"{row.key}={str(is_on).lower()}")
        elif row.values is not bool and _is_count(value):
            assignments.append(f"{row.key}={int(value)}")
        else:
            expected = "true or false" if row.values is bool else f"1 to {MOST_THREADS:,}"
            notes.append(f"the parameter {name} is {ascii(text)[:MOST_SHOWN]}, expected {expected}")
    instances = sum(max(group.count, 1) for group in config.instance_group)
    if instances > MOST_INSTANCES:
        notes.append(f"it has {instances:,} instances: {MOST_INSTANCES} load at once here")
    if instances > 1:
        assignments.append(f"init_threads={min(instances, MOST_INSTANCES)}")
    if any(group.kind == KINDS.index("KIND_GPU") for group in config.instance_group):
        notes.append("its instances are on GPUs")
    return tuple(assignments), tuple(notes)


def _is_count(value: str) -> bool:
    is_number = value.isascii() and value.isdecimal() and len(value.lstrip("0")) <= len(str(MOST_THREADS))
    return is_number and 0 < int(value[-MOST_SHOWN:]) <= MOST_THREADS


def _parsed(text: str, file: str) -> Any:
    try:
        from google.protobuf import text_format  # noqa: PLC0415  only a Triton repository needs it
    except ImportError as error:
        raise EnvironmentUnavailable(f"{file}: reading it needs protobuf, which is not installed", NEEDED) from error
    try:
        return text_format.Parse(text, _message_class()(), allow_unknown_field=True)
    except RecursionError:
        raise ConfigError(f"{file}: no configuration of Triton: it is nested too deeply", MEND) from None
    except (text_format.ParseError, ValueError, OverflowError) as error:  # numbers that no field holds, odd escapes
        raise ConfigError(f"{file}: no configuration of Triton: {_shown_error(error)}", MEND) from None


def _shown_error(error: Exception) -> str:
    text = " ".join(str(error).split())
    return text if len(text) <= 300 else f"{text[:300]}..."


@functools.cache
def _message_class() -> Any:
    """Return the class of ``ModelConfig``, of the fields that are read here, with Triton's names and types."""
    from google.protobuf import descriptor_pb2, descriptor_pool, message_factory  # noqa: PLC0415

    field = descriptor_pb2.FieldDescriptorProto
    file = descriptor_pb2.FileDescriptorProto(name="gate/model_config.proto", package="gate", syntax="proto3")
    for name, values in ENUMS.items():
        enum = file.enum_type.add(name=name)
        for number, value in enumerate(values):
            enum.value.add(name=value, number=number)
    for name, spec in {"Skipped": "", **MESSAGES}.items():
        message = file.message_type.add(name=name)
        for number, (label, kind, mark) in enumerate(_fields(spec), start=1):
            made = message.field.add(
                name=label, number=number, label=field.LABEL_REPEATED if mark in ("*", "{}") else 1
            )
            if mark == "{}":
                _add_entry(message, label, kind)
                made.type, made.type_name = field.TYPE_MESSAGE, f".gate.{name}.{_entry(label)}"
            else:
                _set_type(made, kind)
            if mark == "?":
                made.oneof_index = 0
        if any(mark == "?" for _, _, mark in _fields(spec)):
            message.oneof_decl.add(name="choice")
        for number, label in enumerate(SKIPPED if name in SKIPS else (), start=FIRST_SKIPPED):
            _set_type(message.field.add(name=label, number=number, label=field.LABEL_REPEATED), "Skipped")
    pool = descriptor_pool.DescriptorPool()
    pool.Add(file)
    return message_factory.GetMessageClass(pool.FindMessageTypeByName("gate.ModelConfig"))


def _fields(spec: str) -> Iterator[tuple[str, str, str]]:
    for item in spec.split():
        match = re.fullmatch(r"(\w+):(\w+)(\*|\{\}|\?)?", item)
        assert match is not None, item
        yield match[1], match[2], match[3] or ""


def _entry(label: str) -> str:
    return f"{label.title().replace('_', '')}Entry"


def _add_entry(message: Any, label: str, kind: str) -> None:
    entry = message.nested_type.add(name=_entry(label))
    for number, (name, of) in enumerate((("key", "string"), ("value", kind)), start=1):
        _set_type(entry.field.add(name=name, number=number, label=1), of)
    entry.options.map_entry = True


def _set_type(made: Any, kind: str) -> None:
    if kind in MESSAGES or kind == "Skipped":
        made.type, made.type_name = made.TYPE_MESSAGE, f".gate.{kind}"
    elif kind in ENUMS:
        made.type, made.type_name = made.TYPE_ENUM, f".gate.{kind}"
    else:
        made.type = getattr(made, f"TYPE_{kind.upper()}")
