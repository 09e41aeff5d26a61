"""The page as text: what it says, what it forbids, and what hostile names cannot do to it."""

import base64
import hashlib
import re
import sys
from dataclasses import replace
from html.parser import HTMLParser

import pytest

from harness.domain.explained import Explained
from harness.domain.outcome import Status
from harness.domain.verdict import CellVerdict
from harness.render.console import render_console
from harness.render.page.html import render_html
from harness.render.page.tones import anchor
from harness.render.table import COLUMNS
from tests.unit.render.builders import HOSTILE_NAMES, REPORTS, blocked, hostile, mitigated, upgrade_ok
from tests.unit.render.matrices import hostile as hostile_matrix
from tests.unit.render.matrices import mixed
from tests.unit.render.page.builders import comparison, fleet, hanging, tensor
from tests.unit.render.snapshots import check_snapshot

VOID = {"meta", "input"}
# What may load something, run something, or send something.
LOADING = ("src", "srcset", "href", "action", "poster", "data", "background", "style", "xlink:href")


class Page(HTMLParser):
    """Everything that the tests ask about, in one pass."""

    def __init__(self, text: str) -> None:
        super().__init__(convert_charrefs=True)
        self.open: list[str] = []
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.words: list[str] = []
        self.feed(text)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))

    def handle_endtag(self, tag: str) -> None:
        assert self.open and self.open[-1] == tag, f"</{tag}> closes {self.open[-1:]}"
        self.open.pop()

    def handle_data(self, data: str) -> None:
        if self.open[-1:] not in (["script"], ["style"]):
            self.words.append(data)

    def all(self, tag: str) -> list[dict[str, str | None]]:
        return [attributes for name, attributes in self.tags if name == tag]

    @property
    def text(self) -> str:
        return " ".join(" ".join(self.words).split())


@pytest.mark.parametrize("name", REPORTS)
def test_elements_are_closed_ids_unique_and_links_lead_somewhere(name: str) -> None:
    page = Page(render_html(REPORTS[name](), matrix=mixed()))
    assert page.open == []
    ids = [attributes["id"] for _, attributes in page.tags if "id" in attributes]
    assert len(ids) == len(set(ids))
    inside = {str(link["href"])[1:] for link in page.all("a") if str(link["href"]).startswith("#")}
    assert inside <= set(ids)


@pytest.mark.parametrize("report", [hostile(), hanging(), blocked()], ids=["hostile", "hanging", "blocked"])
def test_nothing_is_loaded_or_run_from_outside(report: object) -> None:
    page = Page(render_html(report, matrix=hostile_matrix()))  # type: ignore[arg-type]
    assert len(page.all("script")) == 1 and len(page.all("style")) == 1
    assert not {"iframe", "object", "embed", "link", "base", "form", "img", "image", "use"} & {
        tag for tag, _ in page.tags
    }
    for tag, attributes in page.tags:
        assert not [name for name in attributes if name.startswith("on")], (tag, attributes)
        for name in LOADING:
            target = attributes.get(name)
            assert target is None or (name == "href" and ":" not in target and not target.startswith("/")), (
                tag,
                target,
            )


def test_the_policy_forbids_all_loading_and_names_the_inline_style_and_script_by_their_digests() -> None:
    text = render_html(blocked())
    policy = re.search(r'http-equiv="Content-Security-Policy" content="([^"]*)"', text)
    assert policy is not None
    for kind in ("style", "script"):
        inline = re.search(rf"<{kind}>(.*?)</{kind}>", text, re.DOTALL)
        assert inline is not None
        digest = base64.b64encode(hashlib.sha256(inline[1].encode()).digest()).decode()
        assert f"{kind}-src &#39;sha256-{digest}&#39;" in policy[1] or f"{kind}-src 'sha256-{digest}'" in policy[1]
    assert "default-src 'none'" in policy[1]


def test_the_page_is_ascii_whatever_it_says() -> None:
    report = upgrade_ok()
    named = replace(report, old=replace(report.old, name="torch ☃ \N{ROCKET} \N{ARABIC LETTER ALEF}"))
    text = render_html(named)
    assert text.isascii()
    assert "torch ☃ \N{ROCKET} \N{ARABIC LETTER ALEF}" in Page(text).text


def test_hostile_names_are_shown_and_stay_text() -> None:
    page = Page(render_html(hostile(), matrix=hostile_matrix()))
    assert "<script>alert(1)</script>" in page.text
    assert r"\x1b[31mred\x1b[0m" in page.text
    assert r"\u202eleft-to-right\u2066" in page.text
    assert all(word.isprintable() or word.isspace() for words in page.words for word in words.split("\n"))


def test_what_searches_found_is_told_with_links_to_what_they_left() -> None:
    report = blocked()
    page = Page(render_html(report, directory="out/run"))
    for item in report.explained:
        for _, text in item.lines:
            assert " ".join(text.split()) in page.text, text
        for path in item.paths:
            inside = ".." not in path and not path.startswith("/")
            assert any(link.get("href") == path for link in page.all("a")) is inside, path
            assert inside or path.rpartition("../")[2] in page.text
    first = page.text[: page.text.index("Every model, worst first")]
    assert report.explained[0].lines[0][1] in first


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
        lines=(("cure", evil), ("culprit", evil), (evil, evil)),
        paths=paths,
    )
    page = Page(render_html(replace(report, explained=(told,)), directory="out/run"))
    assert "</script><img src=x onerror=alert(1)>" in page.text and r"\x1b[31m\u202e" in page.text
    assert not page.all("img") and len(page.all("script")) == 1
    assert all(word.isprintable() for words in page.words for word in words.split())
    assert render_console(replace(report, explained=(told,)))
    links = [str(link["href"]) for link in page.all("a")]
    assert "a%22b/%3Ci%3E.pt" in links
    assert not [link for link in links if ":" in link or ".." in link or link.startswith("/")]


