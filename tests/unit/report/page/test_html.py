"""The page as text: what it says, what it forbids, and what hostile names cannot do to it."""

import base64
import hashlib
import re
import sys
from collections.abc import Callable
from dataclasses import replace
from html.parser import HTMLParser

import pytest

from harness.verdict.causes import with_causes
from harness.core.outcome import Status
from harness.core.report import Explained, RunReport
from harness.core.verdict import CellVerdict
from harness.report.page.engine import upstream
from harness.report.page.html import render_html
from harness.report.page.parts import anchor, place
from harness.report.text.console import render_console
from harness.report.text.table import COLUMNS
from tests.unit.builders.causes import of_three_causes
from tests.unit.builders.reports import HOSTILE_NAMES, REPORTS, RUN, blocked, hostile, mitigated, upgrade_ok
from tests.unit.builders.matrices import hostile as hostile_matrix, mixed
from tests.unit.builders.pages import comparison, crowded, fleet, governed, hanging, tensor

VOID = {"meta", "input"}
# What may load something, run something, or send something.
LOADING = ("src", "srcset", "href", "action", "poster", "data", "background", "style", "xlink:href")


# Where a reader may want to go from here: PyTorch's own tracker, and whatever tracker a waiver names.
OUTSIDE = ("https://github.com/pytorch/pytorch/", "https://example.org/issues/")


def is_within(target: str) -> bool:
    """Whether a link leads to the page itself or into the run's folder."""
    return target.startswith("#") or not (":" in target or target.startswith("/") or ".." in target)


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


@pytest.mark.parametrize("report", [*REPORTS.values(), governed], ids=[*REPORTS, "governed"])
def test_elements_are_closed_ids_unique_and_links_lead_somewhere(report: Callable[[], RunReport]) -> None:
    page = Page(render_html(report(), matrix=mixed()))
    assert page.open == []
    ids = [attributes["id"] for _, attributes in page.tags if "id" in attributes]
    assert len(ids) == len(set(ids))
    inside = {str(link["href"])[1:] for link in page.all("a") if str(link["href"]).startswith("#")}
    assert inside <= set(ids)


@pytest.mark.parametrize(
    "report", [hostile(), hanging(), blocked(), governed()], ids=["hostile", "hanging", "blocked", "governed"]
)
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
            if target is not None and not (name == "href" and is_within(target)):
                assert tag == "a" and target.startswith(OUTSIDE) and attributes["rel"] == "noreferrer", (tag, target)


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


@pytest.mark.parametrize("words", ["</noscript><script>alert(1)</script>", "<noscript>", "--></NoScript\t><img src=x>"])
def test_what_waits_behind_a_model_ends_where_it_should_whatever_names_say(words: str) -> None:
    """A browser with scripts on reads it as raw text up to the next end tag."""
    for report in (fleet(3, red_every=2, prefix=words), governed(words)):
        text = render_html(report)
        held = re.findall(r"<noscript>(.*?)</noscript", text, re.DOTALL)
        assert len(held) == len(re.findall("</?noscript", text, re.IGNORECASE)) / 2 == len(report.models)
        assert all(Page(one).open == [] and "<script" not in one and "<img" not in one for one in held)
        assert words.split()[0] in " ".join(Page(one).text for one in held)


def test_what_searches_found_is_reported_with_links_to_what_they_left() -> None:
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
    assert not [link for link in links if not is_within(link) and not link.startswith(OUTSIDE)]


def test_the_first_screen_has_the_decision_the_pair_the_counts_and_every_red_cell_with_its_command() -> None:
    page = Page(render_html(blocked()))
    first = page.text[: page.text.index("Every model, worst first")]
    for said in ("BLOCKED", "exit code 1", "torch 2.1.2", "2.1.2+cu121", "a8e7c98cb9", "torch 2.6.0", "2236df1770"):
        assert said in first
    red = [cell for row in blocked().judgement.rows for cell in row.cells if cell.status in (Status.FAIL, Status.XPASS)]
    assert red
    causes = blocked().causes
    assert {cell.cell for cell in red} <= {cell for cause in causes for cell in cause.cells}
    for cause in causes:
        assert all(model in first for model in cause.models)
        assert f"harness rerun {blocked().run} --cause {cause.id}" in first


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
        "Times and memory",
    ):
        assert said in section
    assert "Switches that were tried" in page.text and "profiling off" in page.text
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


def test_waived_cells_have_a_section_with_the_note() -> None:
    report = upgrade_ok()
    row = report.judgement.rows[0]
    known: CellVerdict = replace(row.cells[0], status=Status.XFAIL, note="waived until 2027-01-01 by ada: known drift")
    rows = (replace(row, cells=(known, *row.cells[1:])), *report.judgement.rows[1:])
    page = Page(render_html(replace(report, judgement=replace(report.judgement, rows=rows))))
    assert "Failures that are known" in page.text and "by ada: known drift" in page.text
    assert "Failures that are known" not in Page(render_html(report)).text


