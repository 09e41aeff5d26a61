"""How one model is timed, and what its times amount to; the processes are a function."""

import random
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from itertools import pairwise
from typing import Any

import pytest

from harness.core.plan import LatencyBudget
from harness.checks.latency.processes import ProcessLost
from harness.checks.latency.model_round import FEWEST_FIRST_CALLS, FIRST_CALLS, FIRST_CALLS_S, ModelRound, nearest_rank

ARMS = ("old", "new", "control")
BUDGET = LatencyBudget(blocks=7, block_s=0.02, threads=2, together_s=0.05)


class Arms:
    """Processes that take a known time per call, and remember what they were asked.

    ``answers`` has other ones: by order, or by arm and order; an exception is raised.
    """

    def __init__(self, call_s: Mapping[str, float], **answers: dict[str, Any] | Exception) -> None:
        self.call_s = call_s
        self.answers = answers
        self.orders: list[tuple[str, str]] = []
        self.details: list[dict[str, Any]] = []

    def order(self, arm: str, *, order: str, model: str, **details: Any) -> dict[str, Any]:
        assert model == "m"
        self.orders.append((arm, order))
        self.details.append(details)
        other = self.answers.get(f"{arm}_{order}", self.answers.get(order))
        if isinstance(other, Exception):
            raise other
        if other is not None:
            return other
        call_s, calls = self.call_s[arm], details.get("calls", 0)
        told: dict[str, dict[str, Any]] = {
            "load": {"load_s": 0.5, "calls_s": [1.0, call_s], "peak_rss_bytes": 7, "device_bytes": None},
            "block": {
                "times_ns": [int(1e9 * call_s)] * calls,
                "wait_ns": int(1e9 * 0.25 * call_s * calls),
                "wall_ns": int(1e9 * call_s * calls),
                "rss_bytes": 1000 + 8 * len(self.orders),
            },
            "shape": {"calls_s": [call_s] * calls},
            "together": {"request_s": call_s / 2, "calls": 9},
            "replay": {"times_ns": [int(1e9 * call_s / 4)] * calls},
            "drop": {"dropped": True},
        }
        return told[order]

    def model_round(self, **more: Any) -> ModelRound:
        details = {"budget": BUDGET, "chance": random.Random(0), **more}
        return ModelRound(model="m", arms=tuple(self.call_s), order=self.order, **details)

    def of(self, order: str) -> list[dict[str, Any]]:
        return [details for (_, name), details in zip(self.orders, self.details, strict=True) if name == order]


def test_blocks_are_filled_by_the_slowest_arm_and_have_the_same_calls() -> None:
    arms = Arms({"old": 0.001, "new": 0.002, "control": 0.001})
    model_round = arms.model_round()
    model_round.time()
    assert {block.calls for block in model_round.blocks} == {10}
    assert [block.turn for block in model_round.blocks] == [turn for turn in range(7) for _ in ARMS]
    assert {block.arm: block.p50_s for block in model_round.blocks} == pytest.approx(arms.call_s)
    assert [block.waited for block in model_round.blocks] == pytest.approx([0.25] * 21)
    asked = {(arm, name): details for (arm, name), details in zip(arms.orders, arms.details, strict=True)}
    loads = {arm: (details["calls"], details["call_s"]) for (arm, name), details in asked.items() if name == "load"}
    most, fewest = (FIRST_CALLS, FIRST_CALLS_S), (FEWEST_FIRST_CALLS, FIRST_CALLS_S)
    assert loads == {"old": most, "new": most, "control": fewest}


def test_order_is_drawn_anew_for_every_turn() -> None:
    model_round = Arms(dict.fromkeys(ARMS, 0.001)).model_round(budget=LatencyBudget(blocks=30))
    model_round.time()
    turns = [tuple(block.arm for block in model_round.blocks if block.turn == turn) for turn in range(30)]
    assert {frozenset(turn) for turn in turns} == {frozenset(ARMS)}
    assert len(set(turns)) == 6


