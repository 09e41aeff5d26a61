"""Waivers as text: what each covers, until when, who answers for it, what it did."""

from dataclasses import replace

import pytest

from harness.core.verdict import WaiverState, WaiverUse
from harness.report.markdown.report import waivers_section
from harness.report.text.waivers import render_waivers
from tests.unit.builders.verdicts import in_days, waiver
from tests.unit.builders.reports import HOSTILE_NAMES, upgrade_ok

ONE = WaiverUse(
    waiver=waiver(
        bound=0.1,
        old="~=2.1.2",
        new="~=2.6.0",
        scenario="alone",
        device="cpu",
        profile="default",
        issue="https://example.org/1",
        expires=in_days(90),
    ),
    state=WaiverState.EXCEEDED,
    cells=("m/backward/alone/cpu/default",),
    size=0.25,
    broad=("no bound", "367 days long"),
    days_left=90,
)


def test_a_waiver_is_reported_whole() -> None:
    assert render_waivers([ONE], "1 waiver in f", in_a_run=True, width=80) == (
        "1 waiver in f\n"
        "\n"
        "values of m\n"
        "    load and calls, cpu, profile default; up to 0.1 of the largest value; torch\n"
        "    ~=2.1.2 to ~=2.6.0\n"
        "    until 2027-02-19 (90 days left), ann: known drift\n"
        "    https://example.org/1\n"
        "    exceeded in m/backward/alone/cpu/default; 0.25 of the largest value was seen\n"
        "    broader than needed: no bound, 367 days long\n"
    )


def test_without_a_run_nothing_is_said_of_one() -> None:
    text = render_waivers(
        [WaiverUse(waiver=waiver("hang"), state=WaiverState.NOT_JUDGED)], "1 waiver in f", in_a_run=False, width=80
    )
    assert text == (
        "1 waiver in f\n\nhang of m\n    every scenario; torch any release to any release\n"
        "    until 2026-11-21 (today is its last day), ann: known drift\n"
    )


@pytest.mark.parametrize("state", list(WaiverState))
def test_every_state_has_words(state: WaiverState) -> None:
    assert render_waivers([WaiverUse(waiver=waiver(), state=state)], "t", in_a_run=True)


@pytest.mark.parametrize("name", HOSTILE_NAMES)
def test_hostile_texts_steer_no_terminal(name: str) -> None:
    one = WaiverUse(waiver=waiver(model=name, owner=name, reason=name), state=WaiverState.USED, cells=(name,))
    text = render_waivers([one], f"1 waiver in {name}", in_a_run=True, width=80)
    assert all(line.isprintable() for line in text.splitlines())


# in markdown


def test_markdown_tells_what_needs_somebody_first() -> None:
    uses = [replace(ONE, state=state) for state in (WaiverState.USED, WaiverState.NOT_JUDGED, WaiverState.EXCEEDED)]
    lines = waivers_section(replace(upgrade_ok(), waivers=tuple(uses)))
    assert lines[1] == "## Waivers"
    states = [line.split("|")[-2].split(";")[0].strip() for line in lines[5:7]]
    assert states == ["exceeded", "used"]
    assert lines[-1] == "Of 1 more nothing was judged that could need them."


def test_markdown_has_no_section_where_no_waiver_did_anything() -> None:
    assert waivers_section(upgrade_ok()) == []
    assert waivers_section(replace(upgrade_ok(), waivers=(replace(ONE, state=WaiverState.NOT_JUDGED),))) == []


@pytest.mark.parametrize("name", HOSTILE_NAMES)
def test_hostile_texts_break_no_table(name: str) -> None:
    one = replace(ONE, waiver=waiver(model=name, owner=name, reason=name, issue=name, scenario=name))
    (line,) = waivers_section(replace(upgrade_ok(), waivers=(one,)))[5:]
    assert line.replace("\\|", "").count("|") == 10
    assert line.isprintable()
    assert "<script" not in line


def test_many_waivers_are_cut_and_counted() -> None:
    lines = waivers_section(replace(upgrade_ok(), waivers=(ONE,) * 203))
    assert lines[-1] == "3 more are in report.json."
    assert len(lines) == 5 + 200 + 2
