"""How much rounding explains."""

import pytest

from harness.checks.outputs.tolerances import EXACT, FACTORS, shares, tolerance_for
from harness.worker import wire


def test_every_wire_dtype_has_a_rule() -> None:
    assert set(wire.DTYPE_BYTES) == (set(FACTORS) - {"tf32"}) | EXACT | set(wire.QUANTIZED)


def test_float32_is_the_measured_factor_times_the_scale() -> None:
    assert tolerance_for("float32", None, 100.0) == pytest.approx(1e-3)


def test_less_precise_dtypes_never_get_a_smaller_factor() -> None:
    order = ["float64", "float32", "tf32", "bfloat16", "float8_e4m3fn", "float8_e5m2"]
    factors = [FACTORS[name] for name in order]
    assert factors == sorted(factors)


@pytest.mark.parametrize(
    ("whole", "part"), [("complex32", "float16"), ("complex64", "float32"), ("complex128", "float64")]
)
def test_complex_follows_its_parts(whole: str, part: str) -> None:
    assert FACTORS[whole] == FACTORS[part]


def test_integers_and_bools_are_exact_whatever_computes_them() -> None:
    assert {tolerance_for(dtype, "float16", 1e9) for dtype in EXACT} == {0.0}
    assert {"bool", "int64", "uint8"} <= EXACT


def test_quantized_values_may_move_one_quantum() -> None:
    assert {tolerance_for(dtype, "float16", 1e9) for dtype in wire.QUANTIZED} == {1.0}


def test_computes_in_lowers_precision_only() -> None:
    assert tolerance_for("float32", "float16", 1.0) == tolerance_for("float16", None, 1.0)
    assert tolerance_for("float16", "float64", 1.0) == tolerance_for("float16", None, 1.0)


def test_declared_factor_stands_in_place_of_the_dtypes_wider_or_narrower() -> None:
    assert tolerance_for("float32", 1e-2, 3.0) == pytest.approx(3e-2)
    assert tolerance_for("float16", 1e-6, 3.0) == pytest.approx(3e-6)
    assert tolerance_for("int64", 1e-2, 3.0) == 0.0


def test_zero_scale_tolerates_nothing() -> None:
    assert tolerance_for("float32", None, 0.0) == 0.0


@pytest.mark.parametrize(("dtype", "precision"), [("float32", "int8"), ("float32", "fp16"), ("int8", "fp16")])
def test_unknown_computes_in_is_refused(dtype: str, precision: str) -> None:
    with pytest.raises(ValueError, match="is not one of"):
        tolerance_for(dtype, precision, 1.0)


def test_unknown_dtype_is_refused() -> None:
    with pytest.raises(ValueError, match="no tolerance for dtype 'float7'"):
        tolerance_for("float7", None, 1.0)


def test_shares_are_the_tolerances_of_tensors_whose_largest_value_is_one() -> None:
    assert shares(None) == FACTORS
    assert shares("float16")["float32"] == FACTORS["float16"]
    assert shares("float16")["bfloat16"] == FACTORS["bfloat16"]
    assert set(shares(0.25).values()) == {0.25}
