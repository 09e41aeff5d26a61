"""A fleet on a terminal: 60 lines however large it is, what needs somebody first, and owners beside every cause."""

from dataclasses import replace

from harness.report.ci.spreadsheet import OWNERS_COLUMNS, render_owners_csv
from harness.report.markdown.fleet import render_fleet_markdown
from harness.report.text.fleet import MOST_LINES, render_answer, render_plan
from tests.unit.builders.fleets import fleet_answer, fleet_plan

MANY = tuple(f"model_{at:04}" for at in range(5000))
FEW = MANY[:6]


def test_a_plan_of_five_thousand_artifacts_has_sixty_lines() -> None:
    text = render_plan(fleet_plan(MANY, reasons=300), ((1, 9000.0), (4, 2300.0)), command="run it", width=80)
    assert len(text.splitlines()) <= MOST_LINES
    assert "2 h 30 min on 1 machine" in text and "38 min 20 s on 4 machines" in text


def test_an_answer_of_many_causes_has_sixty_lines_and_ends_with_the_decision() -> None:
    text = render_answer(fleet_answer(MANY, causes=300), more="fleet report --format markdown", width=80)
    assert len(text.splitlines()) <= MOST_LINES
    assert "BLOCKED  (exit code 1: incompatible)" in text and "more cause" in text


def test_causes_name_their_owners_and_waves_are_numbered_while_they_move() -> None:
    text = render_answer(fleet_answer(FEW), more="more", width=100)
    assert "owners    owner model_0000 2" in text
    lines = [line for line in text.splitlines() if "aten::operator_" in line and line[:1] in "12-"]
    assert [line.split()[0] for line in lines] == ["1", "2", "-"]


def test_the_spreadsheet_has_a_line_per_artifact() -> None:
    lines = render_owners_csv(fleet_answer(FEW)).splitlines()
    assert lines[0] == ",".join(OWNERS_COLUMNS)
    assert len(lines) == 1 + len(FEW)
    assert lines[1].startswith("model_0000,model_0000,batch,model_0000.pt,FAIL,1,")


def test_markdown_has_every_artifact_of_every_wave() -> None:
    text = render_fleet_markdown(fleet_answer(FEW))
    assert all(f"- `{name}`" in text for name in FEW)


def test_what_is_left_out_keeps_its_reason_and_a_plan_its_sixty_lines() -> None:
    why = "is no TorchScript: state dict; it holds values without code: script or trace the model that uses them"
    plan = fleet_plan(MANY, reasons=300)
    artifacts = tuple(replace(item, left_out=why) if at < 9 else item for at, item in enumerate(plan.artifacts))
    notes = tuple(f"a note of many words, number {at}, that does not fit on a line of its own " * 2 for at in range(9))
    lines = render_plan(
        replace(plan, artifacts=artifacts, notes=notes), ((1, 9000.0), (4, 2300.0)), command="run it", width=80
    ).splitlines()
    assert len(lines) <= MOST_LINES
    told = " ".join(line.removeprefix("left out").strip() for line in lines)
    assert f"model_0000.pt: {why}" in " ".join(told.split()) and "more" in told
