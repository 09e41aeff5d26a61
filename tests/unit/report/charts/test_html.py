"""The page as text: what it says, what it forbids, and what hostile names cannot do to it."""

import re
import sys
from dataclasses import replace

import pytest

from harness.core.verdict import WaiverState
from harness.core.outcome import Status
from harness.core.report import Explained
from harness.report.document import anchor, place
from harness.report.text.table import COLUMNS
from harness.verdict.causes import with_causes
from tests.unit.builders.causes import of_three_causes
from tests.unit.builders.html_page import Page, is_within
from tests.unit.builders.pages import comparison, fleet, governed, hanging, tensor
from tests.unit.builders.rendered import render_console, render_html
from tests.unit.builders.reports import HOSTILE_NAMES, blocked, hostile, mitigated, upgrade_ok

# Where a reader may want to go from here: PyTorch's own tracker, and whatever tracker a waiver names.
OUTSIDE = ("https://github.com/pytorch/pytorch/", "https://example.org/issues/")


def test_the_page_is_ascii_whatever_it_says() -> None:
    report = upgrade_ok()
    named = replace(report, old=replace(report.old, name="torch ☃ \N{ROCKET} \N{ARABIC LETTER ALEF}"))
    text = render_html(named)
    assert text.isascii()
    assert "torch ☃ \N{ROCKET} \N{ARABIC LETTER ALEF}" in Page(text).text


def test_hostile_names_are_shown_and_stay_text() -> None:
    page = Page(render_html(hostile()))
    assert "<script>alert(1)</script>" in page.text
    assert r"\x1b[31mred\x1b[0m" in page.text
    assert r"\u202eleft-to-right\u2066" in page.text
    assert all(word.isprintable() or word.isspace() for words in page.words for word in words.split("\n"))


def test_hostile_words_of_searches_stay_text() -> None:
    report = blocked()
    (cell, *_) = [item.cell for item in report.explained]
    evil = "</script><img src=x onerror=alert(1)>\x1b[31m\u202e'\"" + 300 * "a"
    paths = ("javascript:alert(1)", "../../etc/passwd", "/abs/<b>", 'a"b/<i>.pt')
    told = Explained(
        cell=cell,
        model="m",
        by="mitigate",
        answer=evil,
        lines=(("mitigation", evil), ("culprit", evil), (evil, evil)),
        paths=paths,
    )
    page = Page(render_html(replace(report, explained=(told,)), directory="out/run"))
    assert "</script><img src=x onerror=alert(1)>" in page.text and r"\x1b[31m\u202e" in page.text
    assert not page.all("img") and len(page.all("script")) == 1
    assert all(word.isprintable() for words in page.words for word in words.split())
    assert render_console(replace(report, explained=(told,)))
    links = [str(link["href"]) for link in page.all("a")]
    assert "a%22b/%3Ci%3E.pt" in links
    assert not [link for link in links if not is_within(link) and not link.startswith(OUTSIDE)]


def test_a_model_has_its_stages_charts_switches_and_commands() -> None:
    report = hanging()
    told = replace(report.models[0], comparisons=(comparison(tensor(), tensor("output[1]", 0.0)),))
    text = render_html(replace(report, models=(told, *report.models[1:])))
    page = Page(text)
    section = text[text.index('id="details"') :]
    for said in (
        "Stages",
        "Times and memory",
    ):
        assert said in section
    without_old = with_causes(replace(report, old=replace(report.old, golden=True)))
    assert "harness bisect" in page.text and "harness bisect" not in Page(render_html(without_old)).text
    assert "Threads and stacks" in page.text and "getPlanFor" in page.text
    assert "0.25 → 0.2502" in page.text


def test_the_timeline_of_a_hang_stands_open_with_its_thread_marked() -> None:
    text = render_html(hanging())
    assert '<details class="timelines" open>' in text
    assert "ranker#1: call never ended" in Page(text).text
    assert "round 1: hang: blocked" in Page(text).text


def test_charts_within_a_closed_model_and_quiet_groups_cost_nothing_at_first() -> None:
    text = render_html(
        replace(upgrade_ok(), timelines=tuple(replace(hanging().timelines[0], side=side) for side in ("old", "new")))
    )
    assert '<details class="timelines">' in text
    assert 'class="model good" id' in text and "<details open" not in text


