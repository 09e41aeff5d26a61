"""Walks the judging chain over the numbers of a comparison and names the rule that decided.

The order is that of DESIGN.md: structure -> NaN/Inf placement -> bit equality -> scaled tolerance -> the old
environment's own noise -> no further from the float64 reference than the old output was -> FAIL.
"""

from harness.domain.comparison import CallComparison, OutputComparison, TensorMetrics
from harness.domain.verdict import Finding

BIT_EQUAL = "bit equality"
SCALED_TOLERANCE = "scaled tolerance"
OWN_NOISE = "own noise of the old environment"
REFERENCE = "no further from the float64 reference"
PLACEMENT = "NaN/Inf placement"
STRUCTURE = "structure"
SAMPLE = "sampled golden"

# The float64 run says which side is nearer only where it computes the same thing as the old release. Further away than
# this many tolerances it took another branch or another random stream, and being nearer to it is a coin toss.
REFERENCE_REACH = 10.0


def deciding_rule(tensor: TensorMetrics) -> tuple[str, bool]:
    """Return (the rule of the chain that decides this tensor, whether it passes)."""
    if tensor.bit_equal and not tensor.sampled:
        return BIT_EQUAL, True
    if tensor.nan_mismatches or tensor.inf_mismatches:
        return PLACEMENT, False
    if tensor.max_abs <= tensor.tolerance_abs:
        return SCALED_TOLERANCE, True
    if tensor.noise_abs is not None and tensor.max_abs <= tensor.noise_abs:
        return OWN_NOISE, True
    old, new = tensor.reference_old_abs, tensor.reference_new_abs
    if old is not None and new is not None and new <= old <= REFERENCE_REACH * tensor.tolerance_abs:
        return REFERENCE, True
    return SCALED_TOLERANCE, False


def output_findings(comparison: OutputComparison) -> tuple[Finding, ...]:
    """Return what is wrong with the outputs, the first occurrence of each (kind, path) with a count."""
    found: dict[tuple[str, str], list[Finding]] = {}
    for call in comparison.calls:
        for path, finding in _call_findings(call):
            if path in comparison.unstable and finding.rule in (STRUCTURE, PLACEMENT):
                finding = _unstable(finding)  # noqa: PLW2901  noise has no size here, so the chain cannot weigh it
            found.setdefault((finding.kind, path), []).append(finding)
    findings = [_merged(occurrences) for occurrences in found.values()]
    opaque = sorted({path for call in comparison.calls for path in call.opaque})
    if opaque:
        message = f"{', '.join(opaque[:4])}: an object without a value on the wire, compared by its type alone"
        findings.append(Finding(kind="not_decidable", message=message, rule=STRUCTURE))
    strides = sorted({path for call in comparison.calls for path in call.stride_changes})
    if strides:
        message = f"strides changed at {', '.join(strides[:4])}: a view downstream may fail"
        findings.append(Finding(kind="stride", message=message, rule=STRUCTURE))
    if comparison.missing_calls:
        sets = ", ".join(f"{input_set} call {call}" for input_set, call in comparison.missing_calls[:4])
        findings.append(Finding(kind="structure", message=f"calls without an output: {sets}", rule=STRUCTURE))
    return tuple(findings)


def _unstable(finding: Finding) -> Finding:
    """Return the finding as one that the old release shows between its own repeats already."""
    message = f"{finding.message}; the old release's own repeats differ here too"
    return Finding(
        kind="unstable_baseline", message=message, where=finding.where, rule=OWN_NOISE, detail=finding.detail
    )


def _call_findings(call: CallComparison) -> list[tuple[str, Finding]]:
    place = f"{call.input_set} call {call.call}"
    findings = []
    for difference in call.tree:
        message = f"{difference.path}: expected {difference.expected}, got {difference.actual}"
        where = f"{place} {difference.path}"
        findings.append((difference.path, Finding(kind=difference.kind, message=message, where=where, rule=STRUCTURE)))
    for tensor in call.tensors:
        finding = _tensor_finding(tensor, place)
        if finding is not None:
            findings.append((tensor.path, finding))
    return findings


