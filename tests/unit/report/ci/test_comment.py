"""The comment on a pull request: short whatever is red, and each cause once."""

import re
from collections.abc import Callable
from dataclasses import replace
from functools import partial

import pytest

from harness.checks.startup.rates import more_often
from harness.core.outcome import Status
from harness.core.verdict import Finding, RowVerdict, Waived
from harness.verdict.causes import with_causes
from harness.verdict.since import since

from harness.core.report import RunReport
from harness.report.ci.comment import MARK, render_comment
from tests.unit.builders.rendered import render_html, render_markdown
from tests.unit.builders.causes import of_three_causes
from tests.unit.builders.pages import crowded, fleet
from tests.unit.builders.planted_causes import red, run_of
from tests.unit.builders.reports import blocked, build, healthy, hostile, inconclusive, upgrade_ok, verdict

GITHUB_COMMENT, GITHUB_SUMMARY = 65_536, 2**20

VALUES = Finding(kind="values", message="max |d| 0.2", size=0.01)


def many_causes() -> RunReport:
    """Return a run with ten causes and everything else that has a line."""
    report = of_three_causes()
    first = report.causes[0]
    more = tuple(replace(first, id=f"cause-{number}", title=100 * "long title ") for number in range(10))
    return replace(report, causes=(*report.causes, *more))


@pytest.mark.parametrize("report", [many_causes(), of_three_causes(), blocked(), hostile(), upgrade_ok()])
def test_it_has_at_most_22_lines_and_says_the_decision_first(report: RunReport) -> None:
    lines = render_comment(report).splitlines()
    assert len(lines) <= 22 and lines[0] == MARK
    assert lines[1].startswith(f"### {report.judgement.decision.value}")
    beside = replace(report, run="now")
    rows = [replace(beside.judgement.rows[0], status=Status.XFAIL), *beside.judgement.rows[1:]]
    beside = replace(beside, judgement=replace(beside.judgement, rows=tuple(rows)))
    assert len(render_comment(with_baseline(report, beside)).splitlines()) <= 22


def test_each_cause_is_one_row_with_its_models_its_excess_and_its_mitigation() -> None:
    text = render_comment(of_three_causes())
    for cause in of_three_causes().causes:
        assert text.count(cause.cells[0].partition("/")[0]) == 1
    assert (
        "| 33: ranker_001, ranker_004, ranker_007 and 30 more | +19.0 % where +3 % is allowed | 2. no verified fix: profiling off mitigates 30 of 33"
        in text
    )
    assert "- **22 not decided** " in text and "- **17 faster (131 of 165 timed)** " in text
    assert "- **1 start slower** load while serving, ranking: 67.0 -> 101 s (+50.7 %)" in text
    assert "not decided" not in render_comment(upgrade_ok())


def test_each_cause_leads_to_its_place_on_the_page_and_to_its_first_cell() -> None:
    address = "https://ci.example/job(7)/report.html"
    text = render_comment(blocked(), page=address)
    links = re.findall(r"]\(([^)]*)\)", text)
    page = render_html(blocked())
    assert len(links) == 2 * len(blocked().causes) + 1 and all(
        link.startswith("https://ci.example/job%287") for link in links
    )
    assert all(f'id="{place}"' in page for _, hash_, place in (link.partition("#") for link in links) if hash_)
    assert f"{blocked().causes[0].cells[0]})" in text
    assert "](" not in render_comment(blocked()) and "](" not in render_comment(blocked(), page="javascript:alert(1)")


def test_what_is_undecided_says_what_to_do_whole() -> None:
    """By the finding's advice; without one by what is the matter, of which the cause is only the beginning."""
    long = "could not be taken over: " + "a request whose only argument is a dict is a tuple " * 4 + "AT THE END"
    for finding, words in (
        (Finding(kind="no_value", message="no value was compared", advice="give it requests"), "give it requests"),
        (Finding(kind="export_error", message=long, error=long), "AT THE END"),
    ):
        cell = verdict("din", "alone", Status.INCONCLUSIVE, finding)
        row = RowVerdict(model="din", status=Status.INCONCLUSIVE, cells=(cell,))
        judgement = replace(inconclusive().judgement, rows=(row,))
        report = with_causes(build(judgement, (healthy("din"),)))
        (line,) = [line for line in render_comment(report).splitlines() if line.startswith("| ") and "1: din" in line]
        assert line.endswith(f"{words} |")


def test_what_has_no_room_is_counted() -> None:
    assert "| and 7 more |" in render_comment(many_causes())


def test_a_text_notifies_nobody_and_links_to_nothing() -> None:
    told = "fails: RuntimeError: @org/security look at org/repo#1, #2 and http://evil.example/x, www.evil.example"
    text = render_comment(run_of([red("@octocat", "call_error", told)]))
    assert "octocat" in text and "evil.example/x" in text
    assert not re.search(r"@\w|#\d|://|www\.", re.sub("`[^`]*`", "", text))


@pytest.mark.parametrize(
    "made",
    [
        pytest.param(fleet, id="green", marks=pytest.mark.slow),
        pytest.param(partial(fleet, red_every=1), id="red"),
        pytest.param(crowded, id="crowded"),
    ],
)
def test_500_models_stay_far_below_what_github_takes(made: Callable[[int], RunReport]) -> None:
    report = made(500)
    assert len(render_comment(report)) < GITHUB_COMMENT / 10
    assert len(render_markdown(report).encode()) < GITHUB_SUMMARY / 2


def test_what_is_new_and_what_is_known_come_before_everything_else() -> None:
    before = upgrade_ok()
    first, *rest = before.judgement.rows
    known = Waived(kinds=("values",), owner="ann", reason="new export", expires="2027-03-01")
    (alone, *cells) = first.cells
    xfail = replace(alone, status=Status.XFAIL, judged=Status.FAIL, findings=(VALUES,), waived=(known,))
    waived = replace(first, status=Status.XFAIL, cells=(xfail, *cells))
    green = replace(before, run="now", judgement=replace(before.judgement, rows=(waived, *rest)))
    text = render_comment(with_baseline(before, green))
    assert f"UPGRADE OK, with 1 known failure: {first.model}" in text.splitlines()[1]
    lines = [line for line in text.splitlines() if line.startswith("- ")]
    assert lines[0].startswith(f"- **new since the baseline:** {first.model}")
    assert lines[1] == f"- **known, let pass:** {first.model} (ann, until 2027-03-01)"
    grown = replace(xfail, findings=(replace(VALUES, size=0.5),))
    worse = replace(green, judgement=replace(green.judgement, rows=(replace(waived, cells=(grown, *cells)), *rest)))
    lines = [line for line in render_comment(with_baseline(green, worse)).splitlines() if line.startswith("- ")]
    assert lines[0] == f"- **new since the baseline:** nothing; grew: {first.model} (values grew: 0.5, was 0.01)"
    fewer = replace(green, judgement=replace(green.judgement, rows=(waived,)))
    assert f"nothing; not in this run: {rest[0].model}, {rest[1].model}" in render_comment(with_baseline(green, fewer))
    assert "since the baseline" not in render_comment(green) and "known, let pass" not in render_comment(before)


def with_baseline(before: RunReport, now: RunReport) -> RunReport:
    return replace(now, baseline=since(before, now, more_often))
