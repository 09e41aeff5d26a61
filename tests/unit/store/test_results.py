"""Results are found again under their key, and reused only where nothing speaks against it."""

from dataclasses import dataclass
from pathlib import Path

import pytest

from harness.core.errors import RunDirError
from harness.store.results import ResultStore, WhyNot


@dataclass(frozen=True)
class Answer:
    """A result of some kind."""

    asked_as: str
    enough_memory: bool = True


def before(folder: Path, answer: Answer) -> None:
    """Has another process store an answer."""
    ResultStore(folder, Answer).save("key", answer)


def test_a_result_is_found_again_under_its_key_and_under_no_other(tmp_path: Path) -> None:
    before(tmp_path / "new" / "folder", Answer("a"))
    results = ResultStore(tmp_path / "new" / "folder", Answer)
    assert (results.reusable("other"), results.reused) == (WhyNot.MISSING, set())
    assert (results.reusable("key"), results.reused) == (Answer("a"), {"key"})


def test_each_result_may_have_a_folder_of_its_own(tmp_path: Path) -> None:
    results = ResultStore(tmp_path, Answer, suffix="/result.json")
    assert results.save("key", Answer("a")) == results.path("key") == tmp_path / "key" / "result.json"
    assert list(results.readable("*")) == [Answer("a")]


def test_what_was_there_before_is_not_reused_where_a_fresh_one_is_wanted_but_what_was_made_since_is(
    tmp_path: Path,
) -> None:
    before(tmp_path, Answer("a"))
    results = ResultStore(tmp_path, Answer)
    assert results.reusable("key", fresh=True) is WhyNot.FRESH
    assert results.reusable("key", source_known=False) is WhyNot.SOURCE_UNKNOWN
    results.save("key", Answer("b"))
    assert results.reusable("key", fresh=True) == results.reusable("key", source_known=False) == Answer("b")


def test_a_result_of_another_request_is_not_reused(tmp_path: Path) -> None:
    before(tmp_path, Answer("a"))
    results = ResultStore(tmp_path, Answer)
    assert results.reusable("key", answers=lambda one: one.asked_as == "b") is WhyNot.OTHER_REQUEST
    assert results.reusable("key", answers=lambda one: one.asked_as == "a") == Answer("a")


@pytest.mark.parametrize("content", ["", "{", "[]", '{"of_another_version": 1}'])
def test_a_damaged_result_is_made_anew_or_an_error_of_a_strict_store(tmp_path: Path, content: str) -> None:
    (tmp_path / "key.json").write_text(content)
    results = ResultStore(tmp_path, Answer)
    assert results.reusable("key") is WhyNot.DAMAGED
    assert list(results.readable("*")) == []
    results.strict = True
    with pytest.raises(RunDirError, match=r"key\.json is damaged"):
        results.reusable("key")


def test_a_result_of_a_machine_that_lacked_something_is_made_anew_once_and_stays_in_a_strict_store(
    tmp_path: Path,
) -> None:
    short = Answer("a", enough_memory=False)
    before(tmp_path, short)
    strict, results = ResultStore(tmp_path, Answer, strict=True), ResultStore(tmp_path, Answer)

    def reusable(store: ResultStore[Answer]) -> Answer | WhyNot:
        return store.reusable("key", lacked=lambda one: not one.enough_memory)

    assert (reusable(strict), reusable(results)) == (short, WhyNot.LACKED)
    results.save("key", short)
    assert reusable(results) == short


def test_a_folder_that_cannot_be_made_is_an_error_of_the_run(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(RunDirError, match="cannot be written"):
        before(tmp_path / "file" / "folder", Answer("a"))
