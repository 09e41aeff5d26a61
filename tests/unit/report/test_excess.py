"""How far each model is over its limits, and what is undecided, faster, or slow to start."""

from dataclasses import replace

import pytest

from harness.core.outcome import Status
from harness.core.verdict import Beyond
from harness.report.excess import by_excess, slow_starts, start_words, steady_calls
from harness.report.words.phrases import beyond_words
from tests.unit.builders.causes import of_three_causes
from tests.unit.builders.reports import blocked, scenario, scenario_side, upgrade_ok
from tests.unit.builders.tensors import near


def test_the_furthest_over_a_limit_is_first_and_what_has_no_limit_before_all() -> None:
    found = by_excess(blocked())
    factors = [item.over[0].factor if item.over else 0.0 for item in found]
    assert factors[:2] == [None, None]
    sizes = [factor for factor in factors if factor is not None]
    assert len(sizes) == len(factors) - 2 and sizes == sorted(sizes, reverse=True)
    assert [item.row.model for item in found][2:4] == ["recommender_v2", "text_tagger"]


def test_everything_of_a_model_that_is_over_a_limit_counts_and_one_of_it_fails_it() -> None:
    (slow,) = [item for item in by_excess(blocked()) if item.row.model == "text_tagger"]
    assert slow.over[0].words.startswith("first calls of input set large") and not slow.over[0].fails
    (steady,) = [item for item in slow.over if item.fails]
    assert steady.factor == near(0.119 / 0.03) and steady.limit == "+3.0 %"


def test_a_model_within_its_limits_is_over_none() -> None:
    assert [item.over for item in by_excess(upgrade_ok())] == [(), (), ()]


def test_what_a_waiver_covers_is_over_no_limit() -> None:
    report = blocked()
    rows = tuple(
        replace(row, cells=tuple(replace(cell, status=Status.XFAIL) for cell in row.cells), status=Status.XFAIL)
        for row in report.judgement.rows
    )
    waived = replace(report, judgement=replace(report.judgement, rows=rows))
    assert not any(item.over for item in by_excess(waived))


def test_a_pass_with_something_undecided_is_undecided() -> None:
    words = {item.row.model: item.row.status_word for item in by_excess(of_three_causes(3, 3))}
    assert words["model_00"] == "undecided" and words["model_01"] == words["model_02"] == "PASS"


def test_faster_is_an_interval_beyond_the_limit_on_the_other_side() -> None:
    report = of_three_causes(0, 41)
    calls = steady_calls(report, by_excess(report))
    assert [item.model for item in calls if item.faster] == [
        item.model for item in calls if item.ratio.high * item.limit < 1
    ]
    assert 0 < sum(item.faster for item in calls) < len(calls)
    assert [item.ratio.ratio for item in calls] == sorted((item.ratio.ratio for item in calls), reverse=True)


def test_slow_starts_are_those_beyond_the_limit_the_worst_first() -> None:
    quick = scenario("concurrent", "vision", 2)
    slow = [
        scenario("while_serving", name, 2, new=scenario_side(2, init_s=init_s))
        for name, init_s in (("a", 4.0), ("b", 9.0))
    ]
    report = replace(upgrade_ok(), scenarios=(quick, *slow))
    assert [item.group for item, _ in slow_starts(report)] == ["b", "a"]
    assert start_words(*slow_starts(report)[0]) == "load while serving, b: 1.24 -> 9.00 s (+626 %)"
    assert slow_starts(replace(report, limits={"initialization": 8.0})) == ()


@pytest.mark.parametrize(
    ("beyond", "words", "brief"),
    [
        (None, "no limit", "no limit"),
        (Beyond(value=1.283, allowed=1.05, is_ratio=True), "+28.3 % where +5 % is allowed", "+28.3 % (limit +5 %)"),
        (Beyond(value=0.31, allowed=3e-5, is_ratio=False), "off by 0.31 where 3e-05 is allowed", "0.31 (limit 3e-05)"),
    ],
)
def test_what_is_beyond_a_limit_is_told_by_its_value(beyond: Beyond | None, words: str, brief: str) -> None:
    assert (beyond_words(beyond), beyond_words(beyond, brief=True)) == (words, brief)
