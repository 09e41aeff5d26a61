"""Applies a policy to one cell: its limits first, then its severities, then the waivers.

A run and ``gate``, which judges a finished run again, both use this one path.
"""

import datetime as dt
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from harness.checks.latency.limits import REGRESSED, classify, tolerated
from harness.checks.outputs.findings import deciding_rule, error_of
from harness.config.policy import with_limits
from harness.core.comparison import OutputComparison, TensorMetrics
from harness.core.findings import SEVERITY, STATUS_OF, Severity
from harness.core.measurement import LatencyMeasurement
from harness.core.outcome import Status
from harness.core.plan import ERROR, FLOOR, OWN, TOTAL, LatencyBudget, PolicySettings
from harness.core.policy import ModelPolicy
from harness.core.quantities import INITIALIZATION, STEADY
from harness.core.text import joined
from harness.core.verdict import CellVerdict, Finding, Ruled, Waiver
from harness.verdict.inputs import latency_with_inputs
from harness.verdict.latency import judge_latency, tolerated_words
from harness.verdict.waivers.apply import Ran, apply_waivers, without_waivers
from harness.verdict.waivers.uses import fail_unused

FLOATS = ("float", "bfloat", "complex")
UNDIVIDED = "judged by its total: nobody can tell what all models share"
OF_NUMBERS = ("values", "late_divergence")
"""Kinds of findings that a looser limit may excuse; the second only if nothing but its numbers differs."""


def is_excused(cell: CellVerdict, comparison: OutputComparison | None, limit: float) -> str:
    """Return how far off the outputs are, in words, where a limit covers all that is wrong with their numbers.

    Empty where it does not: something is off by more, or is no float, or moved a NaN, or nobody measured it, or a
    sample alone, which cannot say how far off the rest is.
    """
    of_numbers = [finding for finding in cell.findings if finding.kind in OF_NUMBERS]
    if (
        not of_numbers
        or any(finding.detail.get("was", "values") != "values" for finding in of_numbers)
        or comparison is None
    ):
        return ""
    wrong = [tensor for _, tensor in _tensors(comparison) if not deciding_rule(tensor)[1]]
    if not wrong or not all(tensor.dtype.startswith(FLOATS) and not tensor.sampled for tensor in wrong):
        return ""
    worst = max(error_of(tensor) for tensor in wrong)
    return f"off by {worst:.2g} of the largest value, limit {limit:g}" if worst <= limit else ""


