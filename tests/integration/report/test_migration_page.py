"""A migration's page of 5,000 artifacts in a real Chromium: searched, filtered, shown as one owner's."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, expect

from tests.unit.builders.rendered import render_migration_html
from tests.integration.report.test_fleet_page import names, shown
from tests.integration.report.test_page import IN_SIGHT, STICKS_OUT, WIDTHS, axe_of, expected
from tests.unit.builders.migrations import hostile, of_teams

pytestmark = [pytest.mark.integration, pytest.mark.browser]
MANY = 5000


@pytest.fixture
def page(chromium: Browser, tmp_path: Path) -> Iterator[Page]:
    """The page, opened from a file; at the end nothing may have been complained of or asked for elsewhere."""
    file = tmp_path / "migration.html"
    file.write_text(render_migration_html(of_teams(MANY)))
    complaints: list[str] = []
    context = chromium.new_context(viewport={"width": 1440, "height": 900}, reduced_motion="reduce")
    page = context.new_page()
    page.on("console", lambda message: complaints.append(message.text))
    page.on("pageerror", lambda error: complaints.append(str(error)))
    page.on("request", lambda asked: complaints.append(asked.url) if not expected(asked.url, file) else None)
    page.goto(file.as_uri())
    yield page
    context.close()
    assert complaints == []


def test_it_is_searched_filtered_and_shown_as_one_owner_s(page: Page) -> None:
    assert shown(page) == f"{MANY} of {MANY} shown"
    page.get_by_role("button", name="ready", exact=True).click()
    assert shown(page) == f"1667 of {MANY} shown"
    assert all(int(name[-4:]) % 3 == 0 for name in names(page))
    page.get_by_role("button", name="all", exact=True).click()
    page.locator("#search").fill("model_049")
    assert shown(page) == f"10 of {MANY} shown"
    page.locator("#search").fill("")
    page.locator("#owner").select_option("team_03")
    assert shown(page) == f"250 of {MANY} shown"
    assert page.evaluate("location.hash") == "#owner=team_03"


def test_the_causes_of_a_fix_lead_to_their_artifacts(page: Page) -> None:
    link = page.locator("#fixes a[data-find]").first
    cause = int(str(link.text_content()).rpartition("f")[2])
    link.click()
    expect(page.locator("#shown")).not_to_have_text(f"{MANY} of {MANY} shown")
    found = names(page)
    assert found and all(int(name[-4:]) % 12 == cause for name in found)
    assert page.locator("#window").evaluate(IN_SIGHT)


@pytest.mark.slow
def test_nothing_sticks_out_of_the_window_and_axe_finds_nothing(page: Page, tmp_path: Path) -> None:
    assert axe_of(page) == []
    (tmp_path / "migration.html").write_text(render_migration_html(hostile()))
    page.reload()
    for width in WIDTHS:
        page.set_viewport_size({"width": width, "height": 900})
        assert page.evaluate("document.documentElement.scrollWidth") <= width
        assert page.evaluate(STICKS_OUT.replace(".scroll,", ".scroll, .window,")) == [], width
