"""Prices: who is asked beside whom, and what is told where one of them does not answer."""

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import pytest

from harness.search.mitigation import price
from harness.search.mitigation.price import FEWEST_ROUNDS, MOST_ARMS, NOT_TIMED, Bill, bills
from harness.core.measurement import PairSample, Problem
from harness.core.outcome import Outcome
from harness.core.plan import LatencyBudget
from harness.core.probe import ProbeRequest
from harness.checks.latency.rounds import MeasuredRound
from harness.probing.facts import Decided
from harness.serving.settings.mitigations import JIT_SWITCHES, MITIGATIONS
from harness.machine import clock
from tests.unit.builders.stages import effects, facts_of, probed, result
from tests.unit.builders.tensors import near, pair_sample

BUDGET = LatencyBudget(looks=(2,))
SETS = [[setting] for setting in JIT_SWITCHES]


class Benchmark:
    """Measures rounds from a table: switch -> seconds of a call; who has none never answers."""

    def __init__(
        self, monkeypatch: pytest.MonkeyPatch, *, unmitigated: float | None = 2.0, **mitigated: float | None
    ) -> None:
        self.rounds: list[Mapping[str, ProbeRequest]] = []
        self._unmitigated, self._mitigated = unmitigated, mitigated
        monkeypatch.setattr(price, "measured_round", self._measure)

    def _measure(
        self, names: Sequence[str], requests: Mapping[str, ProbeRequest], *_: Any, **more: Any
    ) -> MeasuredRound:
        self.rounds.append(requests)
        times: dict[str, float] = {}
        for arm, request in requests.items():
            switches = request.profile.switches
            said = self._mitigated.get(next(iter(switches)), 3.0) if switches else self._unmitigated
            if arm != "old" and said is None:
                return MeasuredRound(
                    key="k", samples=(), problems={names[0]: Problem(words=f"the {arm} process died", arm=arm)}
                )
            times[arm] = 1.0 if arm == "old" else said or 0.0
        sample: PairSample = pair_sample([times] * 3, round_=more["number"])
        return MeasuredRound(key="k", samples=(sample,), problems={})

    @property
    def arms(self) -> list[list[str]]:
        return [list(requests) for requests in self.rounds]


def asked(facts: Decided, sets: Sequence[Sequence[Any]]) -> list[Bill]:
    return bills("m", sets, facts, effects(), budget=BUDGET)


def steady(bill: Bill) -> tuple[Any, Any]:
    (price,) = [price for price in bill.prices if price.quantity == "steady"]
    return price.to_old and price.to_old.ratio, price.to_new and price.to_new.ratio


def test_every_mitigation_stands_against_the_old_and_the_unmitigated_new_release(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    benchmark = Benchmark(monkeypatch, profiling=4.0, texpr_fuser=1.5)
    found = asked(facts_of("m"), SETS[:2])
    assert benchmark.arms == [["old", "unmitigated", "mitigated-0", "mitigated-1"]] * 2
    assert [steady(bill) for bill in found] == [(near(4.0), near(2.0)), (near(1.5), near(0.75))]
    sides = {arm: (request.side, dict(request.profile.switches)) for arm, request in benchmark.rounds[0].items()}
    assert sides == {
        "old": ("old", {}),
        "unmitigated": ("new", {}),
        "mitigated-0": ("new", {"profiling": False}),
        "mitigated-1": ("new", {"texpr_fuser": False}),
    }


def test_who_does_not_answer_unmitigated_is_not_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    benchmark = Benchmark(monkeypatch, profiling=4.0)
    facts = facts_of("m", alone={"m": probed(result("m", Outcome.HANG))})
    assert steady(*asked(facts, SETS[:1])) == (near(4.0), None)
    assert benchmark.arms[0] == ["old", "mitigated"]


def test_one_that_does_not_answer_does_not_hide_the_price_of_the_others(monkeypatch: pytest.MonkeyPatch) -> None:
    benchmark = Benchmark(monkeypatch, profiling=4.0, texpr_fuser=None)
    first, second = asked(facts_of("m"), SETS[:2])
    assert steady(first) == (near(4.0), near(2.0))
    assert (second.prices, second.problem, second.failed) == ((), "under load: the mitigated process died", True)
    assert [len(arms) for arms in benchmark.arms] == [4, 3, 3, 3, 2]


def test_an_unmitigated_release_that_dies_under_load_does_not_count_against_a_mitigation(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    benchmark = Benchmark(monkeypatch, unmitigated=None, profiling=4.0)
    (bill,) = asked(facts_of("m"), SETS[:1])
    assert (steady(bill), bill.problem) == ((near(4.0), None), "")
    assert benchmark.arms == [["old", "unmitigated", "mitigated"], *[["old", "mitigated"]] * 2]


def test_a_search_whose_end_is_over_begins_no_further_sets(monkeypatch: pytest.MonkeyPatch) -> None:
    benchmark = Benchmark(monkeypatch)
    many = [[MITIGATIONS["profiling off"], *one] for one in SETS[1:]] * 2
    ticks = itertools.count()
    monkeypatch.setattr(clock, "monotonic_ns", lambda: next(ticks))
    found = bills("m", many, facts_of("m"), replace(effects(), end_ns=0), budget=replace(BUDGET, looks=(5,)))
    assert len(benchmark.rounds) == FEWEST_ROUNDS, "as many as make an interval"
    first = MOST_ARMS - 2
    assert all(bill.prices for bill in found[:first])
    assert {(bill.problem, bill.failed) for bill in found[first:]} == {(NOT_TIMED, False)}


def test_no_more_processes_are_alive_than_a_machine_can_be_asked_to_hold(monkeypatch: pytest.MonkeyPatch) -> None:
    benchmark = Benchmark(monkeypatch)
    sets = [[setting] for setting in [*MITIGATIONS.values()] if setting.switches]
    sets += [[MITIGATIONS["profiling off"], one] for (one,) in sets[1:]]
    assert len(asked(facts_of("m"), sets)) == len(sets) > MOST_ARMS
    assert max(map(len, benchmark.arms)) == MOST_ARMS
