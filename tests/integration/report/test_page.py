"""The page in a real Chromium: opened from disk, sorted, filtered, searched, copied from, printed."""

import re
from collections.abc import Callable, Iterator
from importlib import resources
from pathlib import Path

import pytest
from playwright.sync_api import Browser, BrowserContext, Page

from harness.core.outcome import Status
from harness.core.report import RunReport
from tests.unit.builders.rendered import render_html
from harness.report.document import place
from tests.unit.builders.reports import HOSTILE_NAMES, blocked, hostile, upgrade_ok
from tests.unit.builders.causes import of_three_causes
from tests.unit.builders.pages import fleet, governed, hanging

pytestmark = [pytest.mark.integration, pytest.mark.browser]

WIDTHS = (360, 600, 705, 760, 1000, 1040, 1440)
# What sticks out of the window, unless it lies in something that scrolls by itself.
STICKS_OUT = """() => [...document.querySelectorAll("body *")].filter(item =>
    item.getBoundingClientRect().right > innerWidth + 1 && !item.closest(".scroll, .canvas, code, .contents, .skip, .defs")
).map(item => item.tagName + "." + item.className)"""

# How many are in the window with nothing before them.
ON_TOP = """items => items.filter(item => {
    const box = item.getBoundingClientRect();
    return item.contains(document.elementFromPoint(box.x + box.width / 2, box.y + box.height / 2));
}).length"""
IN_SIGHT = """item => {
    const box = item.getBoundingClientRect();
    return box.height > 0 && box.bottom > 0 && box.top < innerHeight;
}"""

Open = Callable[..., Page]


def expected(url: str, file: Path) -> bool:
    """Whether nothing but the page itself was asked for."""
    return url.split("#")[0] in (file.as_uri(), "about:blank")


@pytest.fixture
def opened(chromium: Browser, tmp_path: Path) -> Iterator[Open]:
    """Open a report's page from a file; at the end nothing may have been complained of or asked for elsewhere."""
    contexts: list[BrowserContext] = []
    complaints: list[str] = []

    def open_page(report: RunReport, *, width: int = 1440, scheme: str = "light", script: bool = True) -> Page:
        file = tmp_path / "report.html"
        file.write_text(render_html(report))
        context = chromium.new_context(
            viewport={"width": width, "height": 900},
            color_scheme="dark" if scheme == "dark" else "light",
            java_script_enabled=script,
            reduced_motion="reduce",
        )
        contexts.append(context)
        page = context.new_page()
        page.on("console", lambda message: complaints.append(message.text))
        page.on("pageerror", lambda error: complaints.append(str(error)))
        page.on("dialog", lambda dialog: complaints.append(f"dialog: {dialog.message}"))
        page.on("request", lambda asked: complaints.append(asked.url) if not expected(asked.url, file) else None)
        page.goto(file.as_uri())
        return page

    yield open_page
    for context in contexts:
        context.close()
    assert complaints == []


def unfold(page: Page, selector: str) -> None:
    """Open every fold of a kind, so that what is inside can be clicked; where no script runs too."""
    for fold in page.locator(f"{selector}:not([open]) > summary").all()[::-1]:
        fold.click()


def drawn(page: Page) -> None:
    """Wait for the browser to draw what was asked of it: rows out of sight have no text before, on a busy machine."""
    page.evaluate("() => new Promise(done => requestAnimationFrame(() => requestAnimationFrame(done)))")


def models(page: Page) -> list[str]:
    """Return the names in the table as far as they are not filtered out, in their order."""
    return [name.strip() for name in page.locator("#table tbody tr:not([hidden]) th").all_text_contents()]


def axe_of(page: Page) -> list[tuple[str, str]]:
    """Return what axe-core complains of, each with the first element that it is about."""
    page.evaluate((resources.files("axe_playwright_python") / "axe.min.js").read_text(encoding="utf-8"))
    found = page.evaluate("axe.run({ resultTypes: ['violations'] })")
    assert len(found["passes"]) > 20
    return [(item["id"], item["nodes"][0]["html"][:200]) for item in found["violations"]]


def governed_by_the_hostile() -> RunReport:
    """Return a run whose waivers, policy and baseline have hostile words in them."""
    return governed(" ".join(HOSTILE_NAMES))


