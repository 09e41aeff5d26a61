"""The limit that a policy sets for the error of outputs: how far they are off, and what that makes of the findings."""

from collections.abc import Iterator

from harness.domain.comparison import OutputComparison, TensorMetrics
from harness.domain.verdict import CellVerdict, Finding
from harness.policy.numbers import deciding_rule, error_of

FLOATS = ("float", "bfloat", "complex")
OF_NUMBERS = ("values", "late_divergence")
"""Kinds of findings that a looser limit may excuse; of the second those whose numbers alone are another one."""


def is_excused(cell: CellVerdict, comparison: OutputComparison | None, limit: float) -> str:
    """Return how far off the outputs are, in words, where a limit covers all that is wrong with their numbers.

    Empty where it does not: something is off by more, or is no float, or moved a NaN, or nobody measured it, or a
    sample alone, which cannot say how far off the rest is.
    """
    found = [finding for finding in cell.findings if finding.kind in OF_NUMBERS]
    if not found or any(finding.detail.get("was", "values") != "values" for finding in found) or comparison is None:
        return ""
    wrong = [tensor for _, tensor in _tensors(comparison) if not deciding_rule(tensor)[1]]
    if not wrong or not all(tensor.dtype.startswith(FLOATS) and not tensor.sampled for tensor in wrong):
        return ""
    worst = max(error_of(tensor) for tensor in wrong)
    return f"off by {worst:.2g} of the largest value, limit {limit:g}" if worst <= limit else ""


def beyond(comparison: OutputComparison | None, limit: float, *, but_failing: bool = False) -> Finding | None:
    """Return the finding on the float output that is further off than the limit; None where none is.

    What differs by no more than the old release from itself is not held against the new one.

    Args:
        but_failing: leave out the outputs that another finding tells already, for they fail without the limit.
    """
    if comparison is None:
        return None
    failing = {tensor.path for _, tensor in _tensors(comparison) if not deciding_rule(tensor)[1]}
    over = [
        (error_of(tensor), where, tensor)
        for where, tensor in _tensors(comparison)
        if tensor.dtype.startswith(FLOATS) and _counts(tensor) and error_of(tensor) > limit
        if not (but_failing and tensor.path in failing)
    ]
    if not over:
        return None
    worst, where, tensor = max(over, key=lambda item: item[0])
    message = f"{tensor.path}: off by {worst:.2g} of its largest value, limit {limit:g} of the policy"
    return Finding(kind="error_limit", message=message, where=where, rule="limit of the policy", size=worst)


def _counts(tensor: TensorMetrics) -> bool:
    return not tensor.bit_equal and (tensor.noise_abs is None or tensor.max_abs > tensor.noise_abs)


def _tensors(comparison: OutputComparison) -> Iterator[tuple[str, TensorMetrics]]:
    for call in comparison.calls:
        for tensor in call.tensors:
            yield f"{call.input_set} call {call.call} {tensor.path}", tensor