def test_evidence_is_linked_only_within_the_run() -> None:
    def linked(evidence: str) -> list[str | None]:
        report = mitigated()
        rows = []
        for row in report.judgement.rows:
            cells = tuple(
                replace(cell, findings=tuple(replace(item, evidence=evidence) for item in cell.findings))
                for cell in row.cells
            )
            rows.append(replace(row, cells=cells))
        page = Page(render_html(replace(report, judgement=replace(report.judgement, rows=tuple(rows)))))
        return [link["href"] for link in page.all("a") if "stacks" in str(link["href"])]

    assert linked("probes/5d/stacks.txt") == ["probes/5d/stacks.txt"]
    assert linked("/etc/stacks") == [] and linked("../stacks") == []
    assert linked("javascript:stacks()") == ["javascript%3Astacks%28%29"]


def section(page: str, name: str) -> str:
    """Return the text of a section."""
    start = page.index(f'<section id="{name}"')
    return Page(page[start : page.index("</section>", start) + len("</section>")]).text


def test_an_issue_is_a_link_only_where_it_is_an_address_of_the_web() -> None:
    for issue in ("javascript:alert(1)", "https://", "http://a b", "https://a\u202e", "data:text/html,x", "//evil"):
        report = governed()
        use = replace(report.waivers[0], waiver=replace(report.waivers[0].waiver, issue=issue))
        page = Page(render_html(replace(report, waivers=(use,))))
        assert not [link for link in page.all("a") if not is_within(str(link["href"])) and "pytorch" not in str(link)]


def test_what_is_waived_is_named_on_the_first_screen() -> None:
    report = governed()
    use = replace(report.waivers[0], state=WaiverState.USED)
    waiver = use.waiver
    words = f"{waiver.model} ({waiver.owner}, until {waiver.expires.isoformat()})"
    for uses, told in (((use,), True), ((replace(use, state=WaiverState.UNUSED),), False)):
        page = Page(render_html(replace(report, waivers=uses))).text
        assert (words in page.partition("All causes")[0]) is told
    green = replace(upgrade_ok(), waivers=(use,))
    assert f"Nothing measured is over a limit, beside what is waived: {words}." in Page(render_html(green)).text


def test_golden_records_say_who_accepted_them_when_and_why() -> None:
    text = render_html(governed("the drift is known"))
    told = "fused_ranker 2.1.2 2026-10-02 grace the drift is known 2026-10-01-run 9f2c9f2c9f2c"
    assert told in section(text, "environments")
    assert "golden record 2.1.2, accepted 2026-10-02 by grace: the drift is known" in section(text, "details")
    assert "why they are trusted" not in render_html(blocked())


@pytest.mark.parametrize("words", HOSTILE_NAMES)
def test_what_people_write_in_waivers_and_policies_stays_text(words: str) -> None:
    page = Page(render_html(governed(words)))
    assert len(page.all("script")) == 1 and not page.all("img")
    assert all(word.isprintable() for words in page.words for word in words.split())


def test_the_first_screen_says_what_the_decision_rests_on() -> None:
    report = blocked()
    first = Page(render_html(report)).text.partition("All causes")[0]
    caught = sum(item.caught for item in report.judgement.planted_defects)
    assert f"planted defects: {caught} of {len(report.judgement.planted_defects)} caught" in first
    missed = tuple(replace(item, caught=False) for item in report.judgement.planted_defects[:1])
    unseen = replace(report, judgement=replace(report.judgement, planted_defects=missed))
    assert f"MISSED {missed[0].name}" in Page(render_html(unseen)).text.partition("All causes")[0]
    none = replace(report, judgement=replace(report.judgement, planted_defects=()))
    assert "none ran: nothing shows" in Page(render_html(none)).text.partition("All causes")[0]


def test_causes_lead_to_their_models() -> None:
    page = Page(render_html(blocked()))
    links = {str(link["data-find"]) for link in page.all("a") if "data-find" in link}
    assert links == {f"cause:{cause.id}" for cause in blocked().causes}
    rows = [str(row["data-search"]).split() for row in page.all("tr") if "data-search" in row]
    assert all(any(link.lower() in words for words in rows) for link in links)


def test_every_cell_has_its_id_as_its_place_and_red_ones_lead_there() -> None:
    report = hostile()
    page = Page(render_html(report))
    ids = {attributes["id"] for _, attributes in page.tags if "id" in attributes}
    cells = [cell for row in report.judgement.rows for cell in row.cells]
    assert {place(cell.cell) for cell in cells} <= ids
    assert place("dlrm/alone") == "dlrm/alone"
    assert not re.search(r"[^!-~]", place("a b\t<>\u202e/x"))


