"""What waivers did in a run: needed, not needed, too broad, about to end; each with its healthy twin."""

from typing import Any

import pytest

from harness.verdict.decide import decide, judge_row
from harness.verdict.waivers.apply import apply_waivers, without_waivers
from harness.verdict.waivers.uses import fail_unused, uses_without_run, too_broad, waiver_notes, waiver_uses
from harness.core.outcome import Decision, Status
from harness.core.verdict import CellVerdict, Ruled, Waiver, WaiverState, WaiverUse
from tests.unit.builders.verdicts import planted_defect, finding, verdict
from tests.unit.builders.verdicts import DAY, RAN, in_days, sized, waiver

NARROW: dict[str, Any] = {"new": "~=2.6.0", "bound": 0.2, "expires": in_days(90)}


def used(one: Waiver, *cells: CellVerdict, days: int = 0) -> WaiverUse:
    judged = [apply_waivers(cell, (one,), RAN, in_days(days)) for cell in cells]
    (use,) = waiver_uses(judged, (one,), RAN, in_days(days))
    return use


def test_a_waiver_that_a_cell_needs_is_used_and_says_for_what() -> None:
    use = used(waiver(**NARROW), verdict(Status.FAIL, sized(0.1), sized(0.15)), verdict(scenario="concurrent"))
    assert (use.state, use.size, use.broad) == (WaiverState.USED, 0.15, ())
    assert use.cells == ("m/alone",)
    assert use.days_left == 90


def test_a_waiver_is_needed_also_where_it_does_not_do() -> None:
    use = used(waiver(**NARROW), verdict(Status.FAIL, sized(0.1), finding("dtype")))
    assert use.state is WaiverState.USED


@pytest.mark.parametrize(
    ("changes", "state"),
    [
        ({"bound": 0.05}, WaiverState.EXCEEDED),
        ({"expires": in_days(-1)}, WaiverState.EXPIRED),
        ({"new": "~=2.7.0"}, WaiverState.OTHER_PAIR),
    ],
)
def test_a_waiver_that_does_not_count_says_why_and_where_it_would_have(
    changes: dict[str, Any], state: WaiverState
) -> None:
    use = used(waiver(**{**NARROW, **changes}), verdict(Status.FAIL, sized(0.1)))
    assert (use.state, use.size, len(use.cells)) == (state, 0.1, 1)


def test_a_waiver_that_no_finding_needed_is_unused() -> None:
    cells = (verdict(Status.FAIL, finding("values")), verdict(scenario="concurrent"))
    assert used(waiver(), *cells).state is WaiverState.USED
    assert used(waiver("dtype"), *cells).state is WaiverState.UNUSED
    assert used(waiver(), verdict(Status.PASS)).state is WaiverState.UNUSED


@pytest.mark.parametrize(
    "cells",
    [
        (),
        (verdict(model="other"),),
        (verdict(Status.INCONCLUSIVE),),
        (verdict(Status.UNSUPPORTED),),
        (verdict(Status.SAME_FAIL),),
        (verdict(Status.FAIL, finding("load_error")),),
        (verdict(), verdict(Status.INCONCLUSIVE, scenario="concurrent")),
        (verdict(scenario="latency"),),
    ],
)
def test_a_waiver_that_nothing_could_need_is_not_called_unused(cells: tuple[CellVerdict, ...]) -> None:
    assert used(waiver(), *cells).state is WaiverState.NOT_JUDGED


def test_what_the_policy_lets_pass_leaves_its_waiver_open() -> None:
    ruled = (Ruled(kind="values", was="fail", now="warn", by="severity.values of policy.toml"),)
    let_pass = verdict(Status.XFAIL, finding("values"), judged=Status.FAIL, ruled=ruled)
    assert used(waiver(), let_pass).state is WaiverState.NOT_JUDGED
    assert used(waiver("dtype"), let_pass).state is WaiverState.UNUSED


