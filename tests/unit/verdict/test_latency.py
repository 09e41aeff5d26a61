"""From what a benchmark measured to the verdict on its cell."""

import math
from typing import Any

from dataclasses import replace

import pytest

from harness.core.findings import SEVERITY, Severity
from harness.core.measurement import LatencyMeasurement, Quantity, RatioEstimate, limit_words
from harness.core.outcome import Status
from harness.core.plan import LatencyBudget, PolicySettings
from harness.core.quantities import QUANTITIES, QUANTITY_LIMITS
from harness.core.verdict import CellVerdict
from harness.verdict.latency import judge_latency
from harness.checks.latency.limits import Next, next_step
from tests.unit.builders.verdicts import measured, ratio

SLOWER, AGAIN = ratio(1.08, 1.12), ratio(1.07, 1.13)
QUIET = ratio(0.99, 1.01)


def judge(measurement: LatencyMeasurement | None, limit: float = 0.03) -> CellVerdict:
    return judge_latency("bert", measurement, LatencyBudget(limit=limit), PolicySettings())


def kinds(verdict: CellVerdict) -> list[str]:
    return [finding.kind for finding in verdict.findings]


def test_ratio_is_reported_in_percent_with_its_interval() -> None:
    assert ratio(0.997, 1.045, 1.021).words == "+2.1 % [-0.3, +4.5]"


def test_interval_below_the_limit_passes() -> None:
    verdict = judge(measured(QUIET))
    assert (verdict.status, verdict.findings, verdict.decides) == (Status.PASS, (), True)
    assert (verdict.model, verdict.scenario) == ("bert", "latency")


def test_confirmed_slowdown_fails() -> None:
    verdict = judge(measured(SLOWER, confirmation=AGAIN, same_against_same=QUIET))
    assert (verdict.status, kinds(verdict), verdict.decides) == (Status.FAIL, ["latency"], True)
    assert (
        "+10.0 % [+7.0, +13.0] over 3 fresh process pairs, limit +3 %; the 3 pairs before them said"
        in verdict.findings[0].message
    )


def test_confirmed_slowdown_fails_without_a_same_against_same_arm() -> None:
    assert judge(measured(SLOWER, confirmation=AGAIN)).status is Status.FAIL


def test_what_was_suspected_stays_so_while_the_search_stays_above_the_limit() -> None:
    confirmed, open_ = ratio(1.045, 1.499, 1.252), ratio(0.98, 1.30, 1.13)
    slipped, sunk = ratio(1.02, 1.36, 1.189), ratio(0.95, 1.09, 1.02)
    assert judge(measured(slipped, confirmation=confirmed)).status is Status.FAIL
    assert judge(measured(slipped)).status is Status.INCONCLUSIVE
    assert judge(measured(sunk, confirmation=confirmed)).status is Status.INCONCLUSIVE
    assert judge(measured(slipped, confirmation=ratio(0.97, 1.02))).status is Status.PASS
    budget = LatencyBudget(limit=0.03, looks=(3, 4))
    assert next_step(measured(slipped, confirmation=open_), budget, rounds=3, fresh=3) is Next.CONFIRM
    assert next_step(measured(slipped, confirmation=confirmed), budget, rounds=3, fresh=3) is Next.DONE
    assert next_step(measured(sunk, confirmation=open_), budget, rounds=3, fresh=3) is Next.DONE


@pytest.mark.parametrize(
    ("confirmation", "why"),
    [(None, "it was not confirmed by fresh process pairs"), (ratio(0.98, 1.2), "3 fresh process pairs say +9.0 %")],
)
def test_slowdown_that_fresh_pairs_do_not_confirm_is_not_decided(confirmation: RatioEstimate | None, why: str) -> None:
    verdict = judge(measured(SLOWER, confirmation=confirmation, same_against_same=QUIET))
    assert (verdict.status, kinds(verdict)) == (Status.INCONCLUSIVE, ["latency_undecided"])
    assert why in verdict.findings[0].message


@pytest.mark.parametrize("high", [1.08, 1.09, 1.5])
def test_same_against_same_that_is_as_slow_vetoes_the_regression(high: float) -> None:
    verdict = judge(measured(SLOWER, confirmation=AGAIN, same_against_same=ratio(1.05, high, 1.06)))
    assert (verdict.status, kinds(verdict)) == (Status.INCONCLUSIVE, ["latency_undecided"])
    assert "two processes of the old release differ by +6.0 %" in verdict.findings[0].message


