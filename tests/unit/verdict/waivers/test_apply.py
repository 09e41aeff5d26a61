"""What waivers do to a cell: an owner, a reason, an expiry date, a bound, and nothing that is silently ignored."""

from dataclasses import replace
from typing import Any

import pytest

from harness.verdict.waivers.apply import Ran, apply_waivers, is_for, without_waivers
from harness.verdict.waivers.making import waivers_for
from harness.verdict.waivers.uses import waiver_uses
from harness.core.outcome import Status
from harness.core.verdict import Ruled, Standstill, Waived, WaiverState
from tests.unit.builders.verdicts import finding, verdict
from tests.unit.builders.verdicts import DAY, RAN, in_days, sized, waiver

LINK = "https://example.org/issues/1"


def test_valid_waiver_makes_a_failure_expected() -> None:
    red = verdict(Status.FAIL, finding("values"), finding("stride"), finding("values"))
    waived = apply_waivers(red, (waiver(issue=LINK),), RAN, DAY)
    assert (waived.status, waived.judged) == (Status.XFAIL, Status.FAIL)
    assert waived.note == f"waived until 2026-11-21 by ann: known drift ({LINK})"
    assert waived.findings == red.findings
    expected = Waived(kinds=("values",), owner="ann", reason="known drift", expires="2026-11-21", issue=LINK)
    assert waived.waived == (expected,)


def test_a_cell_keeps_the_note_that_it_had() -> None:
    red = verdict(Status.FAIL, finding("values"), note="beside the call that fails in both")
    waived = apply_waivers(red, (waiver(),), RAN, DAY)
    assert waived.note == "beside the call that fails in both; waived until 2026-11-21 by ann: known drift"


def test_expired_waiver_fails_the_cell_and_is_named() -> None:
    red = verdict(Status.FAIL, finding("values"))
    found = apply_waivers(red, (waiver(),), RAN, in_days(1))
    assert (found.status, found.judged, found.waived) == (Status.FAIL, None, ())
    assert [item.kind for item in found.findings] == ["values", "waiver_expired"]
    assert found.findings[1].message == found.note == "the waiver of ann expired on 2026-11-21"


def test_renewed_waiver_counts_beside_the_expired_one() -> None:
    both = (waiver(), waiver(expires=in_days(9)))
    found = apply_waivers(verdict(Status.FAIL, finding("values")), both, RAN, in_days(1))
    assert (found.status, [item.kind for item in found.findings]) == (Status.XFAIL, ["values"])


def test_waiver_of_one_kind_does_not_excuse_another_and_the_cell_says_which() -> None:
    red = verdict(Status.FAIL, finding("values"), finding("dtype"))
    found = apply_waivers(red, (waiver(),), RAN, DAY)
    assert (found.status, found.findings) == (Status.FAIL, red.findings)
    assert found.note == "waived in part: values until 2026-11-21 by ann: known drift; not dtype"
    both = apply_waivers(red, (waiver(), waiver("dtype", owner="bob")), RAN, DAY)
    assert both.status is Status.XFAIL
    assert both.note == "waived until 2026-11-21 by ann: known drift; until 2026-11-21 by bob: known drift"
    assert [item.kinds for item in both.waived] == [("values",), ("dtype",)]


@pytest.mark.parametrize(
    "other",
    [waiver(model="n"), waiver(scenario="concurrent"), waiver("hang"), waiver(device="cuda"), waiver(profile="p")],
)
def test_waiver_of_another_model_scenario_or_kind_excuses_nothing(other: object) -> None:
    red = verdict(Status.FAIL, finding("values"))
    assert apply_waivers(red, (other,), RAN, DAY) == red  # type: ignore[arg-type]


def test_waiver_of_this_scenario_counts() -> None:
    red = verdict(Status.FAIL, finding("hang"), scenario="concurrent")
    own = waiver("hang", scenario="concurrent", device="cpu", profile="default")
    assert apply_waivers(red, (own,), RAN, DAY).status is Status.XFAIL


@pytest.mark.parametrize("elsewhere", [RAN._replace(device="cuda"), RAN._replace(profile="cpu_fusion")])
def test_waiver_of_this_device_and_profile_excuses_nothing_on_another(elsewhere: Ran) -> None:
    red = verdict(Status.FAIL, finding("hang"), scenario="concurrent")
    own = waiver("hang", device="cpu", profile="default")
    assert apply_waivers(red, (own,), elsewhere, DAY).status is Status.FAIL


