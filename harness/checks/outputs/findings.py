"""Applies the rules of a comparison in order and names the one that decided.

The order is that of DESIGN.md: structure -> NaN/Inf placement -> bit equality -> scaled tolerance -> the old
environment's own noise -> no further from the float64 reference than the old output was -> FAIL.
"""

import math
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import replace

from harness.core.comparison import CallComparison, OutputComparison, TensorMetrics
from harness.core.findings import NAN_APPEARED, NAN_GONE, SEVERITY, Severity, status_of
from harness.core.outcome import Status
from harness.core.text import first_few
from harness.core.verdict import Beyond, Finding

IN_PLACE = "inputs left as they were"
ANY_ORDER = "rows in any order"
SHARED_MEMORY = "shared memory"
PATHS_SHOWN = 4
ALIKE, SIGNS, ORDER = "alike", "signs", "order"
"""In a finding's detail: only signs differ, or the same values stand in another order."""
# What leaves signs, or the order among equals, free.
FREE: Mapping[str, tuple[Collection[str], str]] = {
    SIGNS: (
        (
            *("aten::linalg_svd", "aten::svd", "aten::_linalg_svd", "aten::linalg_eigh", "aten::_linalg_eigh"),
            *("aten::linalg_eig", "aten::linalg_qr", "aten::qr", "aten::geqrf", "aten::symeig", "aten::pca_lowrank"),
        ),
        " for each vector",
    ),
    ORDER: (
        (
            *("aten::topk", "aten::sort", "aten::argsort", "aten::msort", "aten::kthvalue", "aten::unique_dim"),
            *("aten::_unique", "aten::_unique2", "torchvision::nms"),
        ),
        " among equals",
    ),
}


def input_findings(call: CallComparison) -> Iterator[tuple[str, Finding]]:
    """Yield (path, finding) of every input that only one release changes in place: its caller would see it."""
    place = f"{call.input_set} call {call.call}"
    for paths, what in (
        (call.inputs_changed_new, "is changed in place, and was left alone before"),
        (call.inputs_changed_old, "was changed in place before, and is left alone now"),
    ):
        for path in paths:
            yield (
                path,
                Finding(kind="input_changed", message=f"{path} {what}", where=f"{place} {path}", rule=IN_PLACE),
            )


def memory_findings(comparison: OutputComparison) -> Iterator[Finding]:
    """Yield what is worth telling and fails nothing: inputs changed in both releases, and other aliasing."""
    changed = _distinct(path for call in comparison.calls for path in call.inputs_changed)
    if changed:
        message = f"changes its inputs in place, in both releases: {first_few(changed, PATHS_SHOWN)}"
        yield Finding(kind="changes_inputs", message=message, rule=IN_PLACE)
    gone = _distinct(group for call in comparison.calls for group in call.aliases_old)
    come = _distinct(group for call in comparison.calls for group in call.aliases_new)
    parts = [
        f"{words}: {first_few(groups, PATHS_SHOWN)}" for words, groups in (("no more", gone), ("now", come)) if groups
    ]
    if parts:
        message = f"shares memory {'; '.join(parts)}: writing into one changes the other"
        yield Finding(kind="aliasing", message=message, rule=SHARED_MEMORY)


def order_findings(comparison: OutputComparison) -> Iterator[Finding]:
    """Yield what is known of the outputs that the model declares unordered."""
    moved: dict[str, int] = {}
    for tensor in comparison.tensors:
        if tensor.moved_rows:
            moved[tensor.path] = max(moved.get(tensor.path, 0), tensor.moved_rows)
    if moved:
        paths = first_few([f"{path} ({rows} rows)" for path, rows in moved.items()], PATHS_SHOWN)
        message = f"declared unordered, and rows stand elsewhere: {paths}; they are compared in the golden order"
        yield Finding(kind="reordered", message=message, rule=ANY_ORDER)
    if comparison.unordered_missing:
        missing = first_few(comparison.unordered_missing, PATHS_SHOWN)
        message = f"declares unordered what no output has: {missing}"
        yield Finding(kind="unordered_missing", message=message, rule=ANY_ORDER)


