"""What settings cost: one benchmark of the old release, the new one as it is, and the new one under each of them."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from harness.checks.latency.benchmark import Time, contest, measured_round, order_deadline_s, placed, timed_runtime
from harness.checks.latency.limits import NOT_REGRESSED, REGRESSED, classify
from harness.checks.latency.statistics import between, measure
from harness.config.policy import model_budget, model_policy, some_gate
from harness.core.diagnosis import Setting
from harness.core.measurement import NEW, LatencyMeasurement, PairSample, RatioEstimate
from harness.core.models import Artifact
from harness.core.outcome import Outcome, Status
from harness.core.plan import LatencyBudget
from harness.core.probe import ServingProfile
from harness.core.verdict import CellVerdict, Price
from harness.machine import clock
from harness.probing.facts import Effects, Probed, Provisioned, WithWorker, new_profile
from harness.search.mitigation.trial import profile_with
from harness.store import codec
from harness.verdict.latency import judge_latency

# In the order in which they are shown; the first one ranks.
PRICED = ("steady", "request", "request_cpu", "first_calls", "load", "peak_rss", "device_memory")
OLD, UNMITIGATED = "old", "unmitigated"
# Processes of one benchmark: more of them would cost more memory than they save imports of torch.
MOST_ARMS = 8
MITIGATED = "mitigated"
# With less there is no interval.
FEWEST_ROUNDS = 2
NOT_TIMED = "not timed: the time is over"
# Of a benchmark of one set of settings, or of one artifact, with the old release.
TWO_ARMS = {"old": "old", "new": "new"}
# What is slow for sure shows in a few rounds; the rest is measured as long as it takes.
SCREENING = LatencyBudget(looks=(3,), blocks=5, model_s=5.0)


@dataclass(frozen=True, kw_only=True)
class Bill:
    prices: tuple[Price, ...] = ()
    measured: LatencyMeasurement | None = None
    problem: str = ""
    failed: bool = False

    @property
    def steady(self) -> RatioEstimate | None:
        return self.measured.steady if self.measured is not None else None

    @property
    def priced(self) -> dict[str, Any]:
        """The fields of a ``Mitigation`` that say what it costs."""
        call_s = self.measured.call_s if self.measured is not None else None
        return {"prices": self.prices, "price": self.steady, "call_s": call_s}


def answers_unmitigated(model: str, facts: Probed) -> bool:
    """Whether the new release answers without a mitigation, so that there is something to compare times with."""
    return model in facts.alone and facts.alone[model].models[0].outcome is Outcome.COMPLETED


def bills(
    model: str, sets: Sequence[Sequence[Setting]], facts: WithWorker, effects: Effects, *, budget: LatencyBudget
) -> list[Bill]:
    """Return what each set costs, in the order of ``sets``.

    All of them are alive at once, as many as the machine can be asked to hold, so that they are compared under the same
    conditions. Where that fails, each is measured without the others: one of them may answer alone only. What fails
    beside the unmitigated release is measured without that too: it is sick, and now and then fails under load.

    Where the search has an end, nothing further is begun after it; what has begun is measured as often as an interval
    needs.
    """

    def billed(sets: Sequence[Sequence[Setting]], *, unmitigated: bool) -> list[Bill]:
        if is_late(effects):
            return [Bill(problem=NOT_TIMED)] * len(sets)
        together = _benchmarked(model, sets, facts, effects, budget=budget, unmitigated=unmitigated)
        if not any(bill.problem for bill in together):
            return together
        if len(sets) > 1:
            return [bill for single in sets for bill in billed([single], unmitigated=unmitigated)]
        return billed(sets, unmitigated=False) if unmitigated else together

    unmitigated = answers_unmitigated(model, facts)
    size = MOST_ARMS - 1 - unmitigated
    return [
        bill
        for start in range(0, len(sets), size)
        for bill in billed(sets[start : start + size], unmitigated=unmitigated)
    ]


def _benchmarked(
    model: str,
    sets: Sequence[Sequence[Setting]],
    facts: WithWorker,
    effects: Effects,
    *,
    budget: LatencyBudget,
    unmitigated: bool,
) -> list[Bill]:
    artifact = facts.artifact(model)
    ask = partial(facts.requests.benchmark, runtime=timed_runtime(facts, effects))
    requests = {OLD: ask("old", [artifact])}
    if unmitigated:
        requests[UNMITIGATED] = ask("new", [artifact], new_profile(facts.plan))
    arms = [MITIGATED] if len(sets) == 1 else [f"{MITIGATED}-{number}" for number in range(len(sets))]
    for arm, settings in zip(arms, sets, strict=True):
        requests[arm] = ask("new", [artifact], profile_with(facts, settings))
    folder = effects.folder("prices") / codec.digest(requests)[:16]
    placement = placed(budget, [request.profile for request in requests.values()])
    samples: list[PairSample] = []
    rounds = budget.looks[0]
    for number in range(rounds):
        if number >= FEWEST_ROUNDS and is_late(effects):
            break
        what = f"time under {len(sets)} set{'s' * (len(sets) > 1)} of settings"
        effects.progress.stage(f"{what}, round {number + 1} of {rounds}", 1)
        measured = measured_round(
            [model],
            requests,
            effects,
            folder=folder,
            number=number,
            budget=budget,
            deadline_s=order_deadline_s([model], facts),
            placement=placement,
            extras=True,
        )
        if measured.problems:
            problem = measured.problems[model]
            return [Bill(problem=f"under load: {problem.words}", failed=problem.arm == MITIGATED)] * len(sets)
        samples += measured.samples
    return [_bill(model, samples, arm) for arm in arms]


def is_late(effects: Effects) -> bool:
    return effects.end_ns is not None and clock.monotonic_ns() > effects.end_ns


def _bill(model: str, samples: Sequence[PairSample], arm: str) -> Bill:
    to_old = measure(model, between(samples, OLD, arm))
    to_new = measure(model, between(samples, UNMITIGATED, arm))
    prices = (Price(quantity=name, to_old=_ratio(to_old, name), to_new=_ratio(to_new, name)) for name in PRICED)
    return Bill(prices=tuple(price for price in prices if price.to_old is not None), measured=to_old)


def _ratio(measured: LatencyMeasurement, quantity: str) -> RatioEstimate | None:
    return measured.steady if quantity == PRICED[0] else measured.ratio(quantity)


def timed(
    contestants: Mapping[str, tuple[Artifact, Artifact]],
    facts: WithWorker,
    effects: Effects,
    *,
    profile: ServingProfile,
    label: str,
    budget: LatencyBudget | None = None,
    time: Time | None = None,
    give_up: Collection[str] = (),
) -> Mapping[str, LatencyMeasurement]:
    """Return how long the calls of models take in the new release under ``profile``, against the old one.

    ``time``: what is left of it; by default what is left until the end of the search, if it has one; ``give_up``:
    models that need only be known not to be slow any more; one that a look finds slow is not timed on.
    """
    if time is None and effects.end_ns is not None:
        time = Time(left_s=max(0.0, (effects.end_ns - clock.monotonic_ns()) * 1e-9))
    return contest(
        contestants,
        facts,
        effects,
        profile=profile,
        arms=TWO_ARMS,
        label=label,
        budget=budget,
        confirm=False,
        extras=some_gate(facts.plan),
        runtime=timed_runtime(facts, effects),
        time=time,
        give_up=give_up,
    )


def why_ill(measured: LatencyMeasurement) -> str:
    return f"under load: {measured.problem}" if measured.problem_of == NEW else ""


def why_still_slow(slow: CellVerdict, measured: LatencyMeasurement, facts: Provisioned) -> str:
    """Return what about a model is slow under a setting, in words; empty where nothing is any more."""
    if measured.problem:
        return f"under load: {measured.problem}"
    budget = model_budget(facts.plan, slow.model)
    now = judge_latency(slow.model, measured, budget, model_policy(facts.plan, slow.model).settings)
    if now.status is Status.PASS:
        return ""
    speed = classify(measured.steady, budget.limit)
    if speed == NOT_REGRESSED:  # so it is a gated quantity
        return now.findings[0].message
    words = measured.steady.words if measured.steady is not None else "not measured"
    return f"{'still slow' if speed == REGRESSED else speed}: {words}"


def is_slow(cell: CellVerdict) -> bool:
    return cell.status in (Status.FAIL, Status.XFAIL) and any(finding.kind == "latency" for finding in cell.findings)


def is_open(measured: LatencyMeasurement | None, limit: float) -> bool:
    """Whether the steady call was measured and neither slow nor fast enough for sure."""
    return measured is not None and classify(measured.steady, limit) not in (REGRESSED, NOT_REGRESSED)
