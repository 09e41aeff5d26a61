"""What a search for the first bad release says, for every way in which it may end."""

import json
from dataclasses import replace

import pytest

from harness.core.releases import ReleaseResult, Conclusion, Ending, FirstBad, ReleaseAnswer
from harness.report.text.first_bad import answer_words, dump_first_bad, render_first_bad

GOOD, BAD, UNTESTABLE = ReleaseAnswer.GOOD, ReleaseAnswer.BAD, ReleaseAnswer.UNTESTABLE

FOUND = FirstBad(
    model="ranker",
    kind="load_error",
    releases=("2.1.2", "2.2.0", "2.2.2", "2.3.1", "2.6.0"),
    source="package index, Python 3.11, asked 2026-11-21",
    asked=(
        ReleaseResult(release="2.1.2", answer=GOOD, runs=2, seconds=9.0),
        ReleaseResult(
            release="2.6.0", answer=BAD, runs=2, seconds=8.0, kind="load_error", reason="does not load\x1b[31m"
        ),
        ReleaseResult(release="2.2.2", answer=GOOD, runs=3, seconds=43.2, build_s=31.0),
        ReleaseResult(release="2.3.1", answer=BAD, runs=1, remembered=True, kind="load_error", reason="does not load"),
    ),
    conclusion=Conclusion(ending=Ending.FOUND, last_good="2.2.2", first_bad="2.3.1"),
    built=("2.2.2", "2.2.0"),
    unused=("2.2.0",),
    build_limit=3,
    wall_s=65.0,
    command="python -m harness bisect --model ranker --old 2.2.2 --new 2.3.1",
    notes=("the list is old",),
)
UNDECIDED = replace(
    FOUND,
    conclusion=Conclusion(
        ending=Ending.ONE_OF,
        last_good="2.1.2",
        first_bad="2.3.1",
        one_of=("2.2.0", "2.2.2", "2.3.1"),
        untestable=("2.2.0",),
        not_asked=("2.2.2",),
    ),
)


def test_the_answer_the_questions_and_what_to_do_next() -> None:
    text = render_first_bad(FOUND)
    lines = text.splitlines()
    assert lines[0] == "ranker: 5 releases from 2.1.2 to 2.6.0 (package index, Python 3.11, asked 2026-11-21)"
    rows = [line.split()[:2] for line in lines[4:8]]
    assert rows == [["2.1.2", "good"], ["2.2.2", "good"], ["2.3.1", "bad"], ["2.6.0", "bad"]]
    assert "43.2 s  built in 31.0 s" in text
    assert "known from an earlier search" in text
    assert "first bad: torch 2.3.1 (load_error); torch 2.2.2 is good" in lines
    assert (
        "3 of 5 releases asked, 1 known from earlier searches, 2 environments built (2.2.0 ahead and not needed), "
        "1 min 05 s"
    ) in " ".join(text.split())
    assert lines[-1] == "next  python -m harness bisect --model ranker --old 2.2.2 --new 2.3.1"
    assert "\x1b" not in text
    assert "note  the list is old" in lines


def test_where_several_may_be_the_first_bad_one_all_are_named_with_the_reason() -> None:
    words = answer_words(UNDECIDED)
    assert words.startswith("first bad: one of torch 2.2.0, 2.2.2, 2.3.1 (load_error); torch 2.1.2 is good; ")
    assert "2.2.0 could not be tested" in words
    assert "2.2.2 would need more environments than the 3 allowed: --builds N allows more" in words


@pytest.mark.parametrize(
    ("conclusion", "words"),
    [
        (Conclusion(ending=Ending.NOT_BAD, last_good="2.6.0"), "nothing to search for: torch 2.6.0 is good"),
        (Conclusion(ending=Ending.OLD_NOT_GOOD), "nothing to search from: torch 2.1.2 is not good itself"),
        (
            Conclusion(ending=Ending.END_UNTESTABLE, untestable=("2.6.0",)),
            "undecided: torch 2.6.0, an end, could not be tested",
        ),
    ],
)
def test_ends_that_end_the_search(conclusion: Conclusion, words: str) -> None:
    assert words in answer_words(replace(FOUND, conclusion=conclusion, command=""))


def test_contradictions_are_never_hidden() -> None:
    odd = replace(FOUND, conclusion=replace(FOUND.conclusion, good_again=(("2.2.0", "2.2.2"),)))
    text = " ".join(render_first_bad(odd, width=80).split())
    assert "not one switch: torch 2.2.0 is bad and torch 2.2.2 after it is good again" in text
    assert "not one switch" not in render_first_bad(FOUND)


def test_another_error_of_the_same_kind_is_reported() -> None:
    other = [replace(item, reason=f"gone in torch {item.release}: aten::x") for item in FOUND.asked]
    alike = replace(FOUND, asked=tuple(other))
    assert "fails with another error" not in render_first_bad(alike)
    unlike = replace(FOUND, asked=(*other[:-1], replace(other[-1], reason="gone in torch 2.3.1: aten::y")))
    text = " ".join(render_first_bad(unlike).split())
    assert "torch 2.3.1 fails with another error than torch 2.6.0: there may be two breaks" in text


def test_json_holds_the_answer_the_exit_code_and_everything_asked() -> None:
    told = json.loads(dump_first_bad(FOUND))
    assert (told["schema_version"], told["exit_code"]) == (1, 1)
    assert told["answer"] == answer_words(FOUND)
    assert [item["release"] for item in told["asked"]] == ["2.1.2", "2.6.0", "2.2.2", "2.3.1"]
    assert told["conclusion"]["first_bad"] == "2.3.1"
    assert dump_first_bad(FOUND).isascii()
