"""How one model is timed, and what its times amount to; the processes are a function."""

import random
from collections.abc import Mapping
from typing import Any

import pytest

from harness.domain.plan import LatencyBudget
from harness.runtime.bout import FIRST_CALLS, FIRST_CALLS_S, Bout, nearest_rank

ARMS = ("old", "new", "twin")
BUDGET = LatencyBudget(blocks=7, block_s=0.02, threads=2, together_s=0.05)


class Arms:
    """Processes that take a known time per call, and remember what they were asked."""

    def __init__(self, call_s: Mapping[str, float], **answers: dict[str, Any]) -> None:
        self.call_s = call_s
        self.answers = answers
        self.orders: list[tuple[str, str]] = []
        self.details: list[dict[str, Any]] = []

    def order(self, arm: str, *, order: str, model: str, **details: Any) -> dict[str, Any]:
        assert model == "m"
        self.orders.append((arm, order))
        self.details.append(details)
        if order in self.answers:
            return self.answers[order]
        call_s, calls = self.call_s[arm], details.get("calls", 0)
        told: dict[str, dict[str, Any]] = {
            "load": {"load_s": 0.5, "calls_s": [1.0, call_s], "peak_rss_bytes": 7, "device_bytes": None},
            "block": {
                "times_ns": [int(1e9 * call_s)] * calls,
                "wait_ns": int(1e9 * 0.25 * call_s * calls),
                "rss_bytes": 1000 + 8 * len(self.orders),
            },
            "shape": {"calls_s": [call_s] * calls},
            "together": {"request_s": call_s / 2, "calls": 9},
            "replay": {"times_ns": [int(1e9 * call_s / 4)] * calls},
            "drop": {"dropped": True},
        }
        return told[order]

    def bout(self, **more: Any) -> Bout:
        details = {"budget": BUDGET, "chance": random.Random(0), **more}
        return Bout(model="m", arms=tuple(self.call_s), order=self.order, **details)

    def of(self, order: str) -> list[dict[str, Any]]:
        return [details for (_, name), details in zip(self.orders, self.details, strict=True) if name == order]


def test_blocks_are_filled_by_the_slowest_arm_and_have_the_same_calls() -> None:
    arms = Arms({"old": 0.001, "new": 0.002, "twin": 0.001})
    bout = arms.bout()
    bout.time()
    assert {block.calls for block in bout.blocks} == {10}
    assert [block.turn for block in bout.blocks] == [turn for turn in range(7) for _ in ARMS]
    assert {block.arm: block.p50_s for block in bout.blocks} == pytest.approx(arms.call_s)
    assert [block.waited for block in bout.blocks] == pytest.approx([0.25] * 21)
    assert {(details["calls"], details["call_s"]) for details in arms.of("load")} == {(FIRST_CALLS, FIRST_CALLS_S)}


def test_order_is_drawn_anew_for_every_turn() -> None:
    bout = Arms(dict.fromkeys(ARMS, 0.001)).bout(budget=LatencyBudget(blocks=30))
    bout.time()
    turns = [tuple(block.arm for block in bout.blocks if block.turn == turn) for turn in range(30)]
    assert {frozenset(turn) for turn in turns} == {frozenset(ARMS)}
    assert len(set(turns)) == 6


@pytest.mark.parametrize(
    ("call_s", "calls", "turns"),
    [(1e-7, 100_000, 7), (0.01, 2, 7), (0.02, 1, 7), (0.03, 1, 5), (0.05, 1, 3), (2.0, 1, 3)],
)
def test_long_calls_get_fewer_turns(call_s: float, calls: int, turns: int) -> None:
    bout = Arms({"old": call_s, "new": call_s}).bout()
    bout.time()
    assert {block.calls for block in bout.blocks} == {calls}
    assert len(bout.blocks) == 2 * turns