def _tensor_finding(tensor: TensorMetrics, place: str) -> Finding | None:
    rule, passes = deciding_rule(tensor)
    where = f"{place} {tensor.path}"
    detail = {
        "max_abs": f"{tensor.max_abs:.6g}",
        "tolerance_abs": f"{tensor.tolerance_abs:.6g}",
        "max_rel": f"{tensor.max_rel:.6g}",
        "mismatched": f"{tensor.mismatched} of {tensor.elements}",
        "worst_index": str(list(tensor.worst_index)),
        "worst": f"{tensor.worst_expected} -> {tensor.worst_actual}",
    }
    if passes:
        if tensor.sampled and rule != BIT_EQUAL:
            message = f"{tensor.path}: the sampled golden agrees within tolerance and cannot decide the rest"
            return Finding(kind="not_decidable", message=message, where=where, rule=SAMPLE, detail=detail)
        if rule == REFERENCE:
            message = f"{tensor.path}: differs, and is no further from float64 than before"
            return Finding(kind="closer_to_reference", message=message, where=where, rule=rule, detail=detail)
        return None
    if rule == PLACEMENT:
        message = (
            f"{tensor.path}: NaN or Inf where a number was, or the reverse, in "
            f"{tensor.nan_mismatches + tensor.inf_mismatches} of {tensor.elements} elements"
        )
        return Finding(kind="nan_placement", message=message, where=where, rule=rule, detail=detail)
    relative = tensor.max_abs / tensor.scale if tensor.scale else float("inf")
    message = (
        f"{tensor.path}: off by {relative:.2g} of its largest value ({tensor.mismatched} of {tensor.elements} "
        f"elements beyond tolerance; worst at {list(tensor.worst_index)}: "
        f"{tensor.worst_expected} -> {tensor.worst_actual})"
    )
    return Finding(kind="values", message=message, where=where, rule=rule, detail=detail)


def _merged(occurrences: list[Finding]) -> Finding:
    """Return the first finding; its place says how many calls show the same, and if only later calls do."""
    first = occurrences[0]
    if len(occurrences) == 1:
        return first
    return Finding(
        kind=first.kind,
        message=first.message,
        where=f"{first.where} and {len(occurrences) - 1} more calls",
        rule=first.rule,
        detail=first.detail,
        evidence=first.evidence,
    )


def first_good_then_bad(comparison: OutputComparison) -> bool:
    """Whether call 0 of an input set is fine and a later call of the same set is not."""
    fine = {
        (call.input_set, call.call): not call.tree and all(deciding_rule(tensor)[1] for tensor in call.tensors)
        for call in comparison.calls
    }
    return any(index > 0 and not good and fine.get((input_set, 0), False) for (input_set, index), good in fine.items())


def summary(comparison: OutputComparison) -> tuple[str, float | None]:
    """Return the outputs in a few words for the table, and the worst max_abs / scale."""
    tensors = [tensor for call in comparison.calls for tensor in call.tensors]
    if comparison.missing_calls or any(call.tree for call in comparison.calls):
        return "structure", None
    if any(tensor.nan_mismatches or tensor.inf_mismatches for tensor in tensors):
        return "NaN moved", None
    if not tensors:
        return ("plain values" if comparison.calls and not any(call.opaque for call in comparison.calls) else ""), None
    if all(tensor.bit_equal for tensor in tensors):
        return "sample equal" if any(tensor.sampled for tensor in tensors) else "bit equal", 0.0
    worst = max(
        (tensor.max_abs / (tensor.scale or 1.0) for tensor in tensors if not tensor.bit_equal),
        default=0.0,
    )
    return f"off {worst:.0e}", worst
