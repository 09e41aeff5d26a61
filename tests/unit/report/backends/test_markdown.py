"""Any document as markdown: inert, in one piece, and within what GitHub takes."""

import pytest

from harness.report.backends.markdown import code, command_block, escape, inert, render_markdown
from harness.report.document import ALL, BAD, FIRST, Cell, Document, Fact, Part, Row, Table, Verdict, placed


def of(*parts: Part) -> str:
    return render_markdown(
        Document(title="a -> b", verdict=Verdict(word="BLOCKED", means="exit code 1", reason="it hangs"), parts=parts)
    )


def test_the_decision_comes_first_then_the_parts_in_their_order() -> None:
    cause = Part(
        title="it hangs",
        word="FAIL",
        detail="3 models",
        blocks=(Fact("what", "x"), Fact("rerun", "run it", form="command")),
    )
    fold = Part(title="all <of> it", folded=True, blocks=(Fact("", "y"), Fact("in", "a/b", form="path")))
    assert of(Part(title="Causes", blocks=(cause,)), fold) == (
        "# BLOCKED: a -> b\n\n**exit code 1**: it hangs\n\n## Causes\n\n### FAIL: it hangs (3 models)\n\n- **what** x\n\n"
        "```sh\nrun it\n```\n\n<details>\n<summary>all &lt;of&gt; it</summary>\n\n- y\n- **in** `a/b`\n\n</details>\n"
    )


def test_a_table_has_numbers_to_the_right_and_words_that_need_somebody_in_bold() -> None:
    rows = (
        Row(cells=("a|b", "1", Cell("FAIL", tone=BAD))),
        Row(cells=("c", "2", Cell("PASS", tone="good")), importance=ALL),
    )
    table = Table(heads=("model", "n", "status"), rows=rows, numbers=(1,), noun="model")
    text = of(Part(title="Models", blocks=(table,)))
    assert (
        "| model | n | status |\n| --- | ---: | --- |\n| a\\|b | 1 | **FAIL** |\n\nAnd 1 more model: 1 PASS.\n" in text
    )


def test_what_is_over_the_limit_is_left_out_and_counted() -> None:
    notes = tuple(Fact("note", "x" * 500, placed(FIRST, at)) for at in range(60))
    document = Document(
        title="t", verdict=Verdict(), parts=(Part(title="Notes", noun="note", blocks=notes),), full="x.json"
    )
    text = render_markdown(document, limit=9_000)
    assert len(text) <= 9_000 and "more notes, in `x.json`." in text


@pytest.mark.parametrize(
    ("text", "shown"), [("`", "`` ` ``"), ("a``b", "```a``b```"), (" ", "`   `"), ("\x1b", r"`\x1b`")]
)
def test_no_backtick_ends_a_span_of_code(text: str, shown: str) -> None:
    assert code(text) == shown


def test_no_backtick_ends_a_block_of_code() -> None:
    assert command_block("a ``` b\nc") == ["````sh", "a ``` b", "c", "````"]


def test_markup_is_no_markup_and_words_keep_their_underscores() -> None:
    assert escape("a_b _c_ *d* <e> [f](g) |") == r"a_b \_c\_ \*d\* &lt;e&gt; \[f\](g) \|"


def test_in_a_comment_a_text_notifies_nobody_and_links_to_nothing() -> None:
    assert inert("@org look at #1 and http://x.example, *all*") == (
        "`@org` look at `#1` and `http://x.example,` \\*all\\*"
    )
