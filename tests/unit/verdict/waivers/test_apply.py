"""What waivers do to a cell: an owner, a reason, an expiry date, a bound, and nothing that is silently ignored."""

from dataclasses import replace

import pytest

from harness.verdict.waivers.apply import apply_waivers, is_for, place_of, without_waivers
from harness.core.outcome import Status
from harness.core.verdict import Ruled, Waived
from tests.unit.builders.verdicts import finding, verdict
from tests.unit.builders.verdicts import DAY, PAIR, in_days, sized, waiver

LINK = "https://example.org/issues/1"


def test_valid_waiver_makes_a_failure_expected() -> None:
    red = verdict(Status.FAIL, finding("values"), finding("stride"), finding("values"))
    waived = apply_waivers(red, (waiver(issue=LINK),), PAIR, DAY)
    assert (waived.status, waived.judged) == (Status.XFAIL, Status.FAIL)
    assert waived.note == f"waived until 2026-11-21 by ann: known drift ({LINK})"
    assert waived.findings == red.findings
    expected = Waived(kinds=("values",), owner="ann", reason="known drift", expires="2026-11-21", issue=LINK)
    assert waived.waived == (expected,)


def test_a_cell_keeps_the_note_that_it_had() -> None:
    red = verdict(Status.FAIL, finding("values"), note="beside the call that fails in both")
    waived = apply_waivers(red, (waiver(),), PAIR, DAY)
    assert waived.note == "beside the call that fails in both; waived until 2026-11-21 by ann: known drift"


def test_expired_waiver_fails_the_cell_and_is_named() -> None:
    red = verdict(Status.FAIL, finding("values"))
    found = apply_waivers(red, (waiver(),), PAIR, in_days(1))
    assert (found.status, found.judged, found.waived) == (Status.FAIL, None, ())
    assert [item.kind for item in found.findings] == ["values", "waiver_expired"]
    assert found.findings[1].message == found.note == "the waiver of ann expired on 2026-11-21"


def test_renewed_waiver_counts_beside_the_expired_one() -> None:
    both = (waiver(), waiver(expires=in_days(9)))
    found = apply_waivers(verdict(Status.FAIL, finding("values")), both, PAIR, in_days(1))
    assert (found.status, [item.kind for item in found.findings]) == (Status.XFAIL, ["values"])


def test_waiver_of_one_kind_does_not_excuse_another_and_the_cell_says_which() -> None:
    red = verdict(Status.FAIL, finding("values"), finding("dtype"))
    found = apply_waivers(red, (waiver(),), PAIR, DAY)
    assert (found.status, found.findings) == (Status.FAIL, red.findings)
    assert found.note == "waived in part: values until 2026-11-21 by ann: known drift; not dtype"
    both = apply_waivers(red, (waiver(), waiver("dtype", owner="bob")), PAIR, DAY)
    assert both.status is Status.XFAIL
    assert both.note == "waived until 2026-11-21 by ann: known drift; until 2026-11-21 by bob: known drift"
    assert [item.kinds for item in both.waived] == [("values",), ("dtype",)]


@pytest.mark.parametrize(
    "other",
    [waiver(model="n"), waiver(scenario="concurrent"), waiver("hang"), waiver(device="cuda"), waiver(profile="p")],
)
def test_waiver_of_another_model_scenario_or_kind_excuses_nothing(other: object) -> None:
    red = verdict(Status.FAIL, finding("values"))
    assert apply_waivers(red, (other,), PAIR, DAY) == red  # type: ignore[arg-type]


def test_waiver_of_this_scenario_counts() -> None:
    red = verdict(Status.FAIL, finding("hang"), scenario="concurrent")
    own = waiver("hang", scenario="concurrent", device="cpu", profile="default")
    assert apply_waivers(red, (own,), PAIR, DAY).status is Status.XFAIL


def test_place_of_a_cell_is_read_behind_a_name_with_slashes() -> None:
    assert place_of(verdict(model="a/b/c/d/e/f")) == ("cpu", "default")
    assert place_of(replace(verdict(), cell="odd")) == ("", "")


@pytest.mark.parametrize("status", [Status.PASS, Status.SAME_FAIL, Status.INCONCLUSIVE, Status.UNSUPPORTED])
def test_waiver_changes_no_status_but_fail(status: Status) -> None:
    cell = verdict(status, finding("values"))
    assert apply_waivers(cell, (waiver(),), PAIR, DAY) == cell


@pytest.mark.parametrize(("size", "status"), [(0.001, Status.XFAIL), (0.002, Status.XFAIL), (0.0021, Status.FAIL)])
def test_bound_waives_up_to_this_size_and_not_more(size: float, status: Status) -> None:
    found = apply_waivers(verdict(Status.FAIL, sized(size)), (waiver(bound=0.002),), PAIR, DAY)
    assert found.status is status