def test_same_against_same_that_is_slower_by_less_than_the_effect_vetoes_nothing() -> None:
    verdict = judge(measured(SLOWER, confirmation=AGAIN, same_against_same=ratio(1.05, 1.079)))
    assert (verdict.status, kinds(verdict)) == (Status.FAIL, ["latency"])


def test_same_against_same_that_is_merely_noisy_vetoes_nothing() -> None:
    assert judge(measured(SLOWER, confirmation=AGAIN, same_against_same=ratio(0.9, 1.3))).status is Status.FAIL


@pytest.mark.parametrize(("high", "decides"), [(1.249, False), (1.25, True), (1.4, True), (math.inf, True)])
def test_undecided_interval_decides_the_run_from_its_upper_bound_of_1_25_on(high: float, *, decides: bool) -> None:
    verdict = judge(measured(ratio(0.99, high, 1.02)))
    assert (verdict.status, verdict.decides) == (Status.INCONCLUSIVE, decides)
    assert "it would have told a slowdown of +5.1 % half of the time" in verdict.findings[0].message


@pytest.mark.parametrize(("high", "decides"), [(1.12, False), (1.5, True)])
def test_unconfirmed_slowdown_decides_the_run_by_the_same_bound(high: float, *, decides: bool) -> None:
    assert judge(measured(ratio(1.08, high))).decides is decides


def test_model_that_time_was_over_for_is_undecided_and_says_what_it_could_have_told() -> None:
    verdict = judge(replace(measured(ratio(0.99, 1.12, 1.03)), out_of_time=True))
    assert verdict.kinds == ("latency_undecided",)
    reached = 100 * (ratio(0.99, 1.12, 1.03).detectable - 1)
    assert f"time was over: a difference of +-{reached:.1f} % could have been seen" in verdict.findings[0].message


def test_model_that_time_was_over_for_before_its_first_look_decides_the_run() -> None:
    verdict = judge(replace(measured(None), out_of_time=True))
    assert (verdict.status, verdict.decides, verdict.kinds) == (Status.INCONCLUSIVE, True, ("latency_undecided",))
    assert verdict.findings[0].message == "steady latency was not looked at: time was over before its first 3 rounds"


@pytest.mark.parametrize("measurement", [None, measured(None), measured(None, problem="the new process died")])
def test_unmeasured_latency_is_never_a_pass(measurement: LatencyMeasurement | None) -> None:
    verdict = judge(measurement)
    assert (verdict.status, kinds(verdict)) == (Status.INCONCLUSIVE, ["not_measured"])


@pytest.mark.parametrize("steady", [QUIET, SLOWER, ratio(0.99, 1.1)], ids=["fast", "slow", "undecided"])
def test_benchmark_that_was_lost_midway_decides_nothing_but_the_run(steady: RatioEstimate) -> None:
    verdict = judge(measured(steady, confirmation=AGAIN, problem="the new process died"))
    assert (verdict.status, kinds(verdict), verdict.decides) == (Status.INCONCLUSIVE, ["not_measured"], True)
    assert verdict.findings[0].message == "the benchmark was lost after 3 rounds: the new process died"


def test_benchmark_that_broke_decides_and_one_that_was_not_run_does_not() -> None:
    broken = judge(measured(None, problem="the new process died"))
    assert broken.decides
    assert broken.findings[0].message.endswith("the new process died")
    assert not judge(measured(None)).decides
    assert not judge(None).decides


def test_fresh_pairs_below_the_limit_clear_a_suspicion() -> None:
    verdict = judge(measured(SLOWER, confirmation=QUIET))
    assert (verdict.status, verdict.findings) == (Status.PASS, ())


def quantity(low: float, old: float = 1.0, new: float = 2.0, unit: str = "s") -> Quantity:
    return Quantity(old=old, new=new, unit=unit, ratio=ratio(low, 9.0))


def beside(
    settings: PolicySettings = PolicySettings(), confirmed: bool = True, /, **quantities: Quantity
) -> CellVerdict:
    """The verdict on a model whose steady call is no slower; ``confirmed``: fresh rounds say the same."""
    named = {name.replace("__", ":"): found for name, found in quantities.items()}
    measurement = measured(QUIET, quantities=named, fresh_quantities=named if confirmed else {})
    return judge_latency("bert", measurement, LatencyBudget(), settings)


