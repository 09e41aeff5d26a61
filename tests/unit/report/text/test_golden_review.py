"""Golden records for people: the numbers of a diff, the state of the folder, in every format."""

import html
import json
import re
from collections.abc import Callable
from dataclasses import replace

import pytest

from harness.core.golden import Review
from harness.core.text import visible
from harness.report.json.results import dump_review, dump_status
from harness.report.markdown.golden import LIMIT_CHARACTERS, render_review_markdown
from harness.report.page.golden import render_review_html
from harness.report.text.golden import render_changes, render_left_over, render_review, render_status
from harness.report.words.golden import bar_width, bars, rows_of, structure_of
from tests.unit.builders.reports import HOSTILE_NAMES
from tests.unit.builders.golden_reviews import (
    BEYOND,
    BROKEN,
    FRESH,
    IDS,
    LEFT,
    NAN,
    REVIEW,
    SCORES,
    STATUS,
    STRUCTURE,
    call,
    compared,
    hostile_review,
    hostile_status,
)
from tests.unit.builders.snapshots import check_snapshot

DIFFS: dict[str, Callable[[Review], str]] = {
    "txt": render_review,
    "md": render_review_markdown,
    "html": render_review_html,
    "json": dump_review,
}


@pytest.mark.parametrize("kind", DIFFS)
def test_a_diff_looks_as_it_was_accepted(kind: str) -> None:
    text = re.sub(r"<style>.*</style>|sha256-[^']*", "", DIFFS[kind](REVIEW), flags=re.DOTALL)  # the report's own
    check_snapshot(f"golden_diff.{kind}", text)


def test_the_state_looks_as_it_was_accepted() -> None:
    check_snapshot("golden_status.txt", render_status(STATUS) + render_status(BROKEN))


def test_a_row_is_the_worst_call_of_an_output() -> None:
    (row,) = rows_of(compared(call(0, replace(SCORES, max_abs=0.01), IDS), call(1, SCORES, IDS), call(2, IDS)))
    assert (row.call, row.differing, row.calls, row.tensor.max_abs) == (1, 2, 3, 0.02)
    assert row.cells[1:4] == ("2/3", "0.002", "0.02")


def test_what_moved_between_numbers_and_nan_comes_first() -> None:
    rows = rows_of(compared(call(0, SCORES, NAN)))
    assert [row.tensor.path for row in rows] == [NAN.path, SCORES.path]
    assert rows[0].cells[2] == "NaN moved"


def test_equal_tensors_have_no_row_and_a_sample_that_may_differ_has() -> None:
    assert rows_of(compared(call(0, IDS))) == ()
    (row,) = rows_of(compared(call(0, replace(IDS, sampled=True))))
    assert row.cells[0].endswith("(sample)")


def test_equal_differences_of_structure_are_one_line() -> None:
    assert STRUCTURE.comparison is not None
    one = STRUCTURE.comparison.calls[0]
    found = structure_of(compared(one, replace(one, call=1), lost=(("b", 0),)))
    assert found == (
        "output[1]: shape (3,) -> shape (4,) (example call 0, example call 1)",
        "no longer there: b call 0",
    )


def test_bars_are_the_filled_decades_and_say_what_is_beyond() -> None:
    drawn = bars(SCORES)
    assert drawn[0] == ("equal", 3000, False)
    assert [count for _, count, _ in drawn[1:]] == [100, 300, 200, 246, 0, 250]
    assert [decade for decade, _, beyond in drawn if beyond] == ["1e-5 .. 1e-4", "1e-4 .. 1e-3", "1e-3 .. 1e-2"]
    assert bars(IDS) == ()


@pytest.mark.parametrize(("count", "width"), [(0, 0), (1, 3), (1000, 28)])
def test_a_bar_is_as_long_as_the_logarithm(count: int, width: int) -> None:
    assert bar_width(count, 1000, 28) == width


def test_a_bar_of_few_among_very_many_still_shows() -> None:
    assert bar_width(1, 10**18, 20) == 1


def test_a_long_table_says_what_it_left_out_and_all_shows_it() -> None:
    tensors = [replace(SCORES, path=f"output[{index}]") for index in range(20)]
    review = Review(old="a", new="b", diffs=(replace(BEYOND, comparison=compared(call(0, *tensors))),))
    assert "and 8 more outputs: --all, or --format json" in render_review(review)
    whole = render_review(review, every_row=True)
    assert "more outputs" not in whole and "output[19]" in whole


