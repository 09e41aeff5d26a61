"""Outputs that somebody recorded elsewhere: a ``.safetensors`` or ``.npz`` file for each model."""

import math
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final
from zipfile import BadZipFile

import numpy as np

from harness.artifacts.tensors.outputs import CallKey, Outputs
from harness.artifacts.tensors.recorded import bytes_of
from harness.artifacts.tensors.trees import Tree
from harness.core.errors import GoldenError
from harness.store.json import from_json
from harness.worker import wire

SUFFIXES: Final = (".safetensors", ".npz")
# What the format allows, https://github.com/huggingface/safetensors: its README, "Format".
MOST_HEADER_BYTES: Final = 100_000_000
# Names of dtypes in a header -> torch's.
DTYPES: Final = {
    "BOOL": "bool",
    "U8": "uint8",
    "I8": "int8",
    "U16": "uint16",
    "I16": "int16",
    "U32": "uint32",
    "I32": "int32",
    "U64": "uint64",
    "I64": "int64",
    "F8_E4M3": "float8_e4m3fn",
    "F8_E5M2": "float8_e5m2",
    "F16": "float16",
    "BF16": "bfloat16",
    "F32": "float32",
    "F64": "float64",
    "C64": "complex64",
}
Specs = Mapping[str, dict[str, Any]]


def read_outputs_file(path: Path) -> Outputs:
    """Return the outputs of a file: one call for each input set, a dict of tensors by their names.

    ``x`` is an output of the input set ``example``, ``monday/x`` one of ``monday``, as in files of requests.

    Raises:
        GoldenError: it is no such file, is damaged, or holds a dtype that torch has not.
    """
    try:
        specs, buffer = _npz(path) if path.suffix == ".npz" else _safetensors(path)
    except (OSError, ValueError, KeyError, TypeError, BadZipFile) as error:
        raise GoldenError(f"{path} cannot be read: {error}", "record it again, as .safetensors or .npz") from error
    if not specs:
        raise GoldenError(f"{path} holds no output", "record it again")
    calls: dict[CallKey, list[Tree]] = {}
    for name, spec in specs.items():
        input_set, _, output = name.rpartition("/")
        calls.setdefault((input_set or "example", 0), []).append([["str", output], ["tensor", spec]])
    return Outputs(calls={key: ["dict", entries] for key, entries in calls.items()}, buffer=buffer)


def _safetensors(path: Path) -> tuple[Specs, Any]:
    data = bytes_of(path)
    length = int.from_bytes(data[:8], "little")
    if len(data) < 8 or length > min(MOST_HEADER_BYTES, len(data) - 8):
        raise ValueError("no safetensors: its header is longer than the file")
    header = from_json(bytes(data[8 : 8 + length]))
    if not isinstance(header, dict) or not all(isinstance(entry, dict) for entry in header.values()):
        raise ValueError("no safetensors: its header is no object of tensors")
    return {name: _spec(name, entry, 8 + length) for name, entry in header.items() if name != "__metadata__"}, data


def _spec(name: str, entry: Mapping[str, Any], start: int) -> dict[str, Any]:
    if entry["dtype"] not in DTYPES:
        raise ValueError(f"{name} is {entry['dtype']}, which is no dtype of torch")
    begin, end = entry["data_offsets"]
    dtype, shape = DTYPES[entry["dtype"]], entry["shape"]
    if end - begin != math.prod(shape) * wire.DTYPE_BYTES[dtype]:
        raise ValueError(f"{name}: {end - begin} bytes are not {dtype} of shape {shape}")
    return {"dtype": dtype, "shape": shape, "offset": start + begin, "nbytes": end - begin}


def _npz(path: Path) -> tuple[Specs, bytes]:
    buffer, specs = bytearray(), {}
    with np.load(path, allow_pickle=False) as arrays:
        for name in arrays.files:
            array = np.ascontiguousarray(arrays[name]).reshape(arrays[name].shape)
            array = array.astype(array.dtype.newbyteorder("<"), copy=False)
            if array.dtype.name not in wire.DTYPE_BYTES:
                raise ValueError(f"{name} is {array.dtype}, which is no dtype of torch")
            spec = {"dtype": array.dtype.name, "shape": [*array.shape], "offset": len(buffer), "nbytes": array.nbytes}
            specs[name] = spec
            buffer += array.tobytes()
    return specs, bytes(buffer)


def output_files(path: Path) -> Mapping[str, Path]:
    """Return model -> its file: of a folder those below it, by their paths without suffix; of a file, that one.

    Raises:
        GoldenError: there is none, or two files are of one model.
    """
    if path.is_file():
        return {path.stem: path}
    files: dict[str, Path] = {}
    for model, file in _below(path):
        if model in files:
            raise GoldenError(f"{files[model]} and {file} are of one model", "keep one of them")
        files[model] = file
    if not files:
        what = f"no {' or '.join(SUFFIXES)} file and no golden folder" if path.is_dir() else "no such file or folder"
        raise GoldenError(f"{path}: {what}", "name a golden folder, a file of outputs, or a folder of such files")
    return files


def _below(folder: Path) -> Iterator[tuple[str, Path]]:
    for file in sorted(folder.rglob("*")):
        if file.suffix in SUFFIXES and file.is_file():
            yield str(file.relative_to(folder).with_suffix("")), file