def test_the_first_screen_has_the_decision_the_pair_the_counts_and_every_red_cell_with_its_command() -> None:
    page = Page(render_html(blocked()))
    first = page.text[: page.text.index("Every model, worst first")]
    for said in ("BLOCKED", "exit code 1", "torch 2.1.2", "2.1.2+cu121", "a8e7c98cb9", "torch 2.6.0", "2236df1770"):
        assert said in first
    red = [cell for row in blocked().judgement.rows for cell in row.cells if cell.status in (Status.FAIL, Status.XPASS)]
    assert red
    for cell in red:
        assert cell.model in first and f"harness rerun {blocked().run} {cell.cell}" in first


def test_a_model_has_its_stages_charts_switches_and_commands() -> None:
    report = hanging()
    told = replace(report.models[0], comparisons=(comparison(tensor(), tensor("output[1]", 0.0)),))
    text = render_html(replace(report, models=(told, *report.models[1:])))
    page = Page(text)
    section = text[text.index('id="details"') :]
    for said in (
        "Stages",
        "Error of every call",
        "Where the errors lie",
        "Steady latency, new over old",
        "Memory of load",
    ):
        assert said in section
    assert "Switches that were tried" in page.text and "profiling off" in page.text
    without_old = replace(report, old=replace(report.old, golden=True))
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


def test_waived_cells_have_a_section_with_the_note() -> None:
    report = upgrade_ok()
    row = report.judgement.rows[0]
    known: CellVerdict = replace(row.cells[0], status=Status.XFAIL, note="waived until 2027-01-01 by ada: known drift")
    rows = (replace(row, cells=(known, *row.cells[1:])), *report.judgement.rows[1:])
    page = Page(render_html(replace(report, judgement=replace(report.judgement, rows=rows))))
    assert "Failures that are known" in page.text and "by ada: known drift" in page.text
    assert "Failures that are known" not in Page(render_html(report)).text


def test_the_matrix_is_shown_only_where_one_is_given() -> None:
    assert "Exported in (rows)" not in Page(render_html(upgrade_ok())).text
    page = Page(render_html(upgrade_ok(), matrix=mixed()))
    assert "Exported in (rows)" in page.text and "2/5 X" in page.text


def test_tables_have_captions_and_heads_with_a_scope() -> None:
    page = Page(render_html(hanging()))
    assert len(page.all("table")) == len(page.all("caption"))
    assert all(head.get("scope") in ("col", "row") for head in page.all("th"))
    assert all(drawing.get("aria-label") or drawing.get("aria-hidden") for drawing in page.all("svg"))


def test_the_words_before_a_cell_on_a_phone_are_those_of_its_column() -> None:
    style = re.search(r"<style>(.*?)</style>", render_html(upgrade_ok()), re.DOTALL)
    assert style is not None
    named = dict(re.findall(r"td:nth-of-type\((\d)\)::before \{ content: \"([a-z ]+) \"", style[1]))
    assert named
    assert all(COLUMNS[int(number)] == words for number, words in named.items())


def test_a_page_of_500_models_is_under_5_mb_and_says_what_it_left_out() -> None:
    text = render_html(fleet(500, red_every=2))
    assert len(text.encode()) < 5_000_000
    assert text.count('<details class="model') == 500
    left_out = re.search(r"<p>(\d+) charts were left out", text)
    assert left_out is not None and int(left_out[1]) > 0


def test_anchors_are_unique_and_safe() -> None:
    anchors = [anchor(name) for name in (*HOSTILE_NAMES, "a.b", "a_b", "a b", "")]
    assert len(set(anchors)) == len(anchors)
    assert all(re.fullmatch(r"model-[a-z0-9-]*", text) for text in anchors)


def test_the_template_engine_waits_until_a_page_is_wanted() -> None:
    import subprocess

    code = "import sys, harness.cli; sys.exit('jinja2' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], timeout=60).returncode == 0


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_text_has_the_contrast_that_wcag_aa_asks_for(scheme: str) -> None:
    style = re.search(r"<style>(.*?)</style>", render_html(upgrade_ok()), re.DOTALL)
    assert style is not None
    roots = re.findall(r":root \{(.*?)\}", style[1], re.DOTALL)
    colours = dict(re.findall(r"--([a-z0-9-]+): (#[0-9a-f]{6})", roots[0]))
    if scheme == "dark":
        colours |= dict(re.findall(r"--([a-z0-9-]+): (#[0-9a-f]{6})", roots[1]))
    for text, grounds in {
        "ink": ("back", "face", "sunk", "bad-face", "open-face", "good-face"),
        "soft": ("back", "face", "sunk", "bad-face", "open-face", "good-face"),
        "link": ("back", "face", "sunk"),
        "bad": ("face", "bad-face"),
        "open": ("face", "open-face"),
        "quiet": ("face", "quiet-face"),
        "good": ("face", "good-face"),
    }.items():
        for ground in grounds:
            assert _contrast(colours[text], colours[ground]) >= 4.5, (scheme, text, ground)


def _contrast(one: str, other: str) -> float:
    """Return the contrast of two colours by WCAG 2.2: (L1 + 0.05) / (L2 + 0.05)."""

    def luminance(colour: str) -> float:
        parts = [int(colour[index : index + 2], 16) / 255 for index in (1, 3, 5)]
        linear = [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts]
        return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]

    high, low = sorted((luminance(one), luminance(other)), reverse=True)
    return (high + 0.05) / (low + 0.05)


def test_the_page_of_a_hang_is_the_accepted_one() -> None:
    check_snapshot("hanging.html", render_html(hanging(), matrix=mixed()))