def test_nothing_differs() -> None:
    nothing = Review(old="accepted", new="proposed")
    assert render_review(nothing) == "nothing differs: accepted and proposed are the same\n"
    assert "nothing differs" in render_review_markdown(nothing)
    assert "nothing differs" in render_review_html(nothing)
    assert json.loads(dump_review(nothing))["diffs"] == []


def test_a_markdown_comment_stays_below_what_github_takes() -> None:
    many = Review(old="a", new="b", diffs=tuple(replace(BEYOND, model=f"model_{index}") for index in range(300)))
    text = render_review_markdown(many)
    assert len(text) <= LIMIT_CHARACTERS + 200
    left_out = re.search(r"The numbers of (\d+) models are left out", text)
    assert left_out is not None and int(left_out[1]) == 300 - text.count("\n### ")
    crowded = Review(old="a", new="b", diffs=tuple(replace(FRESH, model=f"model_{index}") for index in range(2000)))
    assert "2000 models: too many for one table" in render_review_markdown(crowded)


def test_problems_are_the_last_word() -> None:
    text = render_status(BROKEN)
    assert "do this: git checkout it" in text
    assert " ".join(text.split()).endswith("until it is mended")
    assert "NOT AS ACCEPTED" not in render_status(STATUS)
    assert json.loads(dump_status(BROKEN))["problems"][0]["model"] == "z"


def test_gc_says_what_and_how_much() -> None:
    told = render_left_over(LEFT, removed=False)
    assert "would remove  golden/records/gone  (68.4 KiB)" in told
    assert told.endswith("--yes removes it\n")
    assert render_left_over(LEFT, removed=True).count("removed  ") == 2
    assert render_left_over((), removed=False) == "nothing is left over\n"


def _texts() -> dict[str, str]:
    return {
        **{name: render(hostile_review()) for name, render in DIFFS.items()},
        "status": render_status(hostile_status()),
        "status json": dump_status(hostile_status()),
        "changes": "\n".join(render_changes(hostile_review().diffs)) + "\n",
        "gc": render_left_over([replace(LEFT[0], path=name, why=name) for name in HOSTILE_NAMES], removed=False),
    }


@pytest.mark.parametrize("name", _texts())
def test_hostile_texts_neither_steer_a_terminal_nor_change_between_two_renderings(name: str) -> None:
    text = _texts()[name]
    assert text == _texts()[name]
    assert text.endswith("\n")
    assert all(line.isprintable() for line in text.split("\n"))
    text.encode("utf-8")


def test_hostile_texts_stay_texts_on_the_page_and_in_markdown() -> None:
    page = render_review_html(hostile_review())
    assert "<script" not in page
    assert "&lt;script&gt;alert(1)&lt;/script&gt;" in page
    outside = re.sub(r"(`+).*?(?<!`)\1(?!`)", "", render_review_markdown(hostile_review()), flags=re.DOTALL)
    assert set(re.findall(r"<(\w+)", outside)) <= {"details", "summary"}
    assert "[link](" not in outside.replace("\\[", "").replace("\\]", "")


def test_json_keeps_every_text_whole() -> None:
    told = json.loads(dump_review(hostile_review()))
    assert [diff["model"] for diff in told["diffs"]][:7] == list(HOSTILE_NAMES[:7])


@pytest.mark.parametrize("text", [render_review(REVIEW), render_status(STATUS), render_status(BROKEN)])
def test_texts_fit_a_terminal(text: str) -> None:
    assert max(len(line) for line in text.splitlines()) <= 80


def test_long_hostile_names_fit_a_terminal() -> None:
    for text in (render_review(hostile_review()), render_status(replace(hostile_status(), problems=()))):
        assert max(len(line) for line in text.splitlines()) <= 80


def test_the_page_loads_nothing_and_shows_charts_and_numbers() -> None:
    page = render_review_html(REVIEW)
    assert "default-src 'none'" in page
    assert not re.findall(r'(?:src|href)="(?!#)', page)
    assert page.count("<svg") >= 3
    assert "output[&#39;scores&#39;]" in page
    assert visible("accepted 2026-11-21 by Ann <ann@example.com>") in html.unescape(page)