@pytest.mark.parametrize("status", [Status.PASS, Status.SAME_FAIL, Status.INCONCLUSIVE, Status.UNSUPPORTED])
def test_waiver_changes_no_status_but_fail(status: Status) -> None:
    cell = verdict(status, finding("values"))
    assert apply_waivers(cell, (waiver(),), RAN, DAY) == cell


@pytest.mark.parametrize(("size", "status"), [(0.001, Status.XFAIL), (0.002, Status.XFAIL), (0.0021, Status.FAIL)])
def test_bound_waives_up_to_this_size_and_not_more(size: float, status: Status) -> None:
    found = apply_waivers(verdict(Status.FAIL, sized(size)), (waiver(bound=0.002),), RAN, DAY)
    assert found.status is status


def test_what_is_larger_than_the_bound_is_reported_with_both_numbers() -> None:
    found = apply_waivers(verdict(Status.FAIL, sized(0.001), sized(0.0042)), (waiver(bound=0.002),), RAN, DAY)
    message = "the waiver of ann covers 0.002 of the largest value at most, and this is 0.0042 of the largest value"
    assert [(item.kind, item.size) for item in found.findings[2:]] == [("waiver_exceeded", 0.0042)]
    assert found.findings[2].message == message
    assert found.note.startswith(message)


def test_numbers_that_look_alike_are_reported_with_more_digits() -> None:
    found = apply_waivers(verdict(Status.FAIL, sized(0.00420001)), (waiver(bound=0.0042),), RAN, DAY)
    assert "covers 0.0042 of" in found.findings[1].message
    assert "this is 0.00420001 of" in found.findings[1].message


def test_a_ratio_is_reported_as_one() -> None:
    slow = verdict(Status.FAIL, sized(1.31, "latency"), scenario="latency")
    found = apply_waivers(slow, (waiver("latency", bound=1.2),), RAN, DAY)
    assert (
        found.findings[1].message
        == "the waiver of ann covers 1.2 times the old at most, and this is 1.31 times the old"
    )


@pytest.mark.parametrize("size", [None, float("inf"), float("nan")])
def test_what_has_no_known_size_is_over_every_bound(size: float | None) -> None:
    red = verdict(Status.FAIL, sized(size))
    assert apply_waivers(red, (waiver(bound=1e9),), RAN, DAY).status is Status.FAIL
    assert apply_waivers(red, (waiver(),), RAN, DAY).status is Status.XFAIL


def test_a_larger_bound_counts_beside_a_smaller_one() -> None:
    both = (waiver(bound=0.001), waiver(bound=0.1, owner="bob"))
    found = apply_waivers(verdict(Status.FAIL, sized(0.05)), both, RAN, DAY)
    assert (found.status, [item.owner for item in found.waived]) == (Status.XFAIL, ["bob"])
    assert found.waived[0].bound == 0.1


@pytest.mark.parametrize(
    ("old", "new", "counts"),
    [
        ("~=2.1.2", "~=2.6.0", True),
        ("", ">=2.6,<2.8", True),
        ("==2.1.*", "", True),
        ("", "~=2.7.0", False),
        ("<2", "", False),
    ],
)
def test_waiver_counts_for_its_releases_only(old: str, new: str, counts: bool) -> None:
    found = apply_waivers(verdict(Status.FAIL, finding("values")), (waiver(old=old, new=new),), RAN, DAY)
    assert found.status is (Status.XFAIL if counts else Status.FAIL)
    assert ("waiver_elsewhere" in [item.kind for item in found.findings]) is not counts


def test_waiver_of_other_releases_says_which() -> None:
    found = apply_waivers(verdict(Status.FAIL, finding("values")), (waiver(new="~=2.7.0"),), RAN, DAY)
    message = "the waiver of ann is for torch any release to ~=2.7.0, and this is 2.1.2+cu121 to 2.6.0+cu124"
    assert found.findings[1].message == message


@pytest.mark.parametrize("version", ["", "parrots", "2.6.0+cu124 "])
def test_a_range_is_not_for_a_release_that_nobody_knows(version: str) -> None:
    assert is_for(waiver(), Ran(version, version))
    assert is_for(waiver(new="~=2.6.0"), Ran("", version)) is (version.strip() == RAN.new)


