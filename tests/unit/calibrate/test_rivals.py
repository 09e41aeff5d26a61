"""The rules of other tools, on numbers whose answer is known."""

from typing import Any

import pytest

from harness.core.measurement import ArmSample, Block, PairSample
from benchmarks.calibrate import rivals
from benchmarks.calibrate.rivals import BLOCK_RULES, RULES

CALM = {"median_ratio": 1.0, "p_value": 0.5, "old_shown": 620.0, "new_shown": 620.0, "new_is_best": 1}


def flagged(**given: Any) -> list[str]:
    return [name for name, rule in RULES.items() if rule({**CALM, **given})]


def sample(number: int, old: list[float], new: list[float]) -> PairSample:
    times = [("old", old), ("new", new), ("control", [9.0] * len(old))]
    blocks = [
        Block(arm=arm, turn=turn, p50_s=p50_s, calls=3) for arm, found in times for turn, p50_s in enumerate(found)
    ]
    arms = {arm: ArmSample(load_s=0.1, calls_s=(0.1,)) for arm, _ in times}
    return PairSample(model="m", round=number, blocks=tuple(blocks), arms=arms)


def test_equal_medians_are_flagged_by_nobody() -> None:
    assert flagged() == []


def test_a_threshold_flags_what_is_above_it() -> None:
    assert flagged(median_ratio=1.05) == []
    assert [name[-2:] for name in flagged(median_ratio=1.051)] == ["5%"]
    assert len(flagged(median_ratio=1.11)) == 2


def test_a_table_is_read_by_its_figures_and_then_by_its_colours() -> None:
    within = flagged(new_shown=625.0)  # one percent is painted as best too
    assert [name.rpartition(", ")[2] for name in within] == ["new trimmed median larger"]
    assert len(flagged(new_shown=640.0, new_is_best=0)) == 2
    assert flagged(new_shown=600.0) == []


def test_mann_whitney_flags_below_five_percent() -> None:
    assert flagged(p_value=0.05) == []
    assert len(flagged(p_value=0.049)) == 1


def test_blocks_of_the_first_pair_stand_alone_and_then_all_are_one_heap(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rivals, "p_value", lambda old, new: float(len(old) + len(new)))
    samples = [sample(0, [1.0, 1.0, 1.0], [2.0, 2.0, 2.0]), sample(1, [4.0] * 4, [4.0] * 4)]
    assert rivals.blocks_say(samples) == [2.0, 6.0, 1.0, 14.0]


def test_nothing_measured_says_nothing() -> None:
    assert rivals.blocks_say([]) == [None] * 4


def test_each_rule_on_blocks_flags_a_large_and_clear_slowdown() -> None:
    row = {"pair_ratio": 1.2, "pair_p": 1e-4, "all_ratio": 1.2, "all_p": 1e-9}
    calm = {"pair_ratio": 1.0, "pair_p": 0.5, "all_ratio": 1.0, "all_p": 0.5}
    assert all(rule(row) for rule in BLOCK_RULES.values())
    assert not any(rule(calm) for rule in BLOCK_RULES.values())


@pytest.mark.slow
def test_mann_whitney_is_one_sided() -> None:
    pytest.importorskip("scipy")
    slow, fast = [1.0 + 0.01 * index for index in range(20)], [0.5 + 0.01 * index for index in range(20)]
    assert rivals.p_value(fast, slow) < 0.001
    assert rivals.p_value(slow, fast) > 0.999