def _distinct(texts: Iterable[str]) -> list[str]:
    return list(dict.fromkeys(texts))


SIZELESS = ("structure", "dtype", "nan_placement")
"""Kinds of differences in outputs that no tolerance weighs."""
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
    """Return what is wrong with the outputs, the first of each (kind, what a late one was, path) with a count."""
    by_place: dict[tuple[str, str, str], list[Finding]] = {}
    first_calls = {call.input_set: call for call in comparison.calls if call.call == 0}
    for call in comparison.calls:
        for path, finding in _call_findings(call):
            finding = replace(finding, detail={**finding.detail, "input_set": call.input_set})  # noqa: PLW2901
            if path in comparison.unstable and finding.kind in SIZELESS:
                finding = _unstable(finding)  # noqa: PLW2901  noise has no size here, so the chain cannot weigh it
            elif call.call > 0 and SEVERITY[finding.kind] is Severity.FAIL:
                before = _first_call(first_calls.get(call.input_set), path)
                finding = _late(finding, call, before) if before else finding  # noqa: PLW2901
            by_place.setdefault((finding.kind, finding.detail.get("was", ""), path), []).append(finding)
    findings = [_merged(occurrences) for occurrences in by_place.values()]
    opaque = sorted({path for call in comparison.calls for path in call.opaque})
    if opaque:
        message = f"{', '.join(opaque[:4])}: an object without a value on the wire, compared by its type alone"
        findings.append(Finding(kind="not_decidable", message=message, rule=STRUCTURE))
    findings.extend(order_findings(comparison))
    findings.extend(memory_findings(comparison))
    strides = sorted({path for call in comparison.calls for path in call.stride_changes})
    if strides:
        message = f"strides changed at {', '.join(strides[:4])}: a view downstream may fail"
        findings.append(Finding(kind="stride", message=message, rule=STRUCTURE))
    if comparison.missing_calls:
        sets = ", ".join(f"{input_set} call {call}" for input_set, call in comparison.missing_calls[:4])
        findings.append(Finding(kind="structure", message=f"calls without an output: {sets}", rule=STRUCTURE))
    return tuple(findings)


def differs(comparison: OutputComparison | None) -> bool:
    """Whether the outputs are others than the golden ones; not where there is nothing to compare."""
    return comparison is not None and status_of(output_findings(comparison)) is Status.FAIL


def agrees(comparison: OutputComparison) -> bool:
    """Whether the outputs are the golden ones; not where the old release's own noise leaves that open."""
    return status_of(output_findings(comparison)) is Status.PASS


def _unstable(finding: Finding) -> Finding:
    message = f"{finding.message}; the old release's own repeats differ here too"
    return Finding(
        kind="unstable_old_release", message=message, where=finding.where, rule=OWN_NOISE, detail=finding.detail
    )


def _first_call(first: CallComparison | None, path: str) -> str:
    """Return in words how call 0 agrees with the golden at ``path``; empty where it does not or was not made."""
    if first is None or path in (*first.inputs_changed_old, *first.inputs_changed_new):
        return ""
    if any(_lies_in(path, difference.path) for difference in first.tree):
        return ""
    for tensor in first.tensors:
        if tensor.path == path:
            rule, passes = deciding_rule(tensor)
            return ("exact" if rule == BIT_EQUAL else "fine") if passes else ""
    if first.equal:
        return "exact"
    return "" if first.tree else "fine"


def _lies_in(path: str, container: str) -> bool:
    return path.startswith(container) and path[len(container) :][:1] in ("", ".", "[")


def _late(finding: Finding, call: CallComparison, before: str) -> Finding:
    """Return the finding as one that shows from a later call on: the program changed, not the operators alone."""
    message = f"{before} at call 0, off from call {call.call}: {finding.message}"
    return replace(finding, kind="late_divergence", message=message, detail={**finding.detail, "was": finding.kind})


