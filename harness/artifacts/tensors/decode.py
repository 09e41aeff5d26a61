"""Wire tensors to NumPy: a spec and the bytes it points into become exact numbers.

The worker writes elements in row-major order whatever the tensor's strides were, so ``stride`` in a spec is
information about the tensor and not about the bytes.
"""

import math
import mmap
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from harness.worker import wire

Array: TypeAlias = npt.NDArray[Any]
Spec: TypeAlias = Mapping[str, Any]
Buffer: TypeAlias = bytes | bytearray | memoryview | mmap.mmap

# What one stored element is, before any conversion. All little-endian.
STORED: dict[str, np.dtype[Any]] = {
    **{name: np.dtype(name).newbyteorder("<") for name in ("uint8", "int8", "int16", "int32", "int64")},
    **{name: np.dtype(name).newbyteorder("<") for name in ("uint16", "uint32", "uint64", "complex64", "complex128")},
    **{name: np.dtype(name).newbyteorder("<") for name in ("float16", "float32", "float64")},
    "bool": np.dtype("uint8"),
    "bfloat16": np.dtype("<u2"),
    "complex32": np.dtype(("<f2", (2,))),
    "float8_e4m3fn": np.dtype("uint8"),
    "float8_e5m2": np.dtype("uint8"),
    "float8_e4m3fnuz": np.dtype("uint8"),
    "float8_e5m2fnuz": np.dtype("uint8"),
    "quint8": np.dtype("uint8"),
    "qint8": np.dtype("int8"),
    "qint32": np.dtype("<i4"),
}


# Of NumPy 1, less the one that complex parts get.
MOST_AXES = 31


class DecodeError(ValueError):
    """Raised when a wire tree or tensor spec contradicts itself or the bytes it points to."""


@dataclass(frozen=True, slots=True)
class Float8Format:
    """The layout of an 8-bit float: sign, ``8 - 1 - mantissa_bits`` exponent bits, mantissa.

    ``kind`` says what the special codes are: ``"ieee"`` has infinities and NaNs in the top exponent, ``"fn"`` only
    a NaN in the all-ones code, ``"fnuz"`` only a NaN, in the code that would be minus zero.
    """

    mantissa_bits: int
    bias: int
    kind: str


# Source: "FP8 Formats for Deep Learning" (arXiv 2209.05433) for e4m3fn and e5m2; "8-bit Numerical Formats for Deep
# Neural Networks" (arXiv 2206.02915) for the fnuz variants, whose bias is one more.
FLOAT8 = {
    "float8_e4m3fn": Float8Format(mantissa_bits=3, bias=7, kind="fn"),
    "float8_e5m2": Float8Format(mantissa_bits=2, bias=15, kind="ieee"),
    "float8_e4m3fnuz": Float8Format(mantissa_bits=3, bias=8, kind="fnuz"),
    "float8_e5m2fnuz": Float8Format(mantissa_bits=2, bias=16, kind="fnuz"),
}


@dataclass(frozen=True, kw_only=True, slots=True)
class Decoded:
    """One tensor as numbers.

    Attributes:
        raw: stored elements in the tensor's shape: bit patterns (uint16) for bfloat16, codes for float8 and
            quantized dtypes, a trailing axis of 2 for complex32; else the same as ``values``.
        values: what they mean: bfloat16 and float8 as float32, complex32 as complex64 (all exact), quantized
            dequantized to float64, bool as bool, the rest as stored.
        scales, zero_points: float64, broadcastable to ``values``, for quantized tensors only.
        sha256: of the bytes, if the spec has it.
        plain: a Python number of the tree, not a tensor: it has no dtype of its own.
    """

    dtype: str
    raw: Array
    values: Array
    scales: Array | None = None
    zero_points: Array | None = None
    sha256: str | None = None
    plain: bool = False


def decode(spec: Spec, buffer: Buffer) -> Decoded:
    """Return the numbers of one wire tensor; zero-copy where the bytes allow it.

    ``spec``: a tensor's spec as in ``docs/formats/wire.md``, or one from ``plain_number``; ``buffer``: the bytes of
    ``tensors.bin``. Arrays may view it: an ``mmap`` cannot be closed before they go. Raises ``DecodeError``: unknown
    dtype; impossible shape; ``nbytes`` that do not fit shape and dtype; an offset outside the buffer; a quantizer that
    is missing, superfluous or of another length than its axis.
    """
    dtype, shape = _dtype_and_shape(spec)
    if "plain" in spec:
        return _decode_plain(spec, dtype)
    raw = _stored(spec, dtype, shape, buffer)
    sha256 = spec.get("sha256")
    if dtype in wire.QUANTIZED:
        scales, zero_points = _quantizer(spec, shape)
        values = np.asarray((raw.astype(np.float64) - zero_points) * scales)
        return Decoded(dtype=dtype, raw=raw, values=values, scales=scales, zero_points=zero_points, sha256=sha256)
    if "quantizer" in spec:
        raise DecodeError(f"{dtype} has a quantizer, but is not a quantized dtype")
    return Decoded(dtype=dtype, raw=raw, values=_meaning(dtype, raw), sha256=sha256)


def verify(spec: Spec, buffer: Buffer) -> None:
    """Raise what ``decode`` would raise, without making the numbers."""
    dtype, shape = _dtype_and_shape(spec)
    _stored(spec, dtype, shape, buffer, copy=False)
    if dtype in wire.QUANTIZED:
        _quantizer(spec, shape)
    elif "quantizer" in spec:
        raise DecodeError(f"{dtype} has a quantizer, but is not a quantized dtype")