@pytest.mark.parametrize(
    ("name", "kind", "limit"),
    [
        ("load", "load_time", 1.5),
        ("first_calls", "first_calls", 1.5),
        ("call_1", "first_calls", 1.5),
        ("p90", "tail", 1.1),
        ("p99", "tail", 1.25),
        ("request", "throughput", 1.1),
        ("replay", "replay_time", 1.05),
        ("new_shape__batch_7", "new_shape", 1.5),
    ],
)
def test_quantity_is_named_only_when_its_whole_interval_is_beyond_the_limit(name: str, kind: str, limit: float) -> None:
    told, untold = (beside(PolicySettings(), **{name: quantity(low)}) for low in (limit + 0.01, limit))
    assert (told.status, kinds(told)) == (Status.PASS, [kind])
    assert kinds(untold) == []
    (open_,) = beside(PolicySettings(), False, **{name: quantity(limit + 0.01)}).findings
    assert open_.kind == "not_confirmed" and open_.message.endswith("; not confirmed by fresh process pairs")


@pytest.mark.parametrize("name", QUANTITIES)
def test_a_limit_that_is_written_fails_the_cell_and_a_default_one_is_named(name: str) -> None:
    measured_, limit = QUANTITIES[name], QUANTITY_LIMITS[name]
    found = Quantity(old=1e9, new=2e9, unit="s", ratio=ratio(limit + 0.2, 9.0))
    written = PolicySettings(limits={name: limit + 0.1})
    of_set = "new_shape:b" if name == "new_shape" else name
    assert (beside(**{of_set: found}).status, kinds(beside(**{of_set: found}))) == (Status.PASS, [measured_.kind])
    assert SEVERITY[measured_.kind] is Severity.NAMED
    failed = beside(written, **{of_set: found})
    assert (failed.status, kinds(failed), failed.findings[0].quantity) == (Status.FAIL, ["latency"], of_set)
    weighed = replace(written, severity={measured_.kind: "warn"})
    assert kinds(beside(weighed, **{of_set: found})) == [measured_.kind]
    assert kinds(beside(written, False, **{of_set: found})) == ["latency_undecided"]


def test_what_is_sure_is_told_though_what_covers_it_is_not() -> None:
    slow = quantity(3.0)
    measurement = measured(QUIET, quantities={"mean": slow, "p99": slow}, fresh_quantities={"p99": slow})
    verdict = judge_latency("bert", measurement, LatencyBudget(), PolicySettings())
    assert kinds(verdict) == ["not_confirmed", "tail"]


def test_a_severity_that_is_written_trusts_the_first_rounds() -> None:
    weighed = PolicySettings(severity={"load_time": "fail"})
    assert kinds(beside(weighed, False, load=quantity(3.0))) == ["load_time"]


def test_differences_that_nobody_would_notice_are_not_told() -> None:
    assert kinds(beside(load=quantity(9.0, old=0.001, new=0.0059))) == []
    assert kinds(beside(load=quantity(9.0, old=0.001, new=0.0061))) == ["load_time"]
    assert kinds(beside(peak_rss=quantity(9.0, old=1e6, new=16e6, unit="bytes"))) == []
    assert kinds(beside(peak_rss=quantity(9.0, old=1e6, new=99e6, unit="bytes"))) == ["memory"]


def test_sum_of_the_first_calls_and_the_mean_speak_for_what_they_are_made_of() -> None:
    slow = quantity(3.0)
    found = beside(call_0=slow, call_1=slow, first_calls=slow, mean=slow, p90=slow, p99=slow)
    assert [finding.message.split(" +")[0] for finding in found.findings] == ["first calls", "mean of a call"]


def test_limits_are_the_policys() -> None:
    assert kinds(beside(PolicySettings(limits={"load": 5.0}), load=quantity(4.0))) == []
    assert kinds(beside(PolicySettings(limits={"p90": 1.01}), p90=quantity(1.05))) == ["latency"]


GATES = PolicySettings(gates=("p99",))


def gated(fresh: Quantity | None, steady: RatioEstimate = QUIET, settings: PolicySettings = GATES) -> CellVerdict:
    """The verdict on a model whose p99 is beyond its limit, after what fresh rounds say of it."""
    again = {} if fresh is None else {"p99": fresh}
    measurement = measured(steady, quantities={"p99": quantity(2.0)}, fresh_quantities=again)
    return judge_latency("bert", measurement, LatencyBudget(), settings)