def _call_findings(call: CallComparison) -> list[tuple[str, Finding]]:
    place = f"{call.input_set} call {call.call}"
    findings = []
    for difference in call.tree:
        message = f"{difference.path}: expected {difference.expected}, got {difference.actual}"
        where = f"{place} {difference.path}"
        findings.append((difference.path, Finding(kind=difference.kind, message=message, where=where, rule=STRUCTURE)))
    findings.extend(input_findings(call))
    for tensor in call.tensors:
        finding = _tensor_finding(tensor, place)
        if finding is not None:
            findings.append((tensor.path, finding))
    return findings


def _tensor_finding(tensor: TensorMetrics, place: str) -> Finding | None:
    rule, passes = deciding_rule(tensor)
    how = f"{rule}, rows in any order" if tensor.moved_rows else rule
    where = f"{place} {tensor.path}"
    detail = _detail(tensor)
    if passes:
        if tensor.sampled and rule != BIT_EQUAL:
            message = f"{tensor.path}: the sampled golden agrees within tolerance and cannot decide the rest"
            return Finding(kind="not_decidable", message=message, where=where, rule=SAMPLE, detail=detail)
        if rule == REFERENCE:
            message = f"{tensor.path}: differs, and is {reference_words(tensor)}"
            return Finding(
                kind="closer_to_reference",
                message=message,
                where=where,
                rule=how,
                detail=detail,
                size=error_of(tensor),
            )
        return None
    if rule == PLACEMENT:
        message = f"{tensor.path}: {placement_words(tensor)}"
        gone = tensor.nan_mismatches - tensor.nan_appeared
        detail = {**detail, NAN_APPEARED: str(tensor.nan_appeared), NAN_GONE: str(gone)}
        return Finding(kind="nan_placement", message=message, where=where, rule=how, detail=detail)
    relative = error_of(tensor)
    message = (
        f"{tensor.path}: off by {relative:.2g} of its largest value ({tensor.mismatched} of {tensor.elements} "
        f"elements beyond tolerance; worst at {list(tensor.worst_index)}: "
        f"{tensor.worst_expected} -> {tensor.worst_actual})"
    )
    if tensor.same_magnitudes:
        message, detail = f"{message}; only signs differ", {**detail, ALIKE: SIGNS}
    elif tensor.same_values:
        message, detail = f"{message}; the same values in another order", {**detail, ALIKE: ORDER}
    if tensor.top1_agreement is not None and tensor.top1_agreement < 1.0:
        message += f"; the arg-max is another in {1.0 - tensor.top1_agreement:.2%} of the rows"
    if is_closer(tensor):
        message += f"; it is {reference_words(tensor)}, which is out of the reference's reach"
    return Finding(kind="values", message=message, where=where, rule=how, detail=detail, size=relative)


def with_freedom(finding: Finding, operators: Collection[str]) -> Finding:
    """Return the finding; where an operator of the model leaves free what differs, it says so."""
    leaving, words = FREE.get(finding.detail.get(ALIKE, ""), ((), ""))
    free = sorted({name.partition(".")[0] for name in operators} & set(leaving))
    return replace(finding, message=f"{finding.message}, which {free[0]} leaves free{words}") if free else finding


def placement_words(tensor: TensorMetrics) -> str:
    """Return which way NaN and infinities moved, and in how many elements: ``NaN where a number was in 2 of 8``."""
    ways = (
        ("NaN where a number was", tensor.nan_appeared),
        ("a number where NaN was", tensor.nan_mismatches - tensor.nan_appeared),
        ("another infinity, or none,", tensor.inf_mismatches),
    )
    parts = [f"{words} in {count}" for words, count in ways if count]
    return f"{'; '.join(parts)} of {tensor.elements} elements"


