"""Any document as a page: it loads nothing, and no text in it becomes an element."""

import base64
import hashlib
import json
import re
from collections.abc import Callable
from typing import Any

import pytest

from harness.report.backends.html import own, render_page, upstream
from harness.report.document import BAD, OPEN, Cell, Charts, Document, Fact, Figure, Part, Row, Table, Verdict
from tests.unit.builders.documents import HOSTILE, LARGE, PLAIN
from tests.unit.builders.html_page import Page, is_within

# What may load something, run something, or send something.
LOADING = ("src", "srcset", "href", "action", "poster", "data", "background", "style", "xlink:href")
# Where a reader may want to go from here: PyTorch's own tracker, and whatever tracker a waiver names.
EVERY = {**PLAIN, **LARGE, **HOSTILE}
OUTSIDE = ("https://github.com/pytorch/pytorch/", "https://example.org/")


@pytest.mark.parametrize("made", EVERY.values(), ids=list(EVERY))
def test_every_page_is_whole_its_links_lead_somewhere_and_nothing_is_loaded(made: Callable[[], Document]) -> None:
    text = render_page(made())
    page = Page(text)
    assert text.isascii() and text.endswith("</html>\n")
    assert all(word.isprintable() for words in page.words for word in words.split())
    ids = [str(attributes["id"]) for _, attributes in page.tags if "id" in attributes]
    assert len(ids) == len(set(ids))
    inside = {str(link["href"])[1:] for link in page.all("a") if str(link["href"]).startswith("#")}
    assert inside <= set(ids)
    assert not {"iframe", "object", "embed", "link", "base", "form", "img", "image", "use"} & {
        tag for tag, _ in page.tags
    }
    assert len([one for one in page.all("script") if "type" not in one]) <= 1 and len(page.all("style")) == 1
    for tag, attributes in page.tags:
        assert not [name for name in attributes if name.startswith("on")], (tag, attributes)
        for name in LOADING:
            target = attributes.get(name)
            if target is not None and not (name == "href" and is_within(target)):
                assert tag == "a" and target.startswith(OUTSIDE) and attributes["rel"] == "noreferrer", (tag, target)


@pytest.mark.parametrize("name", ["run_since", "fleet", "golden"])
def test_the_policy_forbids_all_loading_and_names_the_inline_style_and_script_by_their_digests(name: str) -> None:
    text = render_page(PLAIN[name]())
    policy = re.search(r'http-equiv="Content-Security-Policy" content="([^"]*)"', text)
    assert policy is not None and "default-src 'none'" in policy[1]
    for kind in ("style", "script"):
        inline = re.search(rf"<{kind}>(.*?)</{kind}>", text, re.DOTALL)
        assert (inline is not None) == (kind == "style" or name != "golden")
        if inline is not None:
            digest = base64.b64encode(hashlib.sha256(inline[1].encode()).digest()).decode()
            assert f"{kind}-src 'sha256-{digest}'" in policy[1]
    assert own("style.css") in text


def data_of(text: str) -> dict[str, Any]:
    found = re.search(r'<script type="application/json" id="data">(.*?)</script>', text, re.DOTALL)
    assert found is not None and not {"<", ">", "&"} & set(found[1])
    return dict(json.loads(found[1]))


def searched(*names: str) -> Document:
    rows = tuple(
        Row(
            cells=(name, "ads", Cell("FAIL", tone=BAD)),
            owners=("ads",),
            find="cause-1",
            tip=f"/m/{name}",
            change=("new", OPEN),
        )
        for name in names
    )
    table = Table(heads=("artifact", "owner", "status"), rows=rows, status=2, choices=("FAIL",))
    part = Part(title="Artifacts", id="artifacts", kind="upgrade", blocks=(table,))
    return Document(title="t", verdict=Verdict(word="BLOCKED"), parts=(part,), things="artifact")


def test_a_table_that_is_searched_is_data_with_every_text_once_and_no_element() -> None:
    names = [f"model_{at}" for at in range(5000)]
    text = render_page(searched(*names))
    found = data_of(text)
    assert len(found["texts"]) == len(set(found["texts"])) and len(Page(text).tags) < 1000
    assert [found["texts"][row[0]] for row in found["rows"]] == names
    assert [found["texts"][at] for at in found["rows"][0]] == ["model_0", "ads", "FAIL", "cause-1", "new", "/m/model_0"]
    assert (found["tones"], found["changes"], found["owners"]) == ({"FAIL": BAD}, {"new": OPEN}, ["ads"])


def test_no_text_ends_the_data() -> None:
    name = "</script><script>alert(1)</script>"
    text = render_page(searched(name))
    assert data_of(text)["texts"][0] == name and len(Page(text).all("script")) == 2


def test_charts_cost_no_more_than_there_is_room_for_and_those_left_out_are_counted() -> None:
    figures = [Figure("drawn", f"<svg><!--{'x' * 40_000}--></svg>"), Figure("empty", "")]
    blocks = (Charts(lambda: figures), *(Charts(lambda: figures) for _ in range(99)))
    document = Document(title="t", verdict=Verdict(), parts=(Part(title="Charts", blocks=blocks),))
    text = render_page(document)
    assert (
        60 < text.count("<figcaption>drawn") < 70 and "<figcaption>empty" not in text and "charts were left out" in text
    )
    assert len(render_page(document, limit=100_000)) < 100_000


def test_words_of_a_page_over_its_limit_go_the_least_important_first() -> None:
    facts = tuple(Fact("what", "x" * 1000, 500 + at) for at in range(90))
    document = Document(
        title="t", verdict=Verdict(), parts=(Part(title="p", noun="line", blocks=(Fact("a", "b"), *facts)),)
    )
    assert len(render_page(document, limit=80_000)) <= 80_000


def test_only_pages_of_pytorch_become_links() -> None:
    text = "see https://github.com/pytorch/pytorch/issues/75903 and https://evil.example/<b>"
    assert upstream(text).count("<a ") == 1 and "&lt;b&gt;" in upstream(text)
