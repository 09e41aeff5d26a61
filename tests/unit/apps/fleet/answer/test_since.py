"""An answer beside an earlier one: what is new, fixed or flaky, whose it is, and how far the fleet has come."""

from dataclasses import replace

import pytest

from harness.core.fleet import FleetReport, WaveKind
from harness.core.outcome import Status
from harness.core.report import CellTrend
from harness.apps.fleet.answer.since import outline, with_since
from tests.unit.builders.fleets import fleet_answer

NAMES = ("a", "b", "c")


def answer(**rows: dict[str, object]) -> FleetReport:
    """An answer of three healthy artifacts, but for what is said of them."""
    made = fleet_answer(NAMES, causes=1)
    healthy = {"status": Status.PASS, "reason": "", "cause": ""}
    found = [replace(row, **{**healthy, "content": "1", **rows.get(row.name, {})}) for row in made.rows]  # type: ignore[arg-type]
    return replace(made, rows=tuple(found), causes=made.causes if any("cause" in row for row in rows.values()) else ())


def test_models_of_one_archive_are_compared_each_with_itself() -> None:
    rows = [replace(row, path="m.mar", member=f"{row.name}.pt") for row in answer(a=RED).rows]
    before, now = replace(answer(), rows=tuple(rows)), replace(answer(), rows=tuple(reversed(rows)))
    renamed = tuple(replace(row, name=f"other_{row.name}") for row in now.rows)
    found = with_since(replace(now, rows=renamed), [before])
    assert found.since is not None and found.since.changes == () and found.since.counts == {"unchanged": 3}


def test_a_row_from_before_rows_said_which_model_of_an_archive_it_was_is_the_same_artifact() -> None:
    (before,) = (row for row in answer().rows if row.name == "a")
    now = replace(before, member="a.pt", status=Status.FAIL, content="2")
    found = with_since(replace(answer(), rows=(now,)), [replace(answer(), rows=(before,))])
    assert found.since is not None and [item.change for item in found.since.changes] == [CellTrend.NEW]


RED: dict[str, object] = {"status": Status.FAIL, "cause": "operator-0", "reason": "does not load"}
OTHERWISE: dict[str, object] = {**RED, "cause": "crash-1"}
UNKNOWN: dict[str, object] = {"status": None, "reason": "not run yet"}
ANEW = {"content": "2"}


@pytest.mark.parametrize(
    ("before", "now", "change"),
    [
        ({}, {**RED, **ANEW}, CellTrend.NEW),
        ({}, RED, CellTrend.FLAKY),
        ({**RED, **ANEW}, {}, CellTrend.FIXED),
        (RED, {}, CellTrend.FLAKY),
        (RED, {**OTHERWISE, **ANEW}, CellTrend.NEW),
        (RED, OTHERWISE, CellTrend.FLAKY),
        (UNKNOWN, {}, CellTrend.UNDECIDED),
        (RED, UNKNOWN, CellTrend.UNDECIDED),
        (RED, {**RED, **ANEW}, None),
        ({}, {**ANEW}, None),
        (UNKNOWN, {"status": Status.INCONCLUSIVE}, None),
        ({"status": Status.XFAIL, "cause": "operator-0"}, RED, CellTrend.UNCHANGED),  # told: it is waived no more
        ({}, {"status": Status.SAME_FAIL}, None),
    ],
)
def test_what_became_of_an_artifact(
    before: dict[str, object], now: dict[str, object], change: CellTrend | None
) -> None:
    since = with_since(answer(b=now), [answer(b=before)]).since
    assert since is not None
    assert [(item.name, item.change) for item in since.changes] == ([("b", change)] if change is not None else [])
    assert sum(since.counts.values()) == len(NAMES)


def test_artifacts_that_came_and_went_are_told_by_their_paths() -> None:
    earlier = answer()
    moved = tuple(replace(row, path="other.pt", owner="ads") if row.name == "c" else row for row in earlier.rows)
    since = with_since(replace(earlier, rows=moved), [earlier]).since
    assert since is not None
    assert [(item.change, item.owner) for item in since.changes] == [(CellTrend.GONE, "c"), (CellTrend.ADDED, "ads")]


def test_causes_that_are_new_and_that_ended() -> None:
    red, green = answer(b=RED), answer()
    title = red.causes[0].cause.title
    began, ended = with_since(red, [green]).since, with_since(green, [red]).since
    assert began is not None and ended is not None
    assert (began.new_causes, began.ended_causes) == ((title,), ())
    assert (ended.new_causes, ended.ended_causes) == ((), (title,))


def test_several_answers_are_a_trend_and_the_last_is_compared() -> None:
    first, second, now = answer(b=RED), answer(a=RED, b=RED), answer()
    since = with_since(now, [first, second]).since
    assert since is not None
    assert since.trend == tuple(map(outline, (first, second, now)))
    assert {item.name for item in since.changes} == {"a", "b"}


def test_an_outline_counts_all_artifacts_by_what_they_wait_for() -> None:
    found = outline(fleet_answer(tuple("abcdefg"), causes=4))
    assert found.waves == {kind.value: count for kind, count in zip(WaveKind, (2, 2, 2, 1), strict=True)}


def test_without_an_earlier_answer_nothing_is_said() -> None:
    assert with_since(answer(), []) == answer()
