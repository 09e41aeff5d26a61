"""Three-valued opinions on latency ratios."""

from harness.domain.measurement import LatencyMeasurement, RatioEstimate
from harness.domain.outcome import Status
from harness.domain.plan import LatencyBudget, PolicySettings
from harness.domain.verdict import CellVerdict, Finding

REGRESSED = "regressed"
NOT_REGRESSED = "not regressed"
UNDECIDED = "undecided"


def classify(estimate: RatioEstimate | None, limit: float) -> str:
    """Return REGRESSED if the interval lies wholly above 1 + ``limit``, NOT_REGRESSED if wholly below."""
    if estimate is None:
        return UNDECIDED
    if estimate.low > 1 + limit:
        return REGRESSED
    if estimate.high < 1 + limit:
        return NOT_REGRESSED
    return UNDECIDED


def judge_latency(
    cell: str, measurement: LatencyMeasurement | None, budget: LatencyBudget, settings: PolicySettings
) -> CellVerdict:
    """Return the verdict on one model's latency.

    A regression stands only if fresh process pairs confirm it and the same-against-same arm, two processes of
    the old release, is not called a regression by the same rule.
    """
    model = cell.split("/", 1)[0]
    scenario = "latency"
    if measurement is None or measurement.steady is None:
        problem = measurement.problem if measurement is not None else ""
        finding = Finding(kind="not_measured", message=f"steady latency was not measured: {problem or 'no sample'}")
        return CellVerdict(
            cell=cell,
            model=model,
            scenario=scenario,
            status=Status.INCONCLUSIVE,
            findings=(finding,),
            decides=bool(problem),
        )
    if measurement.problem:
        message = f"the duel was lost after {measurement.steady.pairs} rounds: {measurement.problem}"
        finding = Finding(kind="not_measured", message=message)
        return CellVerdict(cell=cell, model=model, scenario=scenario, status=Status.INCONCLUSIVE, findings=(finding,))
    findings = list(_growth_findings(measurement, settings))
    verdict = classify(measurement.steady, budget.limit)
    words = measurement.steady.words
    if verdict == NOT_REGRESSED:
        status, decides = Status.PASS, True
    elif verdict == REGRESSED and _stands(measurement, budget.limit):
        message = f"steady latency {words} over {measurement.steady.pairs} process pairs, limit +{budget.limit:.0%}"
        findings.insert(0, Finding(kind="latency", message=message, rule="duel, confirmed by fresh pairs"))
        status, decides = Status.FAIL, True
    else:
        decides = measurement.steady.high >= budget.undecided_limit
        why = _why(measurement, verdict, budget.limit)
        message = f"steady latency {words} is not decided against the limit of +{budget.limit:.0%}{why}"
        findings.insert(0, Finding(kind="latency_undecided", message=message))
        status = Status.INCONCLUSIVE
    return CellVerdict(
        cell=cell, model=model, scenario=scenario, status=status, findings=tuple(findings), decides=decides
    )


def _stands(measurement: LatencyMeasurement, limit: float) -> bool:
    confirmed = measurement.confirmation is not None and classify(measurement.confirmation, limit) == REGRESSED
    return confirmed and not _noise_reaches(measurement, limit)


def _noise_reaches(measurement: LatencyMeasurement, limit: float) -> bool:
    """Whether two processes of the old release are called a regression too, and by as much."""
    same, steady = measurement.same_against_same, measurement.steady
    return same is not None and steady is not None and classify(same, limit) == REGRESSED and steady.low <= same.high


def _why(measurement: LatencyMeasurement, verdict: str, limit: float) -> str:
    if verdict != REGRESSED or measurement.steady is None:
        width = measurement.steady.detectable if measurement.steady is not None else float("inf")
        return f"; this run could have shown +{(width - 1):.0%}"
    if measurement.confirmation is None:
        return "; it was not confirmed by fresh process pairs"
    same = measurement.same_against_same
    if same is not None and classify(measurement.confirmation, limit) == REGRESSED:
        return f"; two processes of the old release differ by {same.words} themselves"
    return f"; fresh process pairs say {measurement.confirmation.words}"


def _growth_findings(measurement: LatencyMeasurement, settings: PolicySettings) -> list[Finding]:
    findings = []
    for kind, words, estimate, limit in (
        ("load_time", "load time", measurement.load, settings.warn_load_ratio),
        ("first_calls", "first calls", measurement.first_calls, settings.warn_first_calls_ratio),
    ):
        if estimate is not None and estimate.low > limit:
            message = f"{words} {estimate.words}, told from +{limit - 1:.0%}"
            findings.append(Finding(kind=kind, message=message))
    return findings