def error_of(tensor: TensorMetrics) -> float:
    """Return the largest difference over the largest golden value; infinite where that is zero and they differ."""
    if not tensor.max_abs:
        return 0.0
    return tensor.max_abs / tensor.scale if tensor.scale else math.inf


def beyond_tolerance(comparison: OutputComparison) -> Beyond | None:
    """Return the failing difference of most tolerances, over the largest golden value as findings say it.

    None where none fails or no tolerance would accept it.
    """
    failing = [tensor for tensor in comparison.tensors if not deciding_rule(tensor)[1]]
    if any(deciding_rule(tensor)[0] == PLACEMENT or not tensor.tolerance_abs for tensor in failing):
        return None
    differences = (
        Beyond(value=item.max_abs / scale, allowed=item.tolerance_abs / scale, is_ratio=False)
        for item in failing
        for scale in [item.scale or 1.0]
    )
    return max(differences, key=lambda item: item.factor, default=None)


def is_closer(tensor: TensorMetrics) -> bool:
    """Whether the new output lies nearer to the float64 run than the old one did."""
    old, new = tensor.reference_old_abs, tensor.reference_new_abs
    return old is not None and new is not None and new < old


def reference_words(tensor: TensorMetrics) -> str:
    """Return how far both outputs lie from the float64 run, in words; there must be one."""
    how = "closer to float64 than before" if is_closer(tensor) else "no further from float64 than before"
    return f"{how} (off {tensor.reference_new_abs:.2g}, before {tensor.reference_old_abs:.2g})"


def _detail(tensor: TensorMetrics) -> dict[str, str]:
    optional = {
        "max_ulp": tensor.max_ulp,
        "rel_l2": tensor.rel_l2,
        "cosine": tensor.cosine,
        "top1_agreement": tensor.top1_agreement,
        "top5_agreement": tensor.top5_agreement,
        "reference_old_abs": tensor.reference_old_abs,
        "reference_new_abs": tensor.reference_new_abs,
    }
    return {
        "max_abs": f"{tensor.max_abs:.6g}",
        "tolerance_abs": f"{tensor.tolerance_abs:.6g}",
        "max_rel": f"{tensor.max_rel:.6g}",
        "mismatched": f"{tensor.mismatched} of {tensor.elements}",
        "worst_index": str(list(tensor.worst_index)),
        "worst": f"{tensor.worst_expected} -> {tensor.worst_actual}",
        **{name: f"{value:.6g}" for name, value in optional.items() if value is not None},
    }


def _merged(occurrences: list[Finding]) -> Finding:
    """Return the first finding with the largest size; its place says how many calls show the same."""
    first, more = occurrences[0], len(occurrences) - 1
    if not more:
        return first
    size = max((finding.size for finding in occurrences if finding.size is not None), default=None)
    worse = f", up to {size:.2g}" if size is not None and size != first.size else ""
    return replace(first, where=f"{first.where} and {more} more calls{worse}", size=size)


def summary(comparison: OutputComparison) -> tuple[str, float | None]:
    tensors = comparison.tensors
    if comparison.missing_calls or any(call.tree for call in comparison.calls):
        return "structure", None
    if any(tensor.nan_mismatches or tensor.inf_mismatches for tensor in tensors):
        return "NaN moved", None
    if any(call.inputs_changed_old or call.inputs_changed_new for call in comparison.calls):
        return "input moved", None
    if not tensors and not any(call.equal for call in comparison.calls):
        return ("same values" if comparison.calls and not any(call.opaque for call in comparison.calls) else ""), None
    if all(tensor.bit_equal for tensor in tensors):
        if any(tensor.moved_rows for tensor in tensors):
            return "reordered", 0.0
        return "sample equal" if any(tensor.sampled for tensor in tensors) else "bit equal", 0.0
    worst = max(
        (tensor.max_abs / (tensor.scale or 1.0) for tensor in tensors if not tensor.bit_equal),
        default=0.0,
    )
    return f"off {worst:.0e}", worst