def section(page: str, name: str) -> str:
    """Return the text of a section."""
    start = page.index(f'<section id="{name}"')
    return Page(page[start : page.index("</section>", start) + len("</section>")]).text


def test_waivers_say_whom_they_are_for_what_they_cover_and_what_they_did() -> None:
    text = render_html(governed())
    told = section(text, "waivers")
    for said in ("up to 0.001 of the largest value", "torch any → ~=2.6.0", "0.0002 of the largest value", "ada"):
        assert said in told
    assert "2027-01-01, 9 days left" in told and "any size, any releases" in told and "expired 9 days ago" in told
    assert "https://example.org/issues/8" in [link["href"] for link in Page(text).all("a")]
    glance = Page(text).text
    assert "1 used, 1 expired, 1 about to expire" in glance
    assert 'id="waivers"' not in render_html(blocked()) and "Waivers" not in Page(render_html(blocked())).text


def test_an_issue_is_a_link_only_where_it_is_an_address_of_the_web() -> None:
    for issue in ("javascript:alert(1)", "https://", "http://a b", "https://a\u202e", "data:text/html,x", "//evil"):
        report = governed()
        use = replace(report.waivers[0], waiver=replace(report.waivers[0].waiver, issue=issue))
        page = Page(render_html(replace(report, waivers=(use,))))
        assert not [link for link in page.all("a") if not is_within(str(link["href"])) and "pytorch" not in str(link)]


def test_the_policy_says_what_it_asked_what_it_changed_and_what_the_run_had_decided() -> None:
    text = render_html(governed("ci/policy.toml"))
    told = section(text, "policy")
    for said in (
        "The run itself had decided UPGRADE OK (exit code 0)",
        "95 % of the selected models judged 5 of 6 not met",
        "a verdict in load and calls ci/policy.toml met",
        "ci/policy.toml: fail → warn",
        "fails beyond +5 %; an undecided one does not decide below +25 %",
        "error 0.0001, p99 +30 %",
        "memory counts as fail",
        "steady +10 %; values counts as warn",
        "one that nothing needs fails its cell",
    ):
        assert said in told, said
    assert (
        "NOT MET: 95 % of the selected models judged; 1 finding weighed otherwise; the run itself said UPGRADE OK"
        in Page(text).text
    )


def test_what_is_new_since_the_baseline_stands_with_the_red_cell_and_in_a_section() -> None:
    text = render_html(governed("2026-11-14-run"))
    page = Page(text)
    assert "1 new, 1 flaky, 1 gone, 9 unchanged; then OK WITH MITIGATION" in page.text
    first = page.text[: page.text.index("Every model, worst first")]
    assert first.count("new since the baseline") == 1
    told = section(text, "baseline")
    assert "2026-11-14-run, started 2026-11-14T10:00:00+00:00: OK WITH MITIGATION" in told
    assert "gone load and calls FAIL not there gone" in told
    assert "Since the baseline" not in Page(render_html(blocked())).text


def test_what_happened_to_the_machine_is_reported_on_the_first_screen_and_with_what_to_do() -> None:
    text = render_html(governed("12 % taken"))
    page = Page(text)
    assert "machine steal time: 12 % taken" in page.text[: page.text.index("What needs you")]
    assert "steal time 12 % taken 12 % taken 12 % taken" in section(text, "machine")
    assert 'id="machine"' not in render_html(blocked())


def test_golden_records_say_who_accepted_them_when_and_why() -> None:
    text = render_html(governed("the drift is known"))
    assert "golden 1 record, accepted 2026-10-02 by grace" in Page(text).text
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
    first = Page(render_html(report)).text.partition("What needs you")[0]
    caught = sum(item.caught for item in report.judgement.planted_defects)
    assert f"planted defects {caught} of {len(report.judgement.planted_defects)} came out right" in first
    assert "not measured export, load, init, outputs" not in first
    assert re.search(r"not measured [a-z, ]+ of some models", first)
    missed = tuple(replace(item, caught=False) for item in report.judgement.planted_defects[:1])
    unseen = replace(report, judgement=replace(report.judgement, planted_defects=missed))
    assert f"MISSED {missed[0].name}" in Page(render_html(unseen)).text.partition("What needs you")[0]
    none = replace(report, judgement=replace(report.judgement, planted_defects=()))
    assert "none ran: nothing shows" in Page(render_html(none)).text.partition("What needs you")[0]


