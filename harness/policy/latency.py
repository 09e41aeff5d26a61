"""From a measurement of the duel to the verdict on its cell."""

from harness.domain.measurement import LatencyMeasurement, signed_percent
from harness.domain.outcome import Status
from harness.domain.plan import LatencyBudget, PolicySettings
from harness.domain.verdict import CellVerdict, Finding
from harness.policy.quantities import gate_verdicts, quantity_findings
from harness.policy.speed import NOT_REGRESSED, REGRESSED, UNDECIDED, classify, confirms, noise_reaches, stands
from harness.policy.words import amount


def judge_latency(
    cell: str, measurement: LatencyMeasurement | None, budget: LatencyBudget, settings: PolicySettings
) -> CellVerdict:
    """Return the verdict on one model's latency.

    The steady call fails it if its interval lies wholly above the limit, fresh rounds confirm it, and the old release
    does not differ from itself by as much. Where fresh rounds lie below the limit they are believed: the suspicion
    was chosen for its size, they were not. Other quantities warn, or fail where policy gates them and fresh rounds
    confirm it.
    """
    if measurement is None or measurement.steady is None:
        problem = measurement.problem if measurement is not None else ""
        finding = Finding(kind="not_measured", message=f"steady latency was not measured: {problem or 'no sample'}")
        return _verdict(cell, Status.INCONCLUSIVE, [finding], decides=bool(problem))
    if measurement.problem:
        message = f"the duel was lost after {measurement.steady.pairs} rounds: {measurement.problem}"
        return _verdict(cell, Status.INCONCLUSIVE, [Finding(kind="not_measured", message=message)])
    findings = list(quantity_findings(measurement, settings))
    verdict = classify(measurement.steady, budget.limit)
    if verdict == REGRESSED and stands(measurement, budget.limit):
        findings.insert(0, _regression(measurement, budget.limit))
    elif verdict != NOT_REGRESSED and not _cleared(measurement, budget.limit):
        findings.insert(0, _undecided(measurement, verdict, budget.limit))
    kinds = {finding.kind for finding in findings}
    if "latency" in kinds:
        return _verdict(cell, Status.FAIL, findings)
    if "latency_undecided" in kinds:
        return _verdict(cell, Status.INCONCLUSIVE, findings, decides=measurement.steady.high >= budget.undecided_limit)
    return _verdict(cell, Status.PASS, findings)


def _verdict(cell: str, status: Status, findings: list[Finding], *, decides: bool = True) -> CellVerdict:
    return CellVerdict(
        cell=cell,
        model=cell.split("/", 1)[0],
        scenario="latency",
        status=status,
        findings=tuple(findings),
        decides=decides,
    )


def was_not_asked(measurement: LatencyMeasurement, budget: LatencyBudget, settings: PolicySettings) -> bool:
    """Whether something is beyond a limit that the duel did not have: it would have fought fresh rounds over it."""
    if classify(measurement.steady, budget.limit) == REGRESSED and measurement.confirmation is None:
        return True
    gates = gate_verdicts(measurement, settings)
    return any(found == UNDECIDED and name not in measurement.fresh_quantities for name, found in gates.items())


def _cleared(measurement: LatencyMeasurement, limit: float) -> bool:
    return confirms(measurement.confirmation, 1 + limit) == NOT_REGRESSED


def limit_words(limit: float) -> str:
    """Return the limit of the steady call as a change: ``+3%``, ``+2.5%``."""
    return f"+{100 * limit:.4g}%"


def _regression(measurement: LatencyMeasurement, limit: float) -> Finding:
    steady, fresh = measurement.steady, measurement.confirmation
    assert steady is not None
    assert fresh is not None
    p50 = measurement.quantities.get("p50")
    times = f" ({amount(p50.old, 's')} -> {amount(p50.new, 's')})" if p50 is not None else ""
    message = (
        f"steady latency {steady.words}{times} over {steady.pairs} process pairs, limit {limit_words(limit)}; "
        f"{fresh.pairs} fresh pairs say {fresh.words}"
    )
    return Finding(kind="latency", message=message, rule="duel, confirmed by fresh pairs", size=steady.ratio)


def _undecided(measurement: LatencyMeasurement, verdict: str, limit: float) -> Finding:
    steady, fresh, same = measurement.steady, measurement.confirmation, measurement.same_against_same
    assert steady is not None
    if verdict != REGRESSED:
        told = signed_percent((1 + limit) * steady.detectable)
        why = f"; it would have told a slowdown of {told} % half of the time"
    elif fresh is None:
        why = "; it was not confirmed by fresh process pairs"
    elif noise_reaches(measurement, limit) and same is not None:
        why = f"; two processes of the old release differ by {same.words} themselves"
    else:
        why = f"; {fresh.pairs} fresh process pairs say {fresh.words}"
    message = f"steady latency {steady.words} is not decided against the limit of {limit_words(limit)}{why}"
    return Finding(kind="latency_undecided", message=message, size=steady.ratio)