def test_a_scenario_that_was_not_run_leaves_its_waiver_open() -> None:
    alone, together = verdict(), verdict(scenario="concurrent")
    assert used(waiver("hang"), alone).state is WaiverState.NOT_JUDGED
    assert used(waiver("hang"), alone, together).state is WaiverState.UNUSED
    assert used(waiver("hang", scenario="alone"), alone).state is WaiverState.UNUSED
    assert used(waiver("values", scenario="concurrent"), alone).state is WaiverState.NOT_JUDGED


def test_a_waiver_of_another_device_or_profile_is_left_open() -> None:
    assert used(waiver(device="cpu", profile="default"), verdict()).state is WaiverState.UNUSED
    assert used(waiver(device="cuda"), verdict()).state is WaiverState.NOT_JUDGED
    assert used(waiver(profile="cpu_fusion"), verdict()).state is WaiverState.NOT_JUDGED


def test_a_waiver_of_times_is_judged_by_the_latency() -> None:
    slow = waiver("latency")
    assert used(slow, verdict()).state is WaiverState.NOT_JUDGED
    assert used(slow, verdict(), verdict(scenario="latency")).state is WaiverState.UNUSED
    assert used(slow, verdict(), verdict(Status.INCONCLUSIVE, scenario="latency")).state is WaiverState.NOT_JUDGED
    assert used(waiver(), verdict(), verdict(Status.INCONCLUSIVE, scenario="latency")).state is WaiverState.UNUSED


@pytest.mark.parametrize(
    ("changes", "reasons"),
    [
        ({}, ()),
        ({"bound": None}, ("no bound",)),
        ({"bound": 1.01}, ("a bound of 1.01 where 0.1 was seen",)),
        ({"bound": 1.0}, ()),
        ({"new": ""}, ("any pair of releases",)),
        ({"new": "", "old": "~=2.1.2"}, ()),
        ({"expires": in_days(366)}, ()),
        ({"expires": in_days(367)}, ("367 days long",)),
        ({"bound": None, "new": "", "expires": in_days(400)}, ("no bound", "any pair of releases", "400 days long")),
    ],
)
def test_a_waiver_that_covers_more_than_it_need_is_reported(changes: dict[str, Any], reasons: tuple[str, ...]) -> None:
    assert tuple(too_broad(waiver(**{**NARROW, **changes}), DAY, size=0.1)) == reasons


def test_a_kind_without_size_needs_no_bound() -> None:
    assert not list(too_broad(waiver("hang", new="~=2.6.0"), DAY))


@pytest.mark.parametrize(("bound", "broad"), [(1.9, False), (2.1, True)])
def test_a_ratio_is_held_against_what_it_is_above_one(bound: float, broad: bool) -> None:
    assert bool(list(too_broad(waiver("latency", new="~=2.6.0", bound=bound), DAY, size=1.1))) is broad


def test_a_bound_is_not_held_against_what_nobody_saw() -> None:
    assert not list(too_broad(waiver(**{**NARROW, "bound": 1e6}), DAY))


def test_without_a_run_a_waiver_is_expired_or_open() -> None:
    over, live = uses_without_run((waiver(expires=in_days(-1)), waiver(new="<1")), DAY)
    assert (over.state, over.days_left) == (WaiverState.EXPIRED, -1)
    assert (live.state, live.broad) == (WaiverState.NOT_JUDGED, ("no bound",))


# unused waivers that fail


def failing(cells: list[CellVerdict], *known: Waiver) -> list[CellVerdict]:
    judged = [apply_waivers(cell, known, RAN, DAY) for cell in cells]
    return list(fail_unused(judged, known, RAN, DAY))


def test_a_waiver_that_nothing_needs_makes_its_cell_xpass_and_blocks() -> None:
    (cell,) = failing([verdict(Status.PASS, finding("stride"))], waiver())
    assert (cell.status, cell.judged) == (Status.XPASS, Status.PASS)
    assert [item.kind for item in cell.findings] == ["waiver_unused", "stride"]
    row = judge_row("m", [cell])
    judged = decide([row], [planted_defect()])
    assert (judged.decision, judged.exit_code) == (Decision.BLOCKED, 1)
    assert judged.reason == "m: the waiver of ann for values is needed no more"


