"""Bytes and specs to numbers."""

import math
import mmap
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from harness.artifacts.tensors.decode import FLOAT8, STORED, DecodeError, decode, float8_table, plain_number
from harness.worker import wire
from tests.unit.builders.tensors import Recorder, bfloat16_patterns, decoded


def spec(**changes: Any) -> dict[str, Any]:
    return {"dtype": "float32", "shape": [2], "stride": [1], "offset": 0, "nbytes": 8} | changes


def test_every_wire_dtype_has_a_stored_form_of_its_size() -> None:
    assert {name: stored.itemsize for name, stored in STORED.items()} == wire.DTYPE_BYTES


@pytest.mark.parametrize(
    "name",
    [
        "float16", "float32", "float64", "complex64", "complex128", "int8", "int16", "int32", "int64", "uint8",
        "uint16", "uint32", "uint64",
    ],
)  # fmt: skip
def test_numpy_dtypes_come_back_bit_for_bit(name: str) -> None:
    values = np.array([[0, 1, 2], [3, 4, 5]], dtype=name)
    assert decoded(values).values.tobytes() == values.tobytes()
    assert decoded(values).values.shape == (2, 3)


def test_bool_reads_any_nonzero_byte_as_true() -> None:
    values = decoded(np.array([0, 1, 2, 255], dtype=np.uint8), "bool").values
    assert values.dtype == np.bool_
    assert values.tolist() == [False, True, True, True]


def test_bfloat16_widens_exactly() -> None:
    exact = [0.0, -0.0, 1.0, -2.5, math.inf, 2.0**-133, 3.3895313892515355e38]
    tensor = decoded(bfloat16_patterns(exact), "bfloat16")
    assert tensor.values.dtype == np.float32
    assert tensor.values.tolist() == exact
    assert math.copysign(1.0, tensor.values[1]) == -1.0


def test_complex32_joins_real_and_imaginary_halves() -> None:
    parts = np.array([[1.0, -2.0], [0.5, 65504.0]], dtype=np.float16)
    assert decoded(parts, "complex32", [2]).values.tolist() == [1 - 2j, 0.5 + 65504j]


# Source of the extremes: table 1 of arXiv 2209.05433; the fnuz ones as printed by torch.finfo.
@pytest.mark.parametrize(
    ("dtype", "largest", "smallest", "nans"),
    [
        ("float8_e4m3fn", 448.0, 2.0**-9, 2),
        ("float8_e5m2", 57344.0, 2.0**-16, 6),
        ("float8_e4m3fnuz", 240.0, 2.0**-10, 1),
        ("float8_e5m2fnuz", 57344.0, 2.0**-17, 1),
    ],
)
def test_float8_tables_reach_from_the_smallest_to_the_largest_value(
    dtype: str, largest: float, smallest: float, nans: int
) -> None:
    table = float8_table(dtype)
    finite = table[np.isfinite(table)]
    assert (float(finite.max()), float(finite.min())) == (largest, -largest)
    assert float(finite[finite > 0].min()) == smallest
    assert int(np.isnan(table).sum()) == nans


@pytest.mark.parametrize("dtype", sorted(FLOAT8))
def test_float8_codes_rise_with_their_values(dtype: str) -> None:
    positive = float8_table(dtype)[:128]
    positive = positive[~np.isnan(positive)]
    assert bool((np.diff(positive[np.isfinite(positive)]) > 0).all())
    assert positive[0] == 0.0


def test_float8_tensor_is_looked_up() -> None:
    tensor = decoded(np.array([[0x38], [0xC0]], dtype=np.uint8), "float8_e4m3fn")
    assert tensor.values.tolist() == [[1.0], [-2.0]]


def test_only_e5m2_has_infinities() -> None:
    assert {dtype for dtype in FLOAT8 if np.isinf(float8_table(dtype)).any()} == {"float8_e5m2"}


def test_per_tensor_quantized_gives_codes_and_values() -> None:
    tensor = decoded(np.array([0, 10, 255], np.uint8), "quint8", quantizer={"scale": 0.5, "zero_point": 10})
    assert tensor.raw.tolist() == [0, 10, 255]
    assert tensor.values.tolist() == [-5.0, 0.0, 122.5]
    assert tensor.values.dtype == np.float64


