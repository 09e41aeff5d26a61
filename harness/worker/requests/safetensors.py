"""Reads ``.safetensors``: eight bytes with the length of a JSON header, the header, and the bytes of the tensors."""

import json
import os

import torch

from gate_worker.requests.flat import check_flat
from gate_worker.requests.values import BadInputs, from_bytes

MOST_HEADER_BYTES = 100_000_000  # the format's own limit
DTYPES = {
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


def read(path):
    """Return name -> tensor, in the order of the header.

    Raises:
        BadInputs: the file is not safetensors, is cut short, or holds a dtype that this release does not have.
    """
    with open(path, "rb") as stream:
        size = os.fstat(stream.fileno()).st_size
        header, start = _header(stream, size, path)
        check_flat(header, path)
        return {
            name: _tensor(stream, size, start, entry, "%s: tensor %r" % (path, name))
            for name, entry in header.items()
            if name != "__metadata__"
        }


def _header(stream, size, path):
    length = int.from_bytes(stream.read(8), "little") if size >= 8 else 0
    if length < 2 or length > min(MOST_HEADER_BYTES, size - 8):
        raise BadInputs(
            "%s is not safetensors, or cut short: its header would be %d bytes long, in a file of %d"
            % (path, length, size)
        )
    try:
        header = json.loads(stream.read(length).decode("utf-8"))
    except (ValueError, RecursionError) as error:
        raise BadInputs("%s is not safetensors: its header is no JSON: %s" % (path, str(error)[:200]))
    if not isinstance(header, dict):
        raise BadInputs("%s is not safetensors: its header is no JSON object" % path)
    return header, 8 + length


def _tensor(stream, size, start, entry, where):
    try:
        dtype_name, shape, (begin, end) = entry["dtype"], entry["shape"], entry["data_offsets"]
        whole = all(type(number) is int and number >= 0 for number in [*shape, begin, end])
    except (KeyError, TypeError, ValueError):
        whole = False
    if not whole:
        raise BadInputs("%s is not described by dtype, shape and data_offsets" % where)
    if not begin <= end <= size - start:
        raise BadInputs("%s ends at byte %d of %d: the file is cut short" % (where, end, size - start))
    dtype = getattr(torch, DTYPES.get(dtype_name, ""), None) if isinstance(dtype_name, str) else None
    if dtype is None:
        raise BadInputs("%s is %s, which torch %s does not have" % (where, dtype_name, torch.__version__))
    stream.seek(start + begin)
    return from_bytes(stream.read(end - begin), dtype, shape, where)