def test_the_first_notes_stand_on_the_first_screen() -> None:
    notes = ("4 of 6 models have no golden record", "second", "third", "fourth")
    page = Page(render_html(replace(blocked(), notes=notes)))
    first, _, rest = page.text.partition("What needs you")
    assert "note 4 of 6 models have no golden record note second note and 2 more" in first
    assert "note third note fourth" in rest


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
    assert place("dlrm/backward/alone/cpu/default") == "dlrm/backward/alone/cpu/default"
    assert not re.search(r"[^!-~]", place("a b\t<>\u202e/x"))


def test_the_limits_of_a_model_are_those_of_its_rules() -> None:
    report = governed("text_tagger")
    text = render_html(report)
    chart = text[text.index(f'id="{anchor("text_tagger")}"') :].partition("</details>\n<details")[0]
    assert "limit +10.0 %" in chart
    other = text[text.index(f'id="{anchor("detector")}"') :].partition("</details>\n<details")[0]
    assert "limit +10.0 %" not in other and "limit +" in other


@pytest.mark.slow
def test_a_page_of_cells_with_much_to_say_says_less_of_each_and_that_it_does() -> None:
    few, many = render_html(crowded(3)), render_html(crowded(500))
    assert len(many.encode()) < 5_000_000
    assert "was shortened to keep this page small" in many and "was shortened" not in few
    assert many.count('<details class="model') == 500
    assert few.count("is another one") / 3 > 4 * many.count("is another one") / 500


def test_only_pytorchs_tracker_becomes_a_link() -> None:
    known = "see https://github.com/pytorch/pytorch/issues/75903) <b>"
    assert "issues/75903</a>) &lt;b&gt;" in upstream(known)
    for text in ("https://github.com/evil/pytorch/issues/1", "https://github.com/pytorch/pytorch/", "javascript:x <a>"):
        assert "<a" not in upstream(text)


def test_stages_with_the_same_numbers_share_their_charts_and_rows() -> None:
    report = hanging()
    one = comparison(tensor())
    told = replace(report.models[0], comparisons=(one, replace(one, scenario="concurrent")))
    text = render_html(replace(report, models=(told, *report.models[1:])))
    assert text.count("Error of every call,") == 1
    assert "Error of every call, load and calls, concurrent init" in text
    other = comparison(tensor(max_abs=3e-4))
    told = replace(told, comparisons=(one, replace(other, scenario="concurrent")))
    assert render_html(replace(report, models=(told, *report.models[1:]))).count("Error of every call,") == 2


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
    text = render_html(fleet(500, red_every=1))
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


def first_screen(page: str) -> str:
    """Return what stands above the sections, as text."""
    return Page(page[page.index("<header") : page.index("<nav")]).text


def test_the_first_screen_tells_each_cause_once_with_its_models_its_excess_and_its_cure() -> None:
    text = render_html(of_three_causes())
    first = first_screen(text)
    assert text.count('<li class="cause ') == 3
    for cause in of_three_causes().causes:
        assert first.count(cause.title) == 1 and f"{len(cause.models)} models" in first
        assert f"harness rerun {RUN} --cause {cause.id}" in Page(text).text
    assert "33 models, 6.3x its limit cure: profiling off cures 30 of 33" in first


def test_the_first_screen_ranks_by_excess_and_no_cause_hides_another() -> None:
    report = of_three_causes()
    first = first_screen(render_html(report))
    worst = first[first.index("Furthest over a limit") :]
    names = re.findall(r"(?:embedder|ranker|thumbnail)_\d+", worst)
    assert [name.partition("_")[0] for name in names] == ["embedder"] * 4 + ["ranker"] * 2
    assert "ranker_001 FAIL 6.3x" in worst and "60 more" in worst
    rows = [str(row["data-status"]) for row in Page(render_html(report)).all("tr") if "data-status" in row]
    assert rows == ["FAIL"] * 100 + ["undecided"] * 22 + ["PASS"] * 43


def test_a_model_that_passes_undecided_is_counted_as_such_and_as_no_pass() -> None:
    first = first_screen(render_html(of_three_causes()))
    assert "100 FAIL 22 undecided 43 PASS" in first
    assert "22 not decided model_21 up to +7.7 %" in first and "and 19 more" in first
    none = first_screen(render_html(upgrade_ok()))
    assert "0 not decided everything was decided" in none and "undecided 3 PASS" not in none


def test_what_is_faster_and_what_starts_slower_stands_on_the_first_screen() -> None:
    first = first_screen(render_html(of_three_causes()))
    assert "17 faster model_41 -7.5 %" in first
    assert "1 start slower load while serving, ranking: 67.0 -> 101 s (+50.7 %)" in first
    quiet = first_screen(render_html(upgrade_ok()))
    assert "0 faster nothing is clearly faster 0 start slower no server group starts clearly slower" in quiet


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
        cure=evil,
        commands=((evil, evil),),
    )
    page = Page(render_html(replace(report, causes=(cause,))))
    assert not page.all("img") and len(page.all("script")) == 1
    assert all(word.isprintable() for words in page.words for word in words.split())
