"""A fleet's page of 5,000 artifacts in a real Chromium: sorted, searched, shown as one owner's, sent as an address."""

import re
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, BrowserContext, Page, expect

from harness.core.fleet import FleetReport
from tests.unit.builders.rendered import render_fleet_html
from tests.integration.report.test_page import IN_SIGHT, STICKS_OUT, WIDTHS, axe_of, expected
from tests.unit.builders.fleets import TEAMS, fleet_answer, of_teams
from tests.unit.builders.reports import HOSTILE_NAMES

pytestmark = [pytest.mark.integration, pytest.mark.browser]

MANY = 5000
Open = Callable[..., Page]


@pytest.fixture
def opened(chromium: Browser, tmp_path: Path) -> Iterator[Open]:
    """Open the page from a file; at the end nothing may have been complained of or asked for elsewhere."""
    contexts: list[BrowserContext] = []
    complaints: list[str] = []

    def open_page(report: FleetReport, *, address: str = "", width: int = 1440, script: bool = True) -> Page:
        file = tmp_path / "fleet.html"
        file.write_text(render_fleet_html(report))
        context = chromium.new_context(
            viewport={"width": width, "height": 900}, java_script_enabled=script, reduced_motion="reduce"
        )
        contexts.append(context)
        page = context.new_page()
        page.on("console", lambda message: complaints.append(message.text))
        page.on("pageerror", lambda error: complaints.append(str(error)))
        page.on("request", lambda asked: complaints.append(asked.url) if not expected(asked.url, file) else None)
        page.goto(file.as_uri() + address)
        return page

    yield open_page
    for context in contexts:
        context.close()
    assert complaints == []


def names(page: Page) -> list[str]:
    """The artifacts of which rows are there, in their order."""
    return page.locator("#window [role=rowheader]").all_text_contents()


def shown(page: Page) -> str:
    return str(page.locator("#shown").text_content())


def test_only_rows_in_sight_are_there_and_scrolling_brings_the_others(opened: Open) -> None:
    page = opened(of_teams(MANY))
    assert shown(page) == f"{MANY} of {MANY} shown"
    first = names(page)
    assert 20 <= len(first) < 100
    page.locator("#window").evaluate("window => { window.scrollTop = window.scrollHeight; }")
    expect(page.get_by_role("rowheader", name=first[0], exact=True)).to_have_count(0)
    assert names(page) and not set(first) & set(names(page))


def test_it_is_searched_filtered_and_sorted_both_ways(opened: Open) -> None:
    page = opened(of_teams(MANY))
    page.locator("#search").fill("model_049")
    assert shown(page) == f"10 of {MANY} shown"
    page.get_by_role("button", name="FAIL").click()
    red = names(page)
    assert red and all(int(name[-4:]) % 7 == 0 for name in red)
    page.locator("#search").fill("")
    page.get_by_role("button", name="all", exact=True).click()
    page.locator("#window").get_by_role("button", name="artifact").click()
    assert names(page)[0] == "model_0000"
    page.locator("#window").get_by_role("button", name="artifact").click()
    assert names(page)[0] == f"model_{MANY - 1}"
    assert page.locator("[role=columnheader]").first.get_attribute("aria-sort") == "descending"


def test_the_page_of_an_owner_is_an_address_and_shows_that_owner_s_causes_alone(opened: Open) -> None:
    page = opened(of_teams(MANY), address="#owner=team_03")
    assert shown(page) == f"{MANY // TEAMS} of {MANY} shown"
    assert page.locator(".cause:visible").count() == 1
    page.locator("#owner").select_option("")
    assert page.locator(".cause:visible").count() == 12
    page.locator("#owner").select_option("team_05")
    assert page.evaluate("location.hash") == "#owner=team_05"


def test_a_cause_leads_to_its_artifacts(opened: Open) -> None:
    page = opened(of_teams(MANY))
    page.locator("#cause-2 a[data-find]").click()
    expect(page.locator("#shown")).to_have_text(re.compile(r"^(59|60) of 5000 shown"))
    found = names(page)
    assert found and all(int(name[-4:]) % 12 == 1 for name in found)
    assert page.locator("#window").evaluate(IN_SIGHT)


@pytest.mark.parametrize("address", ["#owner=nobody-knows&sort=none", "#%ff=%"])
def test_an_address_that_makes_no_sense_shows_everything(opened: Open, address: str) -> None:
    assert shown(opened(of_teams(MANY), address=address)) == f"{MANY} of {MANY} shown"


def test_causes_and_waves_are_there_without_a_script(opened: Open) -> None:
    page = opened(of_teams(MANY), script=False)
    assert page.locator(".cause:visible").count() == 12
    assert page.locator("noscript").get_by_role("link", name="owners.csv").is_visible()
    assert not page.locator("#tools").is_visible()


@pytest.mark.slow
def test_nothing_sticks_out_of_the_window(opened: Open) -> None:
    for report in (of_teams(MANY), fleet_answer(HOSTILE_NAMES)):
        page = opened(report)
        for width in WIDTHS:
            page.set_viewport_size({"width": width, "height": 900})
            assert page.evaluate("document.documentElement.scrollWidth") <= width
            found = page.evaluate(STICKS_OUT.replace(".scroll,", ".scroll, .window,"))
            assert found == [], width


@pytest.mark.slow
@pytest.mark.parametrize("width", [360, 1440])
def test_axe_finds_nothing_that_keeps_anybody_from_reading_it(opened: Open, width: int) -> None:
    assert axe_of(opened(of_teams(MANY), width=width)) == []