def test_per_channel_quantized_scales_along_its_axis() -> None:
    quantizer = {"scales": [1.0, 0.5], "zero_points": [0, 2], "axis": 1}
    tensor = decoded(np.array([[2, 2], [4, 4]], np.int8), "qint8", quantizer=quantizer)
    assert tensor.values.tolist() == [[2.0, 0.0], [4.0, 1.0]]


@pytest.mark.parametrize("dtype", sorted(wire.DTYPE_BYTES))
@pytest.mark.parametrize("shape", [[], [1], [0], [2, 0, 3], [2, 3]])
def test_every_dtype_takes_scalars_and_empty_tensors(dtype: str, shape: list[int]) -> None:
    data = bytes(math.prod(shape) * wire.DTYPE_BYTES[dtype])
    whole: dict[str, Any] = {"dtype": dtype, "shape": shape, "offset": 0, "nbytes": len(data)}
    if dtype in wire.QUANTIZED:
        whole["quantizer"] = {"scale": 1.0, "zero_point": 0}
    tensor = decode(whole, data)
    assert isinstance(tensor.values, np.ndarray)
    assert tensor.values.shape == tuple(shape)
    assert not tensor.values.any()


def test_strides_do_not_move_the_bytes() -> None:
    values = np.arange(6, dtype=np.int32).reshape(2, 3)
    assert decode(Recorder().tensor(values)[1] | {"stride": [1, 2]}, values.tobytes()).values.tolist() == [
        [0, 1, 2],
        [3, 4, 5],
    ]


def test_unaligned_offset_is_read() -> None:
    data = b"\x00\x00\x00" + np.array([1.5, -2.0], dtype=np.float32).tobytes()
    assert decode(spec(offset=3), data).values.tolist() == [1.5, -2.0]


def test_mapped_file_closes_once_its_arrays_are_gone(tmp_path: Path) -> None:
    path = tmp_path / "tensors.bin"
    path.write_bytes(np.array([1.5, -2.0], dtype=np.float32).tobytes())
    with path.open("rb") as stream, mmap.mmap(stream.fileno(), 0, access=mmap.ACCESS_READ) as mapped:
        assert decode(spec(), mapped).values.sum() == -0.5


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"dtype": "float7"}, "unknown dtype 'float7'"),
        ({"dtype": None}, "unknown dtype None"),
        ({"shape": [-2]}, "impossible shape"),
        ({"shape": [2.0]}, "impossible shape"),
        ({"shape": [True]}, "impossible shape"),
        ({"shape": "2"}, "impossible shape"),
        ({"nbytes": 7}, "needs 8 bytes, the spec says 7"),
        ({"shape": [1 << 70]}, "needs"),
        ({"offset": 4}, "bytes 4 to 12 lie outside the buffer of 8"),
        ({"offset": -4}, "lie outside"),
        ({"offset": "0"}, "must be integers"),
        ({"nbytes": None}, "must be integers"),
        ({"quantizer": {"scale": 1.0, "zero_point": 0}}, "not a quantized dtype"),
    ],
)
def test_corrupt_spec_is_refused_in_words(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(DecodeError, match=message):
        decode(spec(**changes), bytes(8))


@pytest.mark.parametrize(
    ("quantizer", "message"),
    [
        (None, "without a quantizer"),
        ({"scale": 1.0}, "damaged quantizer"),
        ({"scale": "x", "zero_point": 0}, "damaged quantizer"),
        ({"scales": [1.0], "zero_points": [0], "axis": 0}, "1 scales, 1 zero points for 2 channels"),
        ({"scales": [1.0, 1.0], "zero_points": [0, 0], "axis": 1}, "damaged quantizer"),
    ],
)
def test_corrupt_quantizer_is_refused(quantizer: Any, message: str) -> None:
    with pytest.raises(DecodeError, match=message):
        decode(spec(dtype="qint8", nbytes=2, quantizer=quantizer), bytes(8))


def test_plain_numbers_become_scalars() -> None:
    assert decode(plain_number("float", "-1e-320"), b"").values.item() == -1e-320
    assert decode(plain_number("complex", ["1.5", "-inf"]), b"").values.item() == complex(1.5, -math.inf)
    assert decode(plain_number("float", "nan"), b"").plain


@pytest.mark.parametrize(("kind", "content"), [("float", "x"), ("float", None), ("complex", ["1"]), ("complex", 3)])
def test_malformed_plain_number_is_refused(kind: str, content: Any) -> None:
    with pytest.raises(DecodeError, match=f"is no {kind}"):
        plain_number(kind, content)
