"""From a red cell to its waivers: kinds, bounds and releases as they were seen, and what is refused."""

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from harness.verdict.waivers.apply import apply_waivers
from harness.verdict.waivers.entries import why_no_bound
from harness.verdict.waivers.making import WHY_NOT, at_most, line_of, waivers_for
from harness.verdict.waivers.uses import too_broad
from harness.core.measurement import Quantity
from harness.core.outcome import Status
from harness.core.verdict import CellVerdict, Ruled, Waiver
from harness.core.errors import ConfigError
from tests.unit.builders.verdicts import finding, measured, ratio, verdict
from tests.unit.builders.verdicts import DAY, RAN, in_days, sized


def made(cell: CellVerdict, **changes: Any) -> tuple[Waiver, ...]:
    words: dict[str, Any] = {"owner": "ann", "reason": "known", "issue": "", "expires": None, "bound": None}
    return waivers_for(cell, RAN, **{**words, "today": DAY, **changes})


def refused(cell: CellVerdict, **changes: Any) -> str:
    with pytest.raises(ConfigError) as caught:
        made(cell, **changes)
    assert caught.value.hint
    return caught.value.message


def test_a_waiver_is_no_broader_than_what_was_seen() -> None:
    (one,) = made(verdict(Status.FAIL, sized(0.00412), sized(0.001), finding("stride"), scenario="concurrent"))
    assert one == Waiver(
        model="m",
        kind="values",
        reason="known",
        owner="ann",
        expires=in_days(90),
        bound=0.0042,
        old="~=2.1.2",
        new="~=2.6.0",
        scenario="concurrent",
        device="cpu",
        profile="default",
    )
    assert not list(too_broad(one, DAY, size=0.00412))


def test_each_kind_that_fails_gets_its_own() -> None:
    both = made(verdict(Status.FAIL, sized(0.5), finding("dtype"), sized(0.25, "late_divergence")))
    assert [(item.kind, item.bound) for item in both] == [("values", 0.5), ("dtype", None), ("late_divergence", 0.25)]


@pytest.mark.parametrize(
    ("kind", "size"), [("values", 0.00412), ("latency", 1.17), ("hang", None), ("values", float("inf"))]
)
def test_what_was_made_covers_the_cell_that_it_was_made_from(kind: str, size: float | None) -> None:
    red = verdict(Status.FAIL, sized(size, kind), finding("nan_placement"))
    assert apply_waivers(red, made(red), RAN, DAY).status is Status.XFAIL


def test_a_ratio_may_be_as_large_as_its_interval_reaches() -> None:
    slow = verdict(Status.FAIL, sized(1.17, "latency"), sized(1.4, "tail"), scenario="latency")
    slow = replace(slow, ruled=(Ruled(kind="tail", was="warn", now="fail", by="p"),))
    p99 = Quantity(old=1.0, new=1.4, ratio=ratio(1.2, 3.001, value=1.4), unit="s")
    benchmark = measured(ratio(1.1, 1.352, value=1.17), quantities={"p99": p99})
    assert [item.bound for item in made(slow, latency=benchmark)] == [1.36, 3.01]
    assert [item.bound for item in made(slow)] == [1.2, 1.44]
    endless = measured(ratio(1.1, float("inf"), value=1.17))
    assert made(slow, latency=endless)[0].bound == 1.2
    other = measured(ratio(1.1, 9.0, value=1.3))
    assert made(slow, latency=other)[0].bound == 1.2


@pytest.mark.parametrize("size", [None, float("inf"), 0.0])
def test_a_size_that_is_not_known_gives_no_bound(size: float | None) -> None:
    assert made(verdict(Status.FAIL, sized(0.5), sized(size)))[0].bound is None


def test_what_is_asked_for_is_written() -> None:
    link = "https://example.org/1"
    (one,) = made(verdict(Status.FAIL, sized(0.1)), issue=link, expires=in_days(1), bound=0.3)
    assert (one.issue, one.expires, one.bound) == (link, in_days(1), 0.3)


def test_severities_of_the_policy_decide_what_fails() -> None:
    ruled = (Ruled(kind="tail", was="warn", now="fail", by="p"), Ruled(kind="values", was="fail", now="warn", by="p"))
    cell = verdict(Status.FAIL, sized(0.1), sized(1.4, "tail"), scenario="latency", ruled=ruled)
    assert [(item.kind, item.bound) for item in made(cell)] == [("tail", 1.44)]


@pytest.mark.parametrize("status", [status for status in Status if status is not Status.FAIL])
def test_a_cell_that_is_not_red_is_refused(status: Status) -> None:
    said = refused(verdict(status, finding("values")))
    assert said == f"m/alone {WHY_NOT[status][0]}"


def test_a_cell_whose_findings_do_not_fail_it_is_refused() -> None:
    assert "no finding that can be waived" in refused(verdict(Status.FAIL, finding("not_measured")))


def test_a_kind_of_another_harness_is_refused() -> None:
    assert "knows no finding melted" in refused(verdict(Status.FAIL, finding("melted")))


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"owner": " "}, "--owner is empty"),
        ({"reason": "\n"}, "--reason is empty"),
        ({"owner": "NAME"}, "--owner NAME stands for words of yours"),
        ({"reason": "TEXT"}, "--reason TEXT stands for words of yours"),
        ({"issue": "JIRA-1"}, "--issue JIRA-1: not a link"),
        ({"expires": in_days(-1)}, "--expires 2026-11-20 is over"),
        ({"bound": 0.05}, "--bound 0.05 does not cover the 0.1 that was seen"),
        ({"bound": -1.0}, "--bound -1"),
        ({"bound": float("inf")}, "--bound inf"),
        ({"bound": float("nan")}, "--bound nan"),
    ],
)
def test_an_argument_that_is_wrong_is_refused(changes: dict[str, Any], said: str) -> None:
    assert refused(verdict(Status.FAIL, sized(0.1)), **changes).startswith(said)


def test_a_bound_is_for_one_size() -> None:
    two = verdict(Status.FAIL, sized(0.1), sized(0.2, "late_divergence"))
    assert "values, late_divergence, each with a size of its own" in refused(two, bound=0.3)
    assert "has no size (hang)" in refused(verdict(Status.FAIL, finding("hang")), bound=0.3)
    one = verdict(Status.FAIL, sized(0.1), finding("dtype"))
    assert [item.bound for item in made(one, bound=0.3)] == [0.3, None]


@pytest.mark.parametrize(
    ("version", "said"),
    [
        ("2.6.0+cu124", "~=2.6.0"),
        ("2.1.2", "~=2.1.2"),
        ("2.8.0.dev20250101+cpu", "==2.8.0.dev20250101"),
        ("2.1.0a0+git123", "==2.1.0a0"),
        ("2.6.0.post1", "==2.6.0.post1"),
        ("2.6", "==2.6"),
        ("", ""),
        ("parrots", ""),
    ],
)
def test_releases_are_written_as_a_range_that_holds_them(version: str, said: str) -> None:
    assert line_of(version) == said


@settings(max_examples=200)
@given(st.floats(5e-324, 1e300))
def test_an_error_is_rounded_up_and_little(size: float) -> None:
    bound = at_most(size, "error")
    assert size <= bound
    assert bound <= size * 1.11 or size < 1e-322  # there are not two digits left
    assert why_no_bound("values", bound) is None


@settings(max_examples=200)
@given(st.floats(1.0, 1e6))
def test_a_ratio_has_room_for_being_measured_again(size: float) -> None:
    bound = at_most(size, "ratio")
    assert size + 0.029 <= bound <= 1.1 * size + 0.05
    assert why_no_bound("latency", bound) is None