def test_a_nightly_is_in_the_range_of_its_release() -> None:
    assert is_for(waiver(new=">=2.8.0.dev1"), Ran("2.1.2", "2.8.0.dev20250101+cpu"))


def test_severities_of_the_policy_decide_what_fails() -> None:
    slow = verdict(Status.FAIL, finding("load_time"), scenario="latency")
    gated = replace(slow, ruled=(Ruled(kind="load_time", was="warn", now="fail", by="policy"),))
    known = (waiver("load_time"),)
    assert apply_waivers(gated, known, RAN, DAY).status is Status.XFAIL
    assert apply_waivers(slow, known, RAN, DAY) == slow  # nothing in it that fails it could be waived


def test_status_before_severities_is_kept() -> None:
    ruled = verdict(
        Status.FAIL, finding("tail"), judged=Status.PASS, ruled=(Ruled(kind="tail", was="warn", now="fail", by="p"),)
    )
    assert apply_waivers(ruled, (waiver("tail"),), RAN, DAY).judged is Status.PASS


@pytest.mark.parametrize("days", [0, 1])
@pytest.mark.parametrize("note", ["", "beside the call that fails in both"])
def test_a_cell_that_is_judged_again_forgets_its_waivers(days: int, note: str) -> None:
    red = verdict(Status.FAIL, sized(0.1), finding("dtype"), note=note)
    known = (waiver(bound=0.2), waiver("dtype"))
    for waivers in (known, known[:1], (waiver(bound=0.01),), (waiver(new="<2"), waiver("dtype"))):
        judged = apply_waivers(red, waivers, RAN, in_days(days))
        assert without_waivers(judged) == red
        assert apply_waivers(without_waivers(judged), (), RAN, DAY) == red
        assert apply_waivers(without_waivers(judged), waivers, RAN, in_days(days)) == judged


GONE = "RuntimeError: Unknown builtin op: {}."
SHAPE = "RuntimeError: m: shape '[{}]' is invalid for input of size {}"


@pytest.mark.parametrize(
    ("kind", "was", "same", "other"),
    [
        (
            "load_error",
            {"error": GONE.format("prim::is_ort")},
            {"subject": "prim::is_ort"},
            {"subject": "prims::slice"},
        ),
        ("load_error", {"subject": "a::b, c::d"}, {"error": GONE.format("c::d")}, {"subject": "a::b, c::d, e::f"}),
        (
            "load_error",
            {"subject": "a::b"},
            {"subject": "a::b"},
            {"error": "RuntimeError: the archive is of the future"},
        ),
        ("call_error", {"error": SHAPE.format("1, 7", 8)}, {"error": SHAPE.format(3, 5)}, {"error": "ValueError: no"}),
        ("values", {"subject": "aten::upsample_bicubic2d"}, {"subject": "aten::upsample_bicubic2d"}, {}),
        ("hang", {"standstill": Standstill(reading="a")}, {}, {"standstill": Standstill(reading="b")}),
    ],
)
def test_a_waiver_covers_what_it_was_made_for_and_nothing_else_of_its_kind(
    kind: str, was: dict[str, Any], same: dict[str, Any], other: dict[str, Any]
) -> None:
    first, again, another = (verdict(Status.FAIL, replace(finding(kind), **facts)) for facts in (was, same, other))
    made = waivers_for(first, RAN, owner="ann", reason="known", issue="", expires=None, bound=None, today=DAY)
    assert [apply_waivers(cell, made, RAN, DAY).status for cell in (first, again)] == [Status.XFAIL, Status.XFAIL]
    red = apply_waivers(another, made, RAN, DAY)
    assert (red.status, [item.kind for item in red.findings]) == (Status.FAIL, [kind, "waiver_elsewhere"])
    assert red.findings[1].message.startswith(f"the waiver of ann is for {made[0].about}, and this is ")
    assert [use.state for use in waiver_uses([another], made, RAN, DAY)] == [
        WaiverState.UNUSED if kind == "values" else WaiverState.NOT_JUDGED
    ]
    assert apply_waivers(another, (replace(made[0], about=""),), RAN, DAY).status is Status.XFAIL
