"""Tolerances: how far rounding alone may move a tensor. A factor per dtype, times the tensor's largest magnitude.

The factor belongs to the dtype that a value was *computed in*. float32 is measured, the rest follows from machine
epsilon, eps = 2 ** -mantissa_bits:

    float32     1e-5: from release to release, the zoo and 22 architectures of torchvision stay within 7e-7 of max|ref|
                (docs/evidence.md#tolerance); 1e-5 passes all with a factor of 14 to spare. That is 84 eps, most of it
                from the order of long sums.
    float64     1e-12: 84 eps would be 1.9e-14. Nobody measured it on models and vector maths libraries differ by more
                than that, so it is 50 times wider; it is still 1e5 below what any float32 step would leave behind.
    float16, bfloat16, tf32
                4 eps. Kernels accumulate in float32 and round once per operator (tf32: each factor of a product),
                so the length of sums does not count, the depth does: u = eps / 2 per operator, a random walk over
                64 operators is 8 u.
    float8      1 eps. It is a storage format: computed wider, rounded once, so two values at a boundary fall on
                neighbours, whose distance is at most eps x magnitude.
    complex     as its parts.

Integers and bools are exact; quantized values may be one quantum off, as a value at a rounding boundary is.
"""

from typing import TypeAlias

from harness.worker import wire

QUANTUM = 1.0

FACTORS: dict[str, float] = {
    "float64": 1e-12,
    "float32": 1e-5,
    "tf32": 4 * 2.0**-10,
    "float16": 4 * 2.0**-10,
    "bfloat16": 4 * 2.0**-7,
    "float8_e4m3fn": 2.0**-3,
    "float8_e4m3fnuz": 2.0**-3,
    "float8_e5m2": 2.0**-2,
    "float8_e5m2fnuz": 2.0**-2,
    "complex32": 4 * 2.0**-10,
    "complex64": 1e-5,
    "complex128": 1e-12,
}
# What two roundings of one value may differ by, in formats that round once per operator: a share of its magnitude. The
# factors above are for whole models.
ONE_OPERATOR: dict[str, float] = {dtype: FACTORS[dtype] / 4 for dtype in ("float16", "bfloat16", "tf32", "complex32")}
EXACT = frozenset(wire.DTYPE_BYTES) - frozenset(FACTORS) - frozenset(wire.QUANTIZED)


Precision: TypeAlias = str | float | None
"""The dtype that a model computes in, or the factor that it declares in place of all of them; None for the dtype."""


def tolerance_for(dtype: str, precision: Precision, scale: float) -> float:
    """Return the largest absolute difference that rounding explains.

    Args:
        precision: dtype that the model computes in (a wire name or ``"tf32"``), or None for ``dtype`` itself. It
            widens the bound if it is less precise than ``dtype`` and never narrows it. A number is the factor that the
            model declares: it stands in place of the dtype's, wider or narrower. Exact dtypes ignore either.
        scale: largest finite magnitude of the expected tensor, >= 0.

    Returns:
        In the tensor's own units; in quanta for quantized dtypes. 0.0 means exact.

    Raises:
        ValueError: a dtype without a rule.
    """
    if isinstance(precision, str) and precision not in FACTORS:
        raise ValueError(f"precision {precision!r} is not one of {', '.join(sorted(FACTORS))}")
    if dtype in wire.QUANTIZED:
        return QUANTUM
    if dtype in EXACT:
        return 0.0
    if dtype not in FACTORS:
        raise ValueError(f"no tolerance for dtype {dtype!r}")
    if isinstance(precision, float):
        return precision * scale
    return max(FACTORS[dtype], FACTORS[precision or dtype]) * scale


def shares(precision: Precision) -> dict[str, float]:
    """Return by dtype the share of a tensor's largest magnitude that rounding explains, computed in ``precision``."""
    return {dtype: tolerance_for(dtype, precision, 1.0) for dtype in FACTORS}
