"""Annotations, read back as the runner of GitHub Actions reads the output of a step."""

import datetime as dt
from collections import Counter
from dataclasses import replace

import pytest

from harness.core.outcome import Status
from harness.core.report import RunReport
from harness.core.verdict import Finding, RowVerdict, Ruled, Waived, Waiver, WaiverState, WaiverUse
from harness.report.ci.annotations import A_LEVEL, MESSAGE_LIMIT, render_annotations
from tests.unit.builders.planted_causes import of_three_causes
from tests.unit.builders.reports import HOSTILE_NAMES, REPORTS, blocked, build, healthy, hostile, upgrade_ok, verdict
from tests.unit.builders.readers import Command, runner_reads
from tests.unit.report.ci.test_checks import with_first_cell


def read(report: RunReport, **more: object) -> list[Command]:
    return runner_reads(render_annotations(report, **more))  # type: ignore[arg-type]


def many(status: Status, number: int) -> RunReport:
    """Return a report with so many models of one status."""
    finding = Finding(kind="values", message="m" * 9_000)
    rows = tuple(
        RowVerdict(model=name, status=status, cells=(verdict(name, "alone", status, finding),), reason="")
        for name in (f"model_{index:04}" for index in range(number))
    )
    green = upgrade_ok()
    judgement = replace(green.judgement, rows=rows, exit_code=1)
    return build(judgement, tuple(healthy(row.model) for row in rows))


@pytest.mark.parametrize("name", REPORTS)
def test_the_decision_is_an_error_unless_the_exit_code_is_0(name: str) -> None:
    report = REPORTS[name]()
    pair = f"({report.old.name} -> {report.new.name})"
    (decision,) = [found for found in read(report) if found.properties["title"].endswith(pair)]
    assert decision.name == ("notice" if report.judgement.exit_code == 0 else "error")
    assert decision.data.startswith(report.judgement.reason[:3])


@pytest.mark.parametrize("name", REPORTS)
def test_every_line_is_a_command_and_every_command_is_an_annotation(name: str) -> None:
    text = render_annotations(REPORTS[name]())
    found = runner_reads(text)
    assert len(found) == len(text.splitlines())
    assert {command.name for command in found} <= {"error", "warning", "notice"}
    assert {key for command in found for key in command.properties} <= {"file", "line", "title"}


def test_an_annotation_stands_on_the_line_that_declares_the_model() -> None:
    (first, *_) = [found for found in read(blocked()) if "models: 1: fused_ranker" in found.data]
    assert first.name == "error"
    assert (first.properties["file"], first.properties["line"]) == ("fixtures/zoo/fused_ranker.py", "12")
    assert first.properties["title"] == "FAIL: hangs: inside the tensor-expression fuser"
    assert "\nrerun: python -m harness rerun" in first.data


def test_a_hundred_red_cells_of_three_causes_are_three_annotations() -> None:
    decision, *causes = read(of_three_causes())
    assert decision.properties["title"].startswith("BLOCKED")
    assert [found.data.partition("\n")[0].partition(":")[2].partition(":")[0] for found in causes] == [
        " 30",
        " 20 in 40 cells",
        " 30",
    ]
    assert all("--cause" in found.data for found in causes)


def test_a_model_without_a_known_place_is_annotated_without_one() -> None:
    assert not [found for found in read(blocked(), places={}) if "file" in found.properties]
    report = blocked()
    absolute = replace(report, models=tuple(replace(model, where=f"/x/{model.where}") for model in report.models))
    assert not [found for found in read(absolute) if "file" in found.properties]
    odd = {"fused_ranker": "a,b:c/models.toml"}
    (place,) = [found for found in read(report, places=odd) if "file" in found.properties]
    assert place.properties["file"] == "a,b:c/models.toml"
    assert "line" not in place.properties


@pytest.mark.parametrize(
    ("status", "level"),
    [
        (Status.XPASS, "error"),
        (Status.INCONCLUSIVE, "error"),
        (Status.SAME_FAIL, "notice"),
        (Status.XFAIL, "notice"),
        (Status.UNSUPPORTED, "notice"),
    ],
)
def test_each_status_has_its_level(status: Status, level: str) -> None:
    (found,) = [found for found in read(with_first_cell(status)) if found.properties["title"].startswith(status.value)]
    assert found.name == level


def test_what_is_waived_is_a_notice_with_its_owner() -> None:
    waived = Waived(kinds=("values",), owner="ads", reason="rounding", expires="2027-02-01")
    report = with_first_cell(Status.XFAIL, waived=(waived,))
    (found,) = [item for item in read(report) if item.properties["title"].startswith("XFAIL")]
    assert found.name == "notice"
    assert "waived: values by ads until 2027-02-01: rounding" in found.data