@pytest.mark.parametrize(
    "known", [waiver(expires=in_days(-1)), waiver(new="~=2.7.0"), waiver(model="n"), waiver("hang"), waiver("latency")]
)
def test_a_waiver_that_does_not_count_or_could_not_be_needed_makes_no_xpass(known: Waiver) -> None:
    assert [cell.status for cell in failing([verdict()], known)] == [Status.PASS]


def test_a_needed_waiver_makes_no_xpass() -> None:
    cells = failing([verdict(Status.FAIL, finding("values")), verdict(scenario="concurrent")], waiver())
    assert [cell.status for cell in cells] == [Status.XFAIL, Status.PASS]


def test_xpass_is_the_cell_of_its_scenario_or_kind() -> None:
    cells = [verdict(), verdict(scenario="concurrent"), verdict(scenario="latency")]
    for known, scenario in ((waiver(scenario="concurrent"), "concurrent"), (waiver("latency"), "latency")):
        assert [cell.scenario for cell in failing(cells, known) if cell.status is Status.XPASS] == [scenario]


def test_a_green_cell_is_taken_before_one_that_another_waiver_covers() -> None:
    red = verdict(Status.FAIL, finding("values"))
    both = (waiver(), waiver("dtype"))
    assert [cell.status for cell in failing([red, verdict(scenario="concurrent")], *both)] == [
        Status.XFAIL,
        Status.XPASS,
    ]
    (alone,) = failing([red], *both)
    assert (alone.status, alone.judged) == (Status.XPASS, Status.FAIL)


def test_xpass_is_undone_where_a_cell_is_judged_again() -> None:
    cells = [verdict(Status.PASS, finding("stride")), verdict(Status.FAIL, finding("values"), scenario="concurrent")]
    known = (waiver("dtype"), waiver(scenario="concurrent"))
    assert [without_waivers(cell) for cell in failing(cells, *known)] == cells


def test_waiver_of_a_cell_that_is_xpass_for_another_is_needed_still() -> None:
    known = (waiver(), waiver("dtype"))
    (cell,) = failing([verdict(Status.FAIL, finding("values"))], *known)
    assert cell.status is Status.XPASS
    states = [use.state for use in waiver_uses([cell], known, RAN, DAY)]
    assert states == [WaiverState.USED, WaiverState.UNUSED]  # or prune would take both


def test_xpass_leaves_the_waiver_unused() -> None:
    cells = failing([verdict()], waiver())
    assert [use.state for use in waiver_uses(cells, (waiver(),), RAN, DAY)] == [WaiverState.UNUSED]


# notes


def test_a_run_tells_what_is_to_be_done_about_waivers() -> None:
    cells = [verdict(Status.FAIL, sized(0.1)), verdict(Status.FAIL, finding("hang"), model="n")]
    known = (
        waiver(**{**NARROW, "expires": in_days(14)}),
        waiver("dtype", new="~=2.6.0", expires=in_days(90)),
        waiver("hang", model="n", expires=in_days(-3)),
        waiver("dtype", model="n", expires=in_days(-3)),
        waiver("values", model="absent"),
    )
    judged = [apply_waivers(cell, known, RAN, DAY) for cell in cells]
    assert waiver_notes(waiver_uses(judged, known, RAN, DAY)) == (
        "1 waiver not needed in this run; waivers prune removes those that never are: dtype of m (ann)",
        "1 waiver expired, and still needed: hang of n (ann)",
        "1 waiver about to expire: values of m (ann): 14 days left",
    )


def test_a_run_says_nothing_of_waivers_that_are_as_they_should_be() -> None:
    one = waiver(**{**NARROW, "expires": in_days(15)})
    assert waiver_notes([used(one, verdict(Status.FAIL, sized(0.1)))]) == ()


def test_many_waivers_are_one_line() -> None:
    known = [waiver(model=f"m{index}", **NARROW) for index in range(6)]
    cells = [verdict(model=item.model) for item in known]
    (line,) = waiver_notes(waiver_uses(cells, known, RAN, DAY))
    assert line.startswith("6 waivers not needed in this run")
    assert line.endswith("values of m3 (ann); and 2 more")