def test_the_limits_of_a_model_are_those_of_its_rules() -> None:
    text = render_html(governed("text_tagger"))

    def told_from(model: str) -> str:
        own = text[text.index(f'id="{anchor(model)}"') :].partition("p50 of a call (steady latency)")[2]
        return own.partition("<td>")[2].partition("<")[0]

    assert (told_from("text_tagger"), told_from("detector")) == ("+10 %", "+5 %")


def test_the_words_before_a_cell_on_a_phone_are_those_of_its_column() -> None:
    style = re.search(r"<style>(.*?)</style>", render_html(upgrade_ok()), re.DOTALL)
    assert style is not None
    named = dict(re.findall(r"td:nth-of-type\((\d)\)::before \{ content: \"([a-z ]+) \"", style[1]))
    assert named
    assert all(COLUMNS[int(number)] == words for number, words in named.items())


def test_a_page_of_500_models_is_under_5_mb() -> None:
    text = render_html(fleet(500, red_every=1))
    assert len(text.encode()) < 5_000_000
    models = text.split('<details class="model')[1:]
    assert len(models) == 500
    said = ["Times and memory" in model for model in models]
    assert said[0] and not said[-1] and said == sorted(said, reverse=True)  # what has no room, the last models lack


def test_anchors_are_unique_and_safe() -> None:
    anchors = [anchor(name) for name in (*HOSTILE_NAMES, "a.b", "a_b", "a b", "")]
    assert len(set(anchors)) == len(anchors)
    assert all(re.fullmatch(r"model-[a-z0-9-]*", text) for text in anchors)


def test_the_template_engine_waits_until_a_page_is_wanted() -> None:
    import subprocess

    code = "import sys, harness.cli; sys.exit('jinja2' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], timeout=60).returncode == 0


def first_screen(page: str) -> str:
    """Return what stands above the sections, as text."""
    return Page(page[page.index("<header") : page.index("<nav")]).text


def test_a_model_that_passes_undecided_is_counted_as_such_and_as_no_pass() -> None:
    first = first_screen(render_html(of_three_causes()))
    assert "100 FAIL 22 undecided 43 PASS" in first
    assert "22 not decided model_21 up to +7.7 %" in first and "and 19 more" in first
    none = first_screen(render_html(upgrade_ok()))
    assert "Everything was decided." in none and "not decided" not in none and "undecided 3 PASS" not in none


def test_what_is_faster_and_what_starts_slower_stands_on_the_first_screen() -> None:
    first = first_screen(render_html(of_three_causes()))
    assert "17 faster (131 of 165 timed) model_41 -7.5 %" in first
    assert "1 start slower load while serving, ranking: 67.0 -> 101 s (+50.7 %)" in first
    quiet = first_screen(render_html(upgrade_ok()))
    assert "Nothing is clearly faster. No server group starts clearly slower." in quiet and "start slower" not in quiet


def test_details_stand_behind_their_cause_and_those_of_healthy_models_behind_one_line() -> None:
    groups = re.findall(r'<details class="more group (\w+)">\n<summary>(.*?)</summary>', render_html(of_three_causes()))
    assert [(tone, Page(words).text) for tone, words in groups] == [
        ("bad", "34 models aten::_lanczos2d_aa is unknown to torch 2.6.0"),
        ("bad", "33 models calls are slower, by 20 us each"),
        ("bad", "33 models matmul precision is high in torch 2.6.0, highest in torch 2.1.2"),
        ("open", "22 models passing, something undecided"),
        ("good", "43 models nobody has to look at"),
    ]


def test_hostile_words_of_causes_stay_text() -> None:
    evil = "</details><script>alert(1)</script><img src=x>\x1b[31m"
    report = blocked()
    red = next(cell for cell in report.judgement.cells if cell.status is Status.FAIL)
    cause = replace(
        of_three_causes(3, 0).causes[0],
        id=evil,
        title=evil,
        cells=(red.cell,),
        models=(red.model,),
        evidence=((evil, evil),),
        fix=evil,
        commands=((evil, evil),),
    )
    page = Page(render_html(replace(report, causes=(cause,))))
    assert not page.all("img") and len(page.all("script")) == 1
    assert all(word.isprintable() for words in page.words for word in words.split())