def beyond(comparison: OutputComparison | None, limit: float, *, but_failing: bool = False) -> Finding | None:
    """Return the finding on the float output that is further off than the limit; None where none is.

    What differs by no more than the old release from itself is not held against the new one. ``but_failing``: leave out
    the outputs that another finding tells already, for they fail without the limit.
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


# The heaviest first.
WEIGHTS = tuple(Severity)
# Nothing was tested, or without result: whatever a policy says of these, their cell has not passed.
UNTESTED = (
    "export_error",
    "not_measured",
    "not_called",
    "request_fails",
    "library_missing",
    "damaged_file",
    "protocol_error",
    "starved",
)
COMPARED = ("values", "late_divergence", "race")


@dataclass(frozen=True, kw_only=True, slots=True)
class WaiverContext:
    """What is the same for every cell of a run; ``ran``: what the run was."""

    waivers: Sequence[Waiver]
    ran: Ran
    today: dt.date


def enforce(
    cell: CellVerdict,
    policy: ModelPolicy,
    context: WaiverContext,
    *,
    comparison: OutputComparison | None,
    guessed: str = "",
) -> CellVerdict:
    """Return the cell as the policy and the waivers have it; ``judged`` keeps its status without them.

    ``cell``: as it was judged from what happened; ``guessed``: what its inputs were guessed to be; empty where they
    were given.
    """
    ruled = with_policy(cell, policy, comparison)
    if cell.scenario == "latency":
        ruled = latency_with_inputs(ruled, guessed)
    return apply_waivers(ruled, context.waivers, context.ran, context.today)


def settled(
    verdicts: Mapping[str, Sequence[CellVerdict]], settings: PolicySettings, context: WaiverContext
) -> dict[str, tuple[CellVerdict, ...]]:
    """Return the cells per model once all are judged: what no waiver needs is XPASS where the policy says so."""
    if settings.unused_waivers != "fail":
        return {name: tuple(cells) for name, cells in verdicts.items()}
    cells = fail_unused(
        [cell for own in verdicts.values() for cell in own], context.waivers, context.ran, context.today
    )
    return {name: tuple(cell for cell in cells if cell.model == name) for name in verdicts}


def without_policy(cell: CellVerdict) -> CellVerdict:
    decides = cell.decides or (cell.status is Status.UNSUPPORTED and cell.judged is not None)
    cell = without_waivers(cell)
    findings = [finding for finding in cell.findings if finding.kind not in ("error_limit", "broken_since")]
    if cell.ruled:  # which had put first what is heaviest under it
        findings.sort(key=lambda finding: WEIGHTS.index(SEVERITY.get(finding.kind, Severity.FAIL)))
    return replace(cell, findings=tuple(findings), ruled=(), decides=decides)


def judge_timed(
    model: str, measurement: LatencyMeasurement, budget: LatencyBudget, policy: ModelPolicy, *, divided: bool
) -> CellVerdict:
    """Return the verdict on a latency under the policy's limits; what only a looser one lets pass is reported.

    ``budget``: with the limit that the steady call has where the policy says nothing; ``divided``: whether what all
    models share was judged by itself; if not, a model is judged by its total.
    """
    own = with_limits(budget, policy.settings)
    by_total = replace(policy.settings, latency=TOTAL)
    judged = judge_latency(model, measurement, own, policy.settings if divided else by_total)
    shown = measurement.shown
    if judged.status is Status.FAIL and policy.settings.latency == OWN and not divided:
        return replace(judged, note=joined(judged.note, UNDIVIDED))
    if judged.status is Status.FAIL or shown is None:
        return judged
    strict = judge_latency(model, measurement, own, by_total)
    if judged.status is Status.PASS and strict.status is Status.FAIL and measurement.own is not None:
        why = f"{shown.words}, of which {measurement.own.words} is its own"
        return _let_pass_by(judged, f"latency of {policy.by['latency']}", why)
    limit, plain = tolerated(measurement, own), tolerated(measurement, budget)
    if limit <= plain or classify(measurement.steady, plain) != REGRESSED:
        return judged
    key = STEADY if own.limit > budget.limit else FLOOR
    words = f"{tolerated_words(measurement, own)} in place of {tolerated_words(measurement, budget)}"
    return _let_pass_by(judged, f"limits.{key} of {policy.by[f'limits.{key}']}", f"{shown.words}, limit {words}")


def _let_pass_by(judged: CellVerdict, by: str, why: str) -> CellVerdict:
    return replace(judged, ruled=(Ruled(kind="latency", was=Severity.FAIL, now=Severity.INFO, by=by, why=why),))


def with_policy(cell: CellVerdict, policy: ModelPolicy, comparison: OutputComparison | None) -> CellVerdict:
    """Return the cell under its policy; failures let pass are XFAIL, never PASS, the untestable UNSUPPORTED."""
    if cell.status in (Status.SAME_FAIL, Status.UNSUPPORTED):
        return cell
    rulings = {item.kind: item for item in _rulings(cell, policy, comparison)}
    added = _beyond(cell, policy, comparison, rulings)
    if added is not None:
        cell = replace(cell, findings=(*cell.findings, added))
        rulings |= {item.kind: item for item in _by_severity(cell, policy) if item.kind == added.kind}
    if not rulings and added is None:
        return cell
    weights = {finding.kind: _weight(cell, finding.kind, rulings) for finding in cell.findings}
    status = _status(weights)
    if _status({kind: _weight(cell, kind, {}) for kind in weights}) is not cell.status and status is not Status.FAIL:
        return cell  # no finding of it says why it has this status, so none can take it away
    if status is Status.PASS:
        status = _let_pass(cell, rulings, comparison)
    ruled_cell = replace(
        cell,
        findings=tuple(sorted(cell.findings, key=lambda finding: WEIGHTS.index(weights[finding.kind]))),
        ruled=(*cell.ruled, *rulings.values()),
    )
    return ruled_cell if status is cell.status else _as(ruled_cell, status)


def _status(weights: Mapping[str, Severity]) -> Status:
    return STATUS_OF[min(weights.values(), key=WEIGHTS.index)]


def _as(cell: CellVerdict, status: Status) -> CellVerdict:
    """Return the cell with the status that the policy makes of it, which it decides by, and its note says why."""
    untested = status is Status.UNSUPPORTED and cell.scenario != "alone"  # what was tested of the model decides it
    decides = cell.decides or status is Status.FAIL
    return replace(
        cell,
        status=status,
        judged=cell.status,
        decides=decides and not untested,
        note=joined(cell.note, ruled_words(cell.ruled)),
        judged_note=cell.own_note,
    )


def ruled_words(ruled: Sequence[Ruled]) -> str:
    return "; ".join(
        f"{item.kind} counts as {item.now} in place of {item.was}{f', {item.why}' if item.why else ''}: {item.by}"
        for item in ruled
    )


def _rulings(cell: CellVerdict, policy: ModelPolicy, comparison: OutputComparison | None) -> list[Ruled]:
    """Return what severities make of the findings; but what is within the limit of errors is no failure to weigh."""
    rulings = _by_severity(cell, policy)
    limit = policy.settings.limits.get(ERROR)
    failing = [kind for kind in cell.kinds if kind in OF_NUMBERS and _weight(cell, kind, {}) is Severity.FAIL]
    excuse = is_excused(cell, comparison, limit) if limit is not None and failing else ""
    if not excuse:
        return rulings
    by = f"limits.{ERROR} of {policy.by[f'limits.{ERROR}']}"
    kept = [item for item in rulings if item.kind not in failing]
    return [*kept, *(Ruled(kind=kind, was=Severity.FAIL, now=Severity.WARN, by=by, why=excuse) for kind in failing)]


def _by_severity(cell: CellVerdict, policy: ModelPolicy) -> list[Ruled]:
    rulings = []
    for kind in cell.kinds:
        key, severity = f"severity.{kind}", policy.settings.severity.get(kind)
        if severity is None and kind == "initialization_time" and INITIALIZATION in policy.settings.limits:
            key, severity = f"limits.{INITIALIZATION}", Severity.FAIL.value  # as of any limit that is written
        if severity is not None and Severity(severity) is not SEVERITY.get(kind):
            by = f"{key} of {policy.by[key]}"
            rulings.append(Ruled(kind=kind, was=_weight(cell, kind, {}), now=severity, by=by))
    return rulings


def _beyond(
    cell: CellVerdict, policy: ModelPolicy, comparison: OutputComparison | None, rulings: dict[str, Ruled]
) -> Finding | None:
    limit = policy.settings.limits.get(ERROR)
    if limit is None:
        return None
    failed = any(kind in COMPARED and _weight(cell, kind, rulings) is Severity.FAIL for kind in cell.kinds)
    return beyond(comparison, limit, but_failing=failed)


def _weight(cell: CellVerdict, kind: str, rulings: dict[str, Ruled]) -> Severity:
    """Return what a finding does to its cell; one that a judge has set aside weighs no more than the cell's status."""
    if kind in rulings:
        return Severity(rulings[kind].now)
    own = SEVERITY.get(kind, Severity.FAIL)
    if kind == "error_limit":
        return own
    least = {Status.INCONCLUSIVE: Severity.INCONCLUSIVE, Status.PASS: Severity.NAMED}.get(cell.status, Severity.FAIL)
    return max(own, least, key=WEIGHTS.index)


def _let_pass(cell: CellVerdict, rulings: dict[str, Ruled], comparison: OutputComparison | None) -> Status:
    was_open = cell.status is not Status.PASS  # for something else, which passes too; a failure stays one
    for item in rulings.values():
        fails = item.was == Severity.FAIL or (was_open and SEVERITY.get(item.kind) is Severity.FAIL)
        if fails and not item.why:
            return Status.XFAIL
    if any(finding.kind in rulings and _untested(finding, comparison) for finding in cell.findings):
        return Status.UNSUPPORTED
    return Status.PASS


def _untested(finding: Finding, comparison: OutputComparison | None) -> bool:
    """Whether a finding says that nothing was tested; one that could not be decided has a rule where it was."""
    if finding.kind in ("not_decidable", "unstable_old_release"):
        compared = comparison is not None and any(call.tensors or call.equal for call in comparison.calls)
        return not finding.rule or not compared
    return finding.kind in UNTESTED