def test_gated_quantity_that_fresh_rounds_confirm_fails_the_cell() -> None:
    verdict = gated(quantity(1.1))
    assert (verdict.status, kinds(verdict)) == (Status.FAIL, ["latency"])
    assert verdict.findings[0].message == "p99 of a call +450 % [+100, +800] (1 s -> 2 s), limit +25 %"


def test_gated_quantity_fails_the_cell_even_while_the_steady_call_is_undecided() -> None:
    verdict = gated(quantity(1.1), steady=ratio(0.99, 1.1))
    assert (verdict.status, kinds(verdict)) == (Status.FAIL, ["latency_undecided", "latency"])


@pytest.mark.parametrize("fresh", [None, quantity(0.9)])
def test_gated_quantity_that_fresh_rounds_leave_open_is_undecided(fresh: Quantity | None) -> None:
    verdict = gated(fresh)
    assert (verdict.status, kinds(verdict), verdict.decides) == (Status.INCONCLUSIVE, ["latency_undecided"], False)
    assert verdict.findings[0].message.endswith("; not confirmed by fresh process pairs")


def test_gated_quantity_that_fresh_rounds_clear_is_not_told() -> None:
    verdict = gated(Quantity(old=1.0, new=1.0, ratio=ratio(0.9, 1.1)))
    assert (verdict.status, verdict.findings) == (Status.PASS, ())


def test_quantity_that_is_not_gated_is_named_once_fresh_rounds_confirm_it_and_warns_before() -> None:
    verdicts = [gated(fresh, settings=PolicySettings()) for fresh in (None, quantity(0.9), quantity(1.1))]
    assert [kinds(verdict) for verdict in verdicts] == [["not_confirmed"], ["not_confirmed"], ["tail"]]
    assert {verdict.status for verdict in verdicts} == {Status.PASS}


@pytest.mark.parametrize(
    ("old", "new", "told"),
    [("", "RuntimeError: no", ["quantity_lost"]), ("RuntimeError: no", "RuntimeError: no", []), ("stateful", "", [])],
)
def test_what_only_the_old_release_can_tell_is_reported(old: str, new: str, told: list[str]) -> None:
    verdict = judge(measured(QUIET, missing={"request": (old, new)}))
    assert (verdict.status, kinds(verdict)) == (Status.PASS, told)
    if told:
        assert verdict.findings[0].message.endswith("measured in the old release, not in the new: RuntimeError: no")


@pytest.mark.parametrize(("excess", "told"), [(None, []), (-5, []), ((1 << 20) - 1, []), (1 << 20, ["memory_growth"])])
def test_memory_that_grows_in_every_round_warns(excess: int | None, told: list[str]) -> None:
    growth = Quantity(old=-3.0, new=2048.0, unit="bytes")
    verdict = judge(measured(QUIET, growth_bytes=excess, quantities={"growth": growth}))
    assert (verdict.status, kinds(verdict)) == (Status.PASS, told)
    if told:
        assert verdict.findings[0].message == "resident memory grows by 2 KiB per call, 0 bytes before"


@pytest.mark.parametrize(
    ("old", "new", "kind"), [(0.0, 9.9, []), (1.0, 40.0, ["recompilation"]), (30.0, 40.0, ["recompiles"])]
)
def test_recompilation_at_another_shape_warns_where_it_is_new(old: float, new: float, kind: list[str]) -> None:
    changes = {
        "recompilation__batch_7": Quantity(old=old, new=new, unit="calls"),
        "new_shape__batch_7": Quantity(old=0.001, new=0.04),
    }
    verdict = beside(PolicySettings(), **changes)
    assert (verdict.status, kinds(verdict)) == (Status.PASS, kind)
    if kind:
        assert f"input set batch_7 cost 40 warm calls more, {old:.0f} before" in verdict.findings[0].message


def test_recompilation_of_microseconds_is_not_told() -> None:
    changes = {
        "recompilation__b": Quantity(old=0.0, new=40.0, unit="calls"),
        "new_shape__b": Quantity(old=0.001, new=0.004),
    }
    assert kinds(beside(PolicySettings(), **changes)) == []


