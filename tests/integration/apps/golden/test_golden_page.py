"""The diff of golden records in a real Chromium: it fits, loads nothing, and needs no script."""

from pathlib import Path

import pytest
from playwright.sync_api import Browser

from harness.core.golden import Review
from tests.unit.builders.rendered import render_review_html
from tests.integration.report.test_page import STICKS_OUT
from tests.unit.builders.golden_reviews import REVIEW, hostile_review

pytestmark = [pytest.mark.integration, pytest.mark.browser]


@pytest.mark.parametrize("width", [360, 1440])
@pytest.mark.parametrize("review", [REVIEW, hostile_review()], ids=["plain", "hostile"])
def test_the_page_fits_and_asks_for_nothing(chromium: Browser, tmp_path: Path, review: Review, width: int) -> None:
    file = tmp_path / "golden.html"
    file.write_text(render_review_html(review))
    complaints: list[str] = []
    context = chromium.new_context(viewport={"width": width, "height": 900}, java_script_enabled=False)
    page = context.new_page()
    page.on("console", lambda message: complaints.append(message.text))
    page.on("request", lambda asked: complaints.append(asked.url) if asked.url != file.as_uri() else None)
    page.goto(file.as_uri())
    assert page.locator("details.model[open]").count() == min(5, len(review.diffs))
    page.locator("details.model:not([open]) > summary").evaluate_all("all => all.forEach(one => one.click())")
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    assert page.evaluate(STICKS_OUT) == []
    first = page.locator("section table th a").first
    first.click()
    assert page.locator(page.url[page.url.index("#") :]).is_visible()
    context.close()
    assert complaints == []