@pytest.mark.parametrize(
    "report",
    [
        blocked,
        hostile,
        *(
            pytest.param(other, marks=pytest.mark.slow)
            for other in (hanging, upgrade_ok, governed, governed_by_the_hostile)
        ),
    ],
)
def test_nothing_sticks_out_of_the_window_with_everything_open(opened: Open, report: Callable[[], RunReport]) -> None:
    page = opened(report())
    page.evaluate("document.querySelectorAll('details').forEach(item => { item.open = true })")
    for width in WIDTHS:
        page.set_viewport_size({"width": width, "height": 900})
        assert page.evaluate("document.documentElement.scrollWidth") <= width
        assert page.evaluate(STICKS_OUT) == [], width


@pytest.mark.slow
def test_at_every_width_each_column_is_in_sight_and_sorts(opened: Open) -> None:
    page = opened(blocked())
    columns = page.locator("#table thead th").count()
    for width in WIDTHS:
        page.set_viewport_size({"width": width, "height": 900})
        page.locator("#table").evaluate("table => table.scrollIntoView({ block: 'center' })")
        drawn(page)
        assert page.locator("#table thead button").evaluate_all(ON_TOP) == columns, width
        assert page.locator("#table tbody tr").first.locator("th, td").evaluate_all(ON_TOP) == columns, width
        button = page.locator("#table thead button", has_text="model")
        button.click()
        named = models(page)
        button.press("Enter")
        assert len(named) > 1 and models(page) == named[::-1]


def test_columns_sort_both_ways_and_what_was_not_measured_stands_last(opened: Open) -> None:
    page = opened(blocked())
    before = models(page)
    head = page.locator("#table thead th", has_text="steady latency")
    head.locator("button").click()
    assert head.get_attribute("aria-sort") == "ascending"
    keys = "[...document.querySelectorAll('#table tbody tr')].map(row => row.cells[7].dataset.key || '')"
    rising = page.evaluate(keys)
    measured = [float(key) for key in rising if key]
    assert measured == sorted(measured) and len(set(measured)) > 1
    head.locator("button").press("Enter")
    assert head.get_attribute("aria-sort") == "descending"
    falling = page.evaluate(keys)
    assert [float(key) for key in falling if key] == measured[::-1]
    assert [not key for key in falling] == [not key for key in rising] == sorted(not key for key in rising)
    page.locator("#table thead th", has_text="status").locator("button").click()
    assert models(page) == before


def test_filter_and_search_show_fewer_rows_and_say_how_many(opened: Open) -> None:
    page = opened(blocked())
    every = models(page)
    page.locator(".filters button", has_text="PASS").click()
    passing = models(page)
    assert 0 < len(passing) < len(every)
    assert page.locator("#shown").inner_text() == f"{len(passing)} of {len(every)} shown"
    page.locator("#search").fill(passing[0])
    assert models(page) == [passing[0]]
    page.locator("#search").fill("no such model")
    assert models(page) == []
    page.locator("#search").fill("")
    page.locator(".filters button", has_text="all").click()
    assert models(page) == every
    page.locator('.counts a[data-status="FAIL"]').click()
    assert page.locator('.filters button[aria-pressed="true"]').inner_text().startswith("FAIL")


def test_models_that_did_not_pass_a_stage_are_shown_by_the_keyboard_and_by_an_address(opened: Open) -> None:
    report = blocked()
    page = opened(report)
    file = page.url
    open_ = {
        cell.model for cell in report.judgement.cells if cell.scenario == "alone" and cell.status is not Status.PASS
    }
    page.locator("#stage").focus()
    page.keyboard.type("load and calls")
    page.keyboard.press("Enter")
    assert {*models(page)} == open_ and 0 < len(open_) < len(report.models)
    page.locator('.filters button[data-status="FAIL"]').click()
    failing, address = models(page), page.url
    assert address == f"{file}#status=FAIL&stage=alone" and {*failing} < open_
    page.goto("about:blank")
    page.goto(address)
    assert models(page) == failing
    page.goto(f"{file}#stage=nonsense")
    page.reload()
    assert len(models(page)) == len(report.models)