def test_slowdown_is_reported_before_everything_else() -> None:
    verdict = judge(measured(SLOWER, confirmation=AGAIN, quantities={"load": quantity(2.0)}))
    assert kinds(verdict) == ["latency", "not_confirmed"]


@pytest.mark.parametrize(
    ("limit", "words"), [(1.03, "+3 %"), (1.025, "+2.5 %"), (1 + (1.05 - 1), "+5 %"), (1.0001, "+0.01 %")]
)
def test_limit_is_reported_as_it_is_written(limit: float, words: str) -> None:
    assert limit_words(limit) == words


def timed(steady: RatioEstimate, call_s: float, **changes: Any) -> LatencyMeasurement:
    return measured(steady, quantities={"p50": Quantity(old=call_s, new=call_s * steady.ratio)}, **changes)


@pytest.mark.parametrize(
    ("call_s", "status", "note"),
    [
        (10e-6, Status.PASS, f"{AGAIN.words}, 1 us per call: below the floor of 20 us"),
        (150e-6, Status.PASS, f"{AGAIN.words}, 15 us per call: below the floor of 20 us"),
        (1e-3, Status.FAIL, ""),
    ],
)
def test_slowdown_below_the_floor_is_no_finding_however_certain(call_s: float, status: Status, note: str) -> None:
    verdict = judge(timed(SLOWER, call_s, confirmation=AGAIN), limit=0.05)
    assert (verdict.status, verdict.note) == (status, note)
    assert kinds(verdict) == (["latency"] if status is Status.FAIL else [])


def test_floor_of_zero_holds_nothing_back_and_words_name_a_floor_that_decides() -> None:
    budget = LatencyBudget(floor_s=0.0)
    short = timed(SLOWER, 10e-6, confirmation=AGAIN)
    assert judge_latency("m", short, budget, PolicySettings()).status is Status.FAIL
    open_ = timed(ratio(1.0, 1.3), 100e-6)
    (finding,) = judge(open_, limit=0.05).findings
    assert "not decided against the limit of +20 % (20 us of 100 us)" in finding.message


def test_short_call_is_decided_by_the_floor_and_not_left_open() -> None:
    assert judge(timed(ratio(0.97, 1.12), 20e-6), limit=0.05).status is Status.PASS
    assert judge(timed(ratio(0.97, 1.12), 20e-3), limit=0.05).status is Status.INCONCLUSIVE


def test_size_that_is_judged_is_that_of_the_fresh_rounds() -> None:
    (finding,) = judge(measured(ratio(1.10, 1.14), confirmation=ratio(1.05, 1.09)), limit=0.03).findings
    assert finding.size == pytest.approx(1.07)
    assert finding.message.startswith("steady latency +7.0 % [+5.0, +9.0] over 3 fresh process pairs")


@pytest.mark.parametrize(
    ("own", "status", "kind"),
    [
        (ratio(1.06, 1.10), Status.FAIL, ["latency"]),
        (ratio(1.00, 1.02), Status.PASS, []),
        (ratio(1.02, 1.08), Status.INCONCLUSIVE, ["latency_undecided"]),
        (None, Status.FAIL, ["latency"]),
    ],
)
def test_policy_may_hold_the_own_part_against_the_limit(
    own: RatioEstimate | None, status: Status, kind: list[str]
) -> None:
    item = measured(SLOWER, confirmation=AGAIN, own=own)
    verdict = judge_latency("m", item, LatencyBudget(), PolicySettings(latency="own"))
    assert (verdict.status, kinds(verdict)) == (status, kind)
    assert judge_latency("m", item, LatencyBudget(), PolicySettings()).status is Status.FAIL


def test_model_that_is_surely_slow_decides_where_its_own_part_is_open() -> None:
    item = measured(ratio(1.10, 1.12), confirmation=ratio(1.10, 1.12), own=ratio(1.02, 1.08))
    verdict = judge_latency("m", item, LatencyBudget(undecided_limit=1.25), PolicySettings(latency="own"))
    assert (verdict.status, verdict.decides) == (Status.INCONCLUSIVE, True)


def test_a_verdict_has_the_model_that_was_timed_whatever_its_name_holds() -> None:
    found = judge_latency("ads/ranker", measured(QUIET), LatencyBudget(), PolicySettings())
    assert (found.model, found.scenario, found.cell) == ("ads/ranker", "latency", "ads/ranker/latency")