@pytest.mark.parametrize("arms", [ARMS, ARMS[:2]])
def test_no_process_has_two_blocks_running_since_the_second_one_would_find_warm_caches(arms: tuple[str, ...]) -> None:
    model_round = Arms(dict.fromkeys(arms, 0.001)).model_round(budget=LatencyBudget(blocks=100))
    model_round.time()
    ran = [block.arm for block in model_round.blocks]
    assert len(ran) == 100 * len(arms)
    assert all(one != other for one, other in pairwise(ran))


def test_a_process_alone_has_all_blocks() -> None:
    model_round = Arms({"old": 0.001}).model_round()
    model_round.time()
    assert [block.arm for block in model_round.blocks] == ["old"] * 7


def test_a_round_for_the_steady_call_alone_makes_few_first_calls() -> None:
    arms = Arms({"old": 0.001, "new": 0.001})
    arms.model_round(first_calls=4).time()
    assert {details["calls"] for details in arms.of("load")} == {4}


@pytest.mark.parametrize(
    ("call_s", "calls", "turns"),
    [(1e-7, 100_000, 7), (0.01, 2, 7), (0.02, 1, 7), (0.022, 1, 6), (0.05, 1, 6), (2.0, 1, 6)],
)
def test_long_calls_get_fewer_turns(call_s: float, calls: int, turns: int) -> None:
    model_round = Arms({"old": call_s, "new": call_s}).model_round()
    model_round.time()
    assert {block.calls for block in model_round.blocks} == {calls}
    assert len(model_round.blocks) == 2 * turns


def test_probe_is_short_and_has_two_calls_at_least() -> None:
    for call_s, calls in ((1.0, 2), (0.001, 5), (1e-6, 25)):
        arms = Arms({"old": call_s, "new": call_s})
        arms.model_round().time()
        assert arms.of("block")[0] == {"calls": calls}


@pytest.mark.parametrize(
    ("call_s", "has_p90", "has_p99"), [(0.004, False, False), (0.002, True, False), (0.0005, True, True)]
)
def test_quantiles_need_calls(call_s: float, has_p90: bool, has_p99: bool) -> None:
    model_round = Arms({"old": call_s, "new": call_s}).model_round()
    model_round.time()
    told = model_round.samples()["new"]
    assert told.p90_s == (pytest.approx(call_s) if has_p90 else None)
    assert told.p99_s == (pytest.approx(call_s) if has_p99 else None)


def test_quantile_is_a_value_that_was_seen() -> None:
    values = list(range(100, 0, -1))
    assert [nearest_rank(values, quantile) for quantile in (0.5, 0.9, 0.99, 1.0)] == [50, 90, 99, 100]
    assert nearest_rank([7], 0.9) == 7
    assert nearest_rank([1, 9], 0.5) == 1


def test_growth_is_that_from_the_first_block_to_the_last() -> None:
    arms = Arms({"old": 0.001})
    model_round = arms.model_round()
    model_round.time()
    assert model_round.samples()["old"].growth_bytes == 8 * 6


def test_all_callers_at_the_same_time_are_alone_in_one_go_and_nothing_else_is() -> None:
    arms, inside = Arms(dict.fromkeys(ARMS, 0.001)), list[list[str]]()

    @contextmanager
    def alone() -> Iterator[None]:
        before = len(arms.orders)
        yield
        inside.append([order for _, order in arms.orders[before:]])

    model_round = arms.model_round(sets=("wide",), alone=alone, graphs=True)
    model_round.time()
    model_round.measure_extras()
    assert inside == [["together"] * 2]


def test_extras_are_asked_of_every_arm_but_the_control() -> None:
    arms = Arms(dict.fromkeys(ARMS, 0.001))
    model_round = arms.model_round(sets=("wide", "long"), callers=(3, 4), graphs=True)
    model_round.time()
    model_round.measure_extras()
    model_round.drop()
    asked = {
        order: sorted({arm for arm, name in arms.orders if name == order})
        for order in ("shape", "together", "replay", "drop")
    }
    assert asked == {
        **dict.fromkeys(("shape", "together", "replay"), ["new", "old"]),
        "drop": ["control", "new", "old"],
    }
    assert arms.of("together") == [{"threads": 2, "seconds": 0.05, "cores": [3, 4]}] * 2
    told = model_round.samples()
    assert (told["new"].request_s, told["new"].replay_s) == pytest.approx((0.0005, 0.00025))
    assert told["new"].shapes_s == {"wide": (0.001,) * 6, "long": (0.001,) * 6}