def test_a_name_leads_to_its_details_and_they_open(opened: Open) -> None:
    page = opened(hostile())
    for link in page.locator("#table tbody a").all():
        link.click()
        target = page.locator(str(link.get_attribute("href")))
        page.wait_for_function("item => item.open", arg=target.element_handle())
        assert target.locator(".body").is_visible()
    assert page.locator("script").count() == 1


@pytest.mark.slow
def test_the_link_of_a_model_opens_it_in_a_new_window(opened: Open) -> None:
    page = opened(hanging())
    link = str(page.locator(".red-cell th a").first.get_attribute("href"))
    page.goto(page.url.split("#")[0] + link)
    page.reload()
    assert page.locator(f"{link} .body").is_visible()


@pytest.mark.slow
def test_an_address_with_a_cell_id_opens_that_stage(opened: Open) -> None:
    report = hostile()
    page = opened(report)
    for cell in (cell for row in report.judgement.rows for cell in row.cells):
        page.goto(f"{page.url.split('#')[0]}#{place(cell.cell)}")
        row = page.locator(f'[id="{place(cell.cell)}"]')
        page.wait_for_function("item => item.closest('details').open", arg=row.element_handle())
        assert row.locator("xpath=ancestor-or-self::tr").is_visible()


def test_a_red_cell_leads_to_its_stage(opened: Open) -> None:
    page = opened(blocked())
    unfold(page, ".cause .more")
    for link in page.locator(".red-cell .at a").all():
        link.click()
        stage = page.locator(f'[id="{str(link.get_attribute("href"))[1:]}"]')
        page.wait_for_function("item => item.closest('details').open", arg=stage.element_handle())
        assert stage.locator("th").inner_text() == link.inner_text()


@pytest.mark.slow
def test_what_is_shown_can_be_sent_as_an_address(opened: Open) -> None:
    page = opened(fleet(30))
    page.locator(".filters button", has_text="PASS").click()
    page.locator("#search").fill("model_01")
    head = page.locator("#table thead th", has_text="steady latency")
    head.locator("button").click()
    head.locator("button").click()
    shown, address = models(page), page.url
    assert len(shown) == 9 and address.endswith("#status=PASS&find=model_01&falling=steady+latency")
    page.goto("about:blank")
    page.goto(address)
    assert models(page) == shown
    assert head.get_attribute("aria-sort") == "descending"
    assert page.locator("#search").input_value() == "model_01"
    page.locator("#search").fill("")
    page.locator(".filters button", has_text="all").click()
    assert len(models(page)) == 30


@pytest.mark.parametrize(
    "address",
    [
        "#status=nonsense&sort=nothing",
        pytest.param("#%", marks=pytest.mark.slow),
        pytest.param("#a=%ff", marks=pytest.mark.slow),
        pytest.param("#sort=model&find=%3Cscript%3E", marks=pytest.mark.slow),
    ],
)
def test_an_address_that_makes_no_sense_shows_the_page(opened: Open, address: str) -> None:
    page = opened(blocked())
    file = page.url
    page.goto("about:blank")
    page.goto(file + address)
    assert page.locator("h1").inner_text().startswith("BLOCKED")


def test_a_cause_leads_to_its_models(opened: Open) -> None:
    page = opened(of_three_causes(12, 4))
    page.locator("#causes .cause", has_text="calls are slower").locator("a.count").click()
    assert len(models(page)) == 4 and all(name.startswith("ranker") for name in models(page))
    assert page.locator("#shown").inner_text() == "4 of 16 shown"


def test_an_address_leads_to_a_stage_and_marks_it(opened: Open) -> None:
    page = opened(blocked())
    links = page.locator(".red-cell .at a")
    first, other = (str(link.get_attribute("href")) for link in (links.first, links.last))
    file = page.url
    page.goto("about:blank")
    page.goto(file + first)
    for place in (first, other):
        row = page.locator(f'[id="{place[1:]}"]')
        page.wait_for_function(IN_SIGHT, arg=row.element_handle())
        assert row.evaluate("item => item.matches(':target')")
        if place is first:
            unfold(page, ".cause .more")
            links.last.click()


def test_a_command_is_copied_as_it_stands(opened: Open) -> None:
    page = opened(blocked())
    page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    line = page.locator(".cause .command").last
    line.scroll_into_view_if_needed()
    line.locator("button").click()
    page.wait_for_function("button => button.textContent === 'copied'", arg=line.locator("button").element_handle())
    assert page.evaluate("navigator.clipboard.readText()") == line.locator("code").inner_text()