def test_what_is_larger_than_the_bound_is_reported_with_both_numbers() -> None:
    found = apply_waivers(verdict(Status.FAIL, sized(0.001), sized(0.0042)), (waiver(bound=0.002),), PAIR, DAY)
    message = "the waiver of ann covers 0.002 of the largest value at most, and this is 0.0042 of the largest value"
    assert [(item.kind, item.size) for item in found.findings[2:]] == [("waiver_exceeded", 0.0042)]
    assert found.findings[2].message == message
    assert found.note.startswith(message)


def test_numbers_that_look_alike_are_reported_with_more_digits() -> None:
    found = apply_waivers(verdict(Status.FAIL, sized(0.00420001)), (waiver(bound=0.0042),), PAIR, DAY)
    assert "covers 0.0042 of" in found.findings[1].message
    assert "this is 0.00420001 of" in found.findings[1].message


def test_a_ratio_is_reported_as_one() -> None:
    slow = verdict(Status.FAIL, sized(1.31, "latency"), scenario="latency")
    found = apply_waivers(slow, (waiver("latency", bound=1.2),), PAIR, DAY)
    assert (
        found.findings[1].message
        == "the waiver of ann covers 1.2 times the old at most, and this is 1.31 times the old"
    )


@pytest.mark.parametrize("size", [None, float("inf"), float("nan")])
def test_what_has_no_known_size_is_over_every_bound(size: float | None) -> None:
    red = verdict(Status.FAIL, sized(size))
    assert apply_waivers(red, (waiver(bound=1e9),), PAIR, DAY).status is Status.FAIL
    assert apply_waivers(red, (waiver(),), PAIR, DAY).status is Status.XFAIL


def test_a_larger_bound_counts_beside_a_smaller_one() -> None:
    both = (waiver(bound=0.001), waiver(bound=0.1, owner="bob"))
    found = apply_waivers(verdict(Status.FAIL, sized(0.05)), both, PAIR, DAY)
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
    found = apply_waivers(verdict(Status.FAIL, finding("values")), (waiver(old=old, new=new),), PAIR, DAY)
    assert found.status is (Status.XFAIL if counts else Status.FAIL)
    assert ("waiver_elsewhere" in [item.kind for item in found.findings]) is not counts


def test_waiver_of_other_releases_says_which() -> None:
    found = apply_waivers(verdict(Status.FAIL, finding("values")), (waiver(new="~=2.7.0"),), PAIR, DAY)
    message = "the waiver of ann is for torch any release to ~=2.7.0, and this is 2.1.2+cu121 to 2.6.0+cu124"
    assert found.findings[1].message == message


@pytest.mark.parametrize("version", ["", "parrots", "2.6.0+cu124 "])
def test_a_range_is_not_for_a_release_that_nobody_knows(version: str) -> None:
    assert is_for(waiver(), (version, version))
    assert is_for(waiver(new="~=2.6.0"), ("", version)) is (version.strip() == PAIR[1])


def test_a_nightly_is_in_the_range_of_its_release() -> None:
    assert is_for(waiver(new=">=2.8.0.dev1"), ("2.1.2", "2.8.0.dev20250101+cpu"))


def test_severities_of_the_policy_decide_what_fails() -> None:
    slow = verdict(Status.FAIL, finding("load_time"), scenario="latency")
    gated = replace(slow, ruled=(Ruled(kind="load_time", was="warn", now="fail", by="policy"),))
    known = (waiver("load_time"),)
    assert apply_waivers(gated, known, PAIR, DAY).status is Status.XFAIL
    assert apply_waivers(slow, known, PAIR, DAY) == slow  # nothing in it that fails it could be waived


def test_status_before_severities_is_kept() -> None:
    ruled = verdict(
        Status.FAIL, finding("tail"), judged=Status.PASS, ruled=(Ruled(kind="tail", was="warn", now="fail", by="p"),)
    )
    assert apply_waivers(ruled, (waiver("tail"),), PAIR, DAY).judged is Status.PASS


@pytest.mark.parametrize("days", [0, 1])
@pytest.mark.parametrize("note", ["", "beside the call that fails in both"])
def test_a_cell_that_is_judged_again_forgets_its_waivers(days: int, note: str) -> None:
    red = verdict(Status.FAIL, sized(0.1), finding("dtype"), note=note)
    known = (waiver(bound=0.2), waiver("dtype"))
    for waivers in (known, known[:1], (waiver(bound=0.01),), (waiver(new="<2"), waiver("dtype"))):
        judged = apply_waivers(red, waivers, PAIR, in_days(days))
        assert without_waivers(judged) == red
        assert apply_waivers(without_waivers(judged), (), PAIR, DAY) == red
        assert apply_waivers(without_waivers(judged), waivers, PAIR, in_days(days)) == judged