def plain_number(kind: str, content: Any) -> Spec:
    """Return the spec of a Python number of the tree, so that it compares like a 0-d tensor.

    ``kind``: ``"float"`` or ``"complex"``; ``content``: its wire value: ``repr``, or the two of real and imaginary
    part. Raises ``DecodeError``: ``content`` is no such number.
    """
    try:
        numbers = (float(content),) if kind == "float" else tuple(float(part) for part in _two(content))
    except (TypeError, ValueError):
        raise DecodeError(f"{content!r} is no {kind}") from None
    return {"dtype": "float64" if kind == "float" else "complex128", "shape": (), "plain": numbers}


def element_count(spec: Spec) -> int:
    """Return the number of elements that the shape of ``spec`` promises."""
    return math.prod(spec["shape"])


@cache
def float8_table(dtype: str) -> npt.NDArray[np.float32]:
    """Return the 256 values of a float8 dtype, indexed by code; float32 holds each exactly."""
    form = FLOAT8[dtype]
    table = np.array([_float8_value(code, form) for code in range(256)], dtype=np.float32)
    table.setflags(write=False)
    return table


def _float8_value(code: int, form: Float8Format) -> float:
    top_exponent = (1 << (7 - form.mantissa_bits)) - 1
    exponent = (code & 0x7F) >> form.mantissa_bits
    mantissa = code & ((1 << form.mantissa_bits) - 1)
    sign = -1.0 if code & 0x80 else 1.0
    if form.kind == "fnuz" and code == 0x80:  # the code of minus zero
        return math.nan
    if form.kind == "fn" and code & 0x7F == 0x7F:  # all ones
        return math.nan
    if form.kind == "ieee" and exponent == top_exponent:
        return sign * math.inf if mantissa == 0 else math.nan
    if exponent == 0:
        return sign * math.ldexp(mantissa, 1 - form.bias - form.mantissa_bits)
    return sign * math.ldexp(mantissa + (1 << form.mantissa_bits), exponent - form.bias - form.mantissa_bits)


def _dtype_and_shape(spec: Spec) -> tuple[str, tuple[int, ...]]:
    dtype, shape = spec.get("dtype"), spec.get("shape")
    if dtype not in STORED:
        raise DecodeError(f"unknown dtype {dtype!r}")
    if not isinstance(shape, list | tuple) or not all(type(size) is int and size >= 0 for size in shape):
        raise DecodeError(f"impossible shape {shape!r}")
    return str(dtype), tuple(shape)


def _stored(spec: Spec, dtype: str, shape: tuple[int, ...], buffer: Buffer, *, copy: bool = True) -> Array:
    offset, nbytes = spec.get("offset"), spec.get("nbytes")
    if type(offset) is not int or type(nbytes) is not int:
        raise DecodeError(f"offset {offset!r} and nbytes {nbytes!r} must be integers")
    count = math.prod(shape)
    needed = count * wire.DTYPE_BYTES[dtype]
    if nbytes != needed:
        raise DecodeError(f"{dtype} of shape {shape} needs {needed} bytes, the spec says {nbytes}")
    with memoryview(buffer) as view:
        available = view.nbytes
    if offset < 0 or offset + nbytes > available:
        raise DecodeError(f"bytes {offset} to {offset + nbytes} lie outside the buffer of {available}")
    stored = STORED[dtype]
    if count == 0:
        try:
            return np.empty(shape, dtype=stored)
        except ValueError as error:
            raise DecodeError(f"impossible shape {shape}: {error}") from None
    if len(shape) > MOST_AXES:
        raise DecodeError(f"impossible shape: {len(shape)} axes")
    array = np.frombuffer(buffer, dtype=stored, count=count, offset=offset)
    if copy and not array.flags.aligned:
        array = array.copy()
    return array.reshape(shape + stored.shape)


def _meaning(dtype: str, raw: Array) -> Array:
    if dtype == "bfloat16":
        return np.asarray(raw.astype(np.uint32) << np.uint32(16)).view(np.float32)
    if dtype in FLOAT8:
        return np.asarray(float8_table(dtype)[raw])
    if dtype == "complex32":
        parts = np.ascontiguousarray(raw.astype(np.float32))
        return parts.view(np.complex64).reshape(raw.shape[:-1])
    if dtype == "bool":
        # A byte other than 0 and 1 is true in torch; viewed as a NumPy bool it would be neither.
        return np.asarray(raw != 0)
    return raw


def _quantizer(spec: Spec, shape: tuple[int, ...]) -> tuple[Array, Array]:
    quantizer = spec.get("quantizer")
    if not isinstance(quantizer, Mapping):
        raise DecodeError(f"{spec['dtype']} without a quantizer")
    try:
        if "axis" not in quantizer:
            return np.asarray(float(quantizer["scale"])), np.asarray(float(quantizer["zero_point"]))
        axis, scales = quantizer["axis"], np.asarray(quantizer["scales"], dtype=np.float64)
        zero_points = np.asarray(quantizer["zero_points"], dtype=np.float64)
        channels = shape[axis]
    except (KeyError, IndexError, TypeError, ValueError) as error:
        raise DecodeError(f"damaged quantizer {quantizer!r}: {error!r}") from None
    if scales.shape != (channels,) or zero_points.shape != (channels,):
        raise DecodeError(f"quantizer of {scales.size} scales, {zero_points.size} zero points for {channels} channels")
    along = [1] * len(shape)
    along[axis] = channels
    return scales.reshape(along), zero_points.reshape(along)


def _two(content: Any) -> tuple[Any, Any]:
    real, imaginary = content
    return real, imaginary


def _decode_plain(spec: Spec, dtype: str) -> Decoded:
    parts = spec["plain"]
    values = np.array(parts[0] if dtype == "float64" else complex(*parts), dtype=dtype)
    return Decoded(dtype=dtype, raw=values, values=values, plain=True)