FOCUSED = """() => {
    const item = document.activeElement, box = item.getBoundingClientRect();
    return [item.tagName, item.className || item.id || item.textContent.trim().slice(0, 20), box.width * box.height > 0,
            getComputedStyle(item).outlineStyle !== "none" && getComputedStyle(item).outlineWidth !== "0px"];
}"""


@pytest.mark.slow
def test_the_keyboard_goes_through_the_page_in_reading_order_and_shows_where_it_is(opened: Open) -> None:
    page = opened(governed())
    page.evaluate("window.at = new Map([...document.querySelectorAll('*')].map((item, number) => [item, number])); 0")
    numbers, names = [], []
    for _ in range(60):
        page.keyboard.press("Tab")
        tag, name, seen, outlined = page.evaluate(FOCUSED)
        if tag == "BODY":
            break
        assert seen and outlined, (tag, name)
        numbers.append(page.evaluate("at.get(document.activeElement)"))
        names.append(name)
    assert names[0] == "skip"
    kept = [number for number in numbers if number is not None]  # buttons that copy are made as they come into sight
    assert kept == sorted(kept) and len(kept) > 30


@pytest.mark.slow
def test_a_model_opens_with_the_enter_key(opened: Open) -> None:
    page = opened(blocked())
    page.locator(".group > summary").first.focus()
    page.keyboard.press("Enter")
    page.locator(".model summary").first.focus()
    page.keyboard.press("Enter")
    assert page.locator(".model").first.get_attribute("open") is not None


@pytest.mark.parametrize(
    ("width", "scheme"),
    [
        (360, "dark"),
        pytest.param(760, "dark", marks=pytest.mark.slow),
        pytest.param(1440, "light", marks=pytest.mark.slow),
    ],
)
def test_axe_finds_nothing_that_keeps_anybody_from_reading_it(opened: Open, width: int, scheme: str) -> None:
    """axe-core: roles, names, labels, headings, focusable regions and contrast, as drawn, with everything open."""
    page = opened(governed(), width=width, scheme=scheme)
    page.evaluate("document.querySelectorAll('details').forEach(item => { item.open = true })")
    assert axe_of(page) == []


def test_without_a_script_the_table_and_the_details_are_there(opened: Open) -> None:
    page = opened(blocked(), script=False)
    assert models(page) and page.locator("#table").is_visible()
    assert not page.locator("#tools").is_visible()
    unfold(page, ".group")
    page.locator(".model summary").first.click()
    assert page.locator(".model .body").first.is_visible()
    unfold(page, ".cause .more")
    page.locator(".red-cell .at a").last.click()
    assert page.locator(".model .body").nth(3).is_visible()  # the browser opens what a link leads into


@pytest.mark.slow
def test_dark_is_dark_and_light_is_light(opened: Open) -> None:
    brightness = "Number(getComputedStyle(document.body).backgroundColor.match(/\\d+/)[0])"
    assert opened(upgrade_ok(), scheme="dark").evaluate(brightness) < 60
    assert opened(upgrade_ok(), scheme="light").evaluate(brightness) > 200


@pytest.mark.slow
def test_rows_that_are_drawn_each_for_itself_stand_in_the_columns_of_one_table(opened: Open) -> None:
    page = opened(blocked())
    assert page.get_by_role("table", name="Every model").get_by_role("row").count() == len(models(page)) + 1
    left = "row => [...row.cells].map(cell => Math.round(cell.getBoundingClientRect().left))"
    head = page.locator("#table thead tr").evaluate(left)
    assert len(set(head)) == len(head)
    assert all(row.evaluate(left) == head for row in page.locator("#table tbody tr").all())
    plain = opened(blocked(), script=False)
    assert plain.locator("#table tr").first.evaluate("row => getComputedStyle(row).display") == "table-row"


@pytest.mark.slow
def test_a_phone_reads_the_table_row_by_row_and_it_stays_a_table(opened: Open) -> None:
    page = opened(blocked(), width=360)
    row = page.locator("#table tbody tr").first
    assert row.bounding_box() is not None
    assert page.get_by_role("table", name="Every model").get_by_role("row").count() == len(models(page)) + 1
    size = page.evaluate("parseFloat(getComputedStyle(document.querySelector('#table tbody td')).fontSize)")
    assert size >= 12