@pytest.mark.parametrize(("call_s", "calls"), [(0.001, 6), (0.027, 6), (3.0, 5)])
def test_slow_models_make_fewer_calls_of_another_shape(call_s: float, calls: int) -> None:
    arms = Arms({"old": call_s, "new": call_s})
    model_round = arms.model_round(sets=("wide",))
    model_round.time()
    model_round.measure_extras()
    assert {details["calls"] for details in arms.of("shape")} == {calls}


def test_what_was_skipped_was_not_measured() -> None:
    skipped = {"skipped": "it has a state"}
    arms = Arms({"old": 0.001, "new": 0.001}, together=skipped, replay=skipped)
    model_round = arms.model_round(graphs=True)
    model_round.time()
    model_round.measure_extras()
    for told in model_round.samples().values():
        assert (told.request_s, told.replay_s) == (None, None)
        assert told.missing == dict.fromkeys(["request", "replay"], "it has a state")
    assert not model_round.spoilt


@pytest.mark.parametrize("spoilt", [True, False])
def test_capture_that_spoils_its_process_is_reported(spoilt: bool) -> None:
    arms = Arms({"old": 0.001, "new": 0.001}, replay={"skipped": "RuntimeError: no", "spoilt": spoilt})
    model_round = arms.model_round(graphs=True)
    model_round.time()
    model_round.measure_extras()
    assert model_round.spoilt == spoilt


def test_one_caller_and_no_gpu_are_not_asked() -> None:
    arms = Arms({"old": 0.001, "new": 0.001})
    model_round = arms.model_round(budget=LatencyBudget(threads=1))
    model_round.time()
    model_round.measure_extras()
    assert not arms.of("together")
    assert not arms.of("replay")


def test_first_calls_that_are_longer_than_a_block_spare_the_probe() -> None:
    load = {"load_s": 0.5, "peak_rss_bytes": 7, "device_bytes": None}
    old, new = ({**load, "calls_s": [9.0, 0.001, *warm]} for warm in ([0.03, 0.04], [0.06, 0.05]))
    arms = Arms({"old": 0.03, "new": 0.05}, old_load=old, new_load=new)
    model_round = arms.model_round()
    model_round.time()
    assert len(model_round.blocks) == len(arms.of("block")) == 2 * 6
    assert {block.calls for block in model_round.blocks} == {1}


@pytest.mark.parametrize("warm", [[0.02], []])
def test_first_calls_that_do_not_tell_are_followed_by_a_probe(warm: list[float]) -> None:
    load = {"load_s": 0.5, "peak_rss_bytes": 7, "device_bytes": None, "calls_s": [9.0, 0.5, *warm]}
    arms = Arms({"old": 0.001, "new": 0.001}, load=load)
    model_round = arms.model_round()
    model_round.time()
    assert len(arms.of("block")) == len(model_round.blocks) + 2


def test_mean_is_that_of_all_blocks() -> None:
    arms = Arms({"old": 0.004, "new": 0.004})
    model_round = arms.model_round()
    model_round.time()
    for arm, slow_s in (("old", 0.0), ("new", 0.035)):
        model_round._times_ns[arm][-1] += int(1e9 * slow_s)  # one of 7 blocks of 5 calls
    told = model_round.samples()
    assert (told["old"].mean_s, told["new"].mean_s) == pytest.approx((0.004, 0.005))


def test_time_too_short_for_the_clock_is_not_zero() -> None:
    model_round = Arms({"old": 1e-10, "new": 1e-10}).model_round()
    model_round.time()
    assert {block.p50_s for block in model_round.blocks} == {1e-9}
    assert model_round.samples()["new"].mean_s == 1e-9