def test_probe_is_short_and_has_two_calls_at_least() -> None:
    for call_s, calls in ((1.0, 2), (0.001, 5), (1e-6, 25)):
        arms = Arms({"old": call_s, "new": call_s})
        arms.bout().time()
        assert arms.of("block")[0] == {"calls": calls}


@pytest.mark.parametrize(
    ("call_s", "has_p90", "has_p99"), [(0.004, False, False), (0.002, True, False), (0.0005, True, True)]
)
def test_quantiles_need_calls(call_s: float, has_p90: bool, has_p99: bool) -> None:
    bout = Arms({"old": call_s, "new": call_s}).bout()
    bout.time()
    told = bout.samples()["new"]
    assert told.p90_s == (pytest.approx(call_s) if has_p90 else None)
    assert told.p99_s == (pytest.approx(call_s) if has_p99 else None)


def test_quantile_is_a_value_that_was_seen() -> None:
    values = list(range(100, 0, -1))
    assert [nearest_rank(values, quantile) for quantile in (0.5, 0.9, 0.99, 1.0)] == [50, 90, 99, 100]
    assert nearest_rank([7], 0.9) == 7
    assert nearest_rank([1, 9], 0.5) == 1


def test_growth_is_that_from_the_first_block_to_the_last() -> None:
    arms = Arms({"old": 0.001})
    bout = arms.bout()
    bout.time()
    assert bout.samples()["old"].growth_bytes == 8 * 6


def test_extras_are_asked_of_both_releases_alone() -> None:
    arms = Arms(dict.fromkeys(ARMS, 0.001))
    bout = arms.bout(sets=("wide", "long"), callers=(3, 4), graphs=True)
    bout.time()
    bout.measure_extras()
    bout.drop()
    asked = {
        order: sorted(arm for arm, name in arms.orders if name == order) for order in ("together", "replay", "drop")
    }
    assert asked == {"together": ["new", "old"], "replay": ["new", "old"], "drop": ["new", "old", "twin"]}
    assert arms.of("together") == [{"threads": 2, "seconds": 0.05, "cores": [3, 4]}] * 2
    told = bout.samples()
    assert (told["new"].request_s, told["new"].replay_s) == pytest.approx((0.0005, 0.00025))
    assert told["new"].shapes_s == {"wide": (0.001,) * 8, "long": (0.001,) * 8}
    assert (told["twin"].request_s, told["twin"].replay_s, told["twin"].shapes_s) == (None, None, {})


@pytest.mark.parametrize(("call_s", "calls"), [(0.001, 8), (0.05, 5), (3.0, 3)])
def test_slow_models_make_fewer_calls_of_another_shape(call_s: float, calls: int) -> None:
    arms = Arms({"old": call_s, "new": call_s})
    bout = arms.bout(sets=("wide",))
    bout.time()
    bout.measure_extras()
    assert {details["calls"] for details in arms.of("shape")} == {calls}


def test_what_was_skipped_was_not_measured() -> None:
    skipped = {"skipped": "it has a state"}
    arms = Arms({"old": 0.001, "new": 0.001}, together=skipped, replay=skipped)
    bout = arms.bout(graphs=True)
    bout.time()
    bout.measure_extras()
    assert [(told.request_s, told.replay_s) for told in bout.samples().values()] == [(None, None)] * 2


@pytest.mark.parametrize("spoilt", [True, False])
def test_capture_that_spoils_its_process_is_told(spoilt: bool) -> None:
    arms = Arms({"old": 0.001, "new": 0.001}, replay={"skipped": "RuntimeError: no", "spoilt": spoilt})
    bout = arms.bout(graphs=True)
    bout.time()
    bout.measure_extras()
    assert bout.spoilt == spoilt


def test_one_caller_and_no_gpu_are_not_asked() -> None:
    arms = Arms({"old": 0.001, "new": 0.001})
    bout = arms.bout(budget=LatencyBudget(threads=1))
    bout.time()
    bout.measure_extras()
    assert not arms.of("together")
    assert not arms.of("replay")