@pytest.mark.slow
def test_it_prints_with_the_failed_models_open(opened: Open) -> None:
    page = opened(blocked())
    page.evaluate("dispatchEvent(new Event('beforeprint'))")
    assert page.locator(".model.bad").count() == page.locator(".model.bad[open]").count() > 0
    page.emulate_media(media="print")
    assert not page.locator("#tools").is_visible() and not page.locator(".contents").is_visible()
    assert page.locator(".model.bad .body").first.is_visible()
    page.evaluate("dispatchEvent(new Event('afterprint'))")
    assert page.locator(".model.bad[open]").count() == 0
    closed = opened(blocked(), script=False)
    sheets = [len(re.findall(rb"/Type /Page\b", one.pdf())) for one in (page, closed)]
    assert sheets[0] > sheets[1] > 0


# What lies in the window, whole, before anybody scrolls.
VISIBLE = """item => {
    const box = item.getBoundingClientRect();
    return box.height > 0 && box.top >= 0 && box.bottom <= innerHeight && box.left >= 0 && box.right <= innerWidth;
}"""


def in_the_window(page: Page, selector: str) -> list[str]:
    """Return the words of the elements that are seen whole without scrolling."""
    return [" ".join(item.inner_text().split()) for item in page.locator(selector).all() if item.evaluate(VISIBLE)]


@pytest.mark.parametrize(
    "of",
    [
        pytest.param(of_three_causes, id="three causes"),
        *(pytest.param(of, id=of.__name__, marks=pytest.mark.slow) for of in (blocked, governed)),
    ],
)
def test_who_decides_need_not_scroll_at_1280_by_800(opened: Open, of: Callable[[], RunReport]) -> None:
    report = of()
    page = opened(report, width=1280)
    page.set_viewport_size({"width": 1280, "height": 800})
    assert in_the_window(page, "h1")[0].startswith(report.judgement.decision.value)
    assert len(in_the_window(page, ".counts li")) == page.locator(".counts li").count() > 1
    assert len(in_the_window(page, "#board-causes, #board-worst")) == 2
    shown = in_the_window(page, ".board .short li")
    assert len(shown) == page.locator(".board .short li").count() >= 4
    assert len(in_the_window(page, ".news h2")) == page.locator(".news h2").count()
    assert page.locator(".news h2").count() == 3 or len(in_the_window(page, ".nothing")) == 1


def test_the_first_screen_of_a_hundred_red_cells_says_each_thing(opened: Open) -> None:
    page = opened(of_three_causes(), width=1280)
    page.set_viewport_size({"width": 1280, "height": 800})
    assert in_the_window(page, ".counts li") == ["100 FAIL", "22 undecided", "43 PASS"]
    causes = in_the_window(page, ".board:not(.news) .panel:first-child li")
    assert len(causes) == 3 and all(
        f"{count} models" in words for count, words in zip((34, 33, 33), causes, strict=True)
    )
    assert in_the_window(page, ".news li")[-1] == "load while serving, ranking: 67.0 -> 101 s (+50.7 %)"
    page.locator(".board .worst a").first.click()
    assert page.locator(".model[open] .name").inner_text() == "embedder_005"


@pytest.mark.slow
def test_the_first_screen_prints_on_one_sheet(opened: Open) -> None:
    for report in (of_three_causes(), blocked()):
        page = opened(report, width=688)  # A4 less its margins, in CSS pixels
        page.evaluate("dispatchEvent(new Event('beforeprint'))")
        page.emulate_media(media="print")
        assert page.evaluate("document.querySelector('.summary').getBoundingClientRect().bottom") < 1017
        assert page.evaluate("getComputedStyle(document.querySelector('.summary')).breakAfter") == "page"


@pytest.mark.slow
def test_500_models_can_be_sorted_and_searched(opened: Open) -> None:
    """How fast that is, ``bench -- page`` measures."""
    page = opened(upgrade_ok())
    file = Path(page.url.removeprefix("file://"))
    file.write_text(render_html(fleet(500)))
    page.reload()
    page.locator("#table thead th", has_text="steady latency").locator("button").click()
    page.locator("#search").fill("model_04")
    assert len(models(page)) == 10