def test_what_does_not_decide_is_a_warning() -> None:
    (found,) = [item for item in read(with_first_cell(Status.FAIL, decides=False)) if item.name != "notice"]
    assert found.name == "warning"


def test_what_policy_warns_of_in_a_cell_that_passes_is_a_warning() -> None:
    slow = Finding(kind="load_time", message="load 1 s -> 9 s")
    (found,) = [item for item in read(with_first_cell(Status.PASS, slow)) if item.name != "notice"]
    assert (found.name, found.data) == ("warning", "load_time: load 1 s -> 9 s")
    info = Finding(kind="stride", message="another stride")
    assert not [item for item in read(with_first_cell(Status.PASS, info)) if item.name != "notice"]


@pytest.mark.parametrize("status", [Status.PASS, Status.XFAIL])
def test_what_the_policy_let_pass_is_a_warning(status: Status) -> None:
    hang = Finding(kind="hang", message="call 1 has not returned")
    report = with_first_cell(status, hang)
    row = report.judgement.rows[0]
    ruled = Ruled(kind="hang", was="fail", now="info", by="severity.hang of policy.toml")
    row = replace(row, cells=(replace(row.cells[0], ruled=(ruled,)), *row.cells[1:]))
    report = replace(report, judgement=replace(report.judgement, rows=(row, *report.judgement.rows[1:])))
    (found,) = [item for item in read(report) if item.name != "notice"]
    assert found.name == "warning"
    assert "hang counts as info in place of fail: severity.hang of policy.toml" in found.data


def test_waivers_that_need_a_reader_are_a_warning() -> None:
    waiver = Waiver(model="a", kind="hang", reason="r", owner="ads", expires=dt.date(2027, 2, 1))
    report = replace(upgrade_ok(), waivers=(WaiverUse(waiver=waiver, state=WaiverState.UNUSED, days_left=300),))
    (found,) = [item for item in read(report) if item.name != "notice"]
    assert (found.name, found.properties["title"]) == ("warning", "waivers")
    assert "hang of a (ads)" in found.data


def test_the_waivers_are_not_lost_among_hundreds_of_other_warnings() -> None:
    waiver = Waiver(model="a", kind="hang", reason="r", owner="ads", expires=dt.date(2027, 2, 1))
    report = many(Status.FAIL, 500)
    rows = tuple(
        replace(row, cells=tuple(replace(cell, decides=False) for cell in row.cells)) for row in report.judgement.rows
    )
    uses = (WaiverUse(waiver=waiver, state=WaiverState.USED, days_left=3),)
    report = replace(report, judgement=replace(report.judgement, rows=rows), waivers=uses)
    warnings = [command for command in read(report) if command.name == "warning"]
    assert len(warnings) == A_LEVEL
    assert "about to expire" in warnings[0].data


def test_no_more_than_github_shows_and_the_last_one_counts_the_rest() -> None:
    found = read(many(Status.FAIL, 500))
    levels = Counter(command.name for command in found)
    assert levels["error"] == A_LEVEL
    assert sum(levels.values()) <= 3 * A_LEVEL
    errors = [command for command in found if command.name == "error"]
    assert errors[-1].properties == {"title": "and 492 more errors"}  # 8 models and the decision are told
    assert "report.html" in errors[-1].data


def test_exactly_what_github_shows_is_shown_whole() -> None:
    found = [command for command in read(many(Status.FAIL, A_LEVEL - 1)) if command.name == "error"]
    assert len(found) == A_LEVEL
    assert not [command for command in found if "more errors" in command.properties["title"]]


def test_no_message_is_longer_than_the_runner_forwards() -> None:
    assert max(len(command.data) for command in read(many(Status.FAIL, 3))) <= MESSAGE_LIMIT < 4096


def test_hostile_names_end_no_property_and_begin_no_command() -> None:
    found = read(hostile())
    titles = [command.properties["title"] for command in found]
    assert any("\\x1b[31mred\\x1b[0m" in title for title in titles)
    assert any("nul\\x00bell" in title for title in titles)
    assert all(char.isprintable() or char == "\n" for command in found for char in command.data)


@pytest.mark.parametrize(
    "name", ["::stop-commands::x", "a\n::error::b", "a%0A::error::b", "x,line=1::y", "##[add-mask]x", *HOSTILE_NAMES]
)
def test_a_name_that_is_a_command_stays_a_name(name: str) -> None:
    finding = Finding(kind="values", message=name)
    row = RowVerdict(model=name, status=Status.FAIL, cells=(verdict(name, "alone", Status.FAIL, finding),))
    report = upgrade_ok()
    report = replace(report, judgement=replace(report.judgement, rows=(row,), exit_code=1, reason=name), rollback=None)
    report = replace(report, models=(replace(report.models[0], model=name, where=f"{name}.py:3", static=None),))
    found = read(report)
    assert [command.name for command in found] == ["error", "error"]
    assert found[1].properties["line"] == "3"