def test_share_of_waiting_is_that_of_the_whole_block() -> None:
    block = {"times_ns": [10], "wait_ns": 100, "wall_ns": 1000, "rss_bytes": 1}  # most of it between the calls
    model_round = Arms({"old": 0.001, "new": 0.001}, block=block).model_round()
    model_round.time()
    assert {block.waited for block in model_round.blocks} == {0.1}


def test_work_is_not_recorded() -> None:
    arms = Arms({"old": 0.001, "new": 0.001})
    model_round = arms.model_round()
    model_round.time()
    blocks, told, orders = list(model_round.blocks), model_round.samples(), len(arms.of("block"))
    model_round.work()
    assert (model_round.blocks, model_round.samples()) == (blocks, told)
    assert arms.of("block")[orders:] == [{"calls": 20}]


def test_model_that_fails_at_one_extra_is_asked_for_the_others() -> None:
    failed = {"error": "RuntimeError: not for threads", "spoilt": False}
    arms = Arms({"old": 0.001, "new": 0.001}, together=failed, new_shape={"error": "RuntimeError: no", "spoilt": False})
    model_round = arms.model_round(sets=("wide",), graphs=True)
    model_round.time()
    model_round.measure_extras()
    told = model_round.samples()
    assert told["old"].missing == {"request": "RuntimeError: not for threads"}
    assert told["new"].missing == {"new_shape:wide": "RuntimeError: no", "request": "RuntimeError: not for threads"}
    assert (told["old"].shapes_s, told["new"].shapes_s) == ({"wide": (0.001,) * 6}, {})
    assert [arm.replay_s for arm in told.values()] == pytest.approx([0.00025] * 2)
    assert not model_round.spoilt


@pytest.mark.parametrize(
    "loss", [ProcessLost("the new process died"), {"error": "the new process died", "spoilt": True}]
)
def test_process_that_is_lost_at_an_extra_is_asked_no_more(loss: dict[str, Any] | Exception) -> None:
    arms = Arms({"old": 0.001, "new": 0.001}, new_shape=loss)
    model_round = arms.model_round(sets=("wide", "long"), graphs=True)
    model_round.time()
    model_round.measure_extras()
    told = model_round.samples()
    quantities = ["new_shape:wide", "new_shape:long", "request", "replay"]
    assert told["new"].missing == dict.fromkeys(quantities, "the new process died")
    assert told["old"].missing == {}
    assert told["old"].request_s is not None
    assert model_round.spoilt
    assert [order for arm, order in arms.orders if arm == "new" and order != "block"] == ["load", "shape"]


def test_error_in_a_block_is_no_sample() -> None:
    model_round = Arms({"old": 0.001, "new": 0.001}, new_block={"error": "RuntimeError: planted"}).model_round()
    with pytest.raises(ProcessLost, match="new: RuntimeError: planted"):
        model_round.time()


@pytest.mark.parametrize("pause_s", [0.0, 0.015])
def test_next_arm_waits_for_the_threads_of_the_last_one(pause_s: float, monkeypatch: pytest.MonkeyPatch) -> None:
    paused: list[float] = []
    monkeypatch.setattr(time, "sleep", paused.append)
    arms = Arms(dict.fromkeys(ARMS, 0.001))
    arms.model_round(pause_s=pause_s).time()
    asked = [arm for arm, _ in arms.orders]
    turned = sum(one != other for one, other in zip(asked, asked[1:], strict=False))
    assert paused == ([pause_s] * turned if pause_s else [])


def test_blocks_of_a_model_with_a_state_have_room_for_what_comes_between_its_calls() -> None:
    block = {"times_ns": [100_000] * 25, "wait_ns": 0, "wall_ns": 25 * 1_000_000, "rss_bytes": 1}
    model_round = Arms({"old": 0.0001, "new": 0.0001}, block=block).model_round()
    model_round.time()
    assert {one.calls for one in model_round.blocks} == {20}
    assert [one.p50_s for one in model_round.blocks] == pytest.approx([0.0001] * 14)
