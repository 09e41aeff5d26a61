"""Names of models that are files."""

import re

import pytest

from harness.config.selection import parse_expression
from harness.artifacts.declarations import NAME
from harness.artifacts.names import LONGEST, names_of, tag_of, word, word_of


@pytest.mark.parametrize(
    ("path", "name"),
    [
        ("/m/ranker.pt", "ranker"),
        ("/m/ranker.v2.pt", "ranker_v2"),
        ("/m/Ad Ranker (new).ts", "Ad_Ranker_new"),
        ("/m/2tower.pt", "_2tower"),
        ("/m/not.pt", "_not"),
        ("/m/planted_crash.pt", "_planted_crash"),
        ("/m/modèle.pt", "modele"),
        ("/m/noextension", "noextension"),
    ],
)
def test_a_file_is_called_by_its_stem(path: str, name: str) -> None:
    assert word_of(path) == name


@pytest.mark.parametrize("text", ["модель", "模型", "...", "a" * 300, "and", "1", "_", "a\udcff"])
def test_any_text_makes_a_word_of_an_expression(text: str) -> None:
    made = word(text)
    assert NAME.accepts(made)
    assert len(made) <= LONGEST
    parse_expression(made)


def test_texts_without_letters_in_common_make_different_words() -> None:
    assert word("модель") != word("模型")
    assert word("a" * 300) != word("a" * 301)


def test_one_stem_in_two_folders_is_distinguished_by_as_many_folders_as_needed() -> None:
    paths = ["/m/a/x.pt", "/m/b/x.pt", "/m/b/y.pt", "/m/ranker/1/model.pt", "/m/ads/1/model.pt"]
    assert names_of(paths) == {
        "/m/a/x.pt": "a_x",
        "/m/b/x.pt": "b_x",
        "/m/b/y.pt": "y",
        "/m/ranker/1/model.pt": "ranker_1_model",
        "/m/ads/1/model.pt": "ads_1_model",
    }


def test_one_stem_in_one_folder_is_distinguished_by_the_suffix() -> None:
    assert names_of(["/m/x.pt", "/m/x.ts"]) == {"/m/x.pt": "x_pt", "/m/x.ts": "x_ts"}


def test_a_name_that_is_taken_is_not_given_again() -> None:
    assert names_of(["/m/x.pt"], ["x"]) == {"/m/x.pt": "m_x"}


def test_names_are_unique_where_the_words_are_not() -> None:
    names = names_of(["/m/a-b.pt", "/m/a_b.pt", "/m/a b.pt", "/m/a_b.ts"], ["a_b"])
    assert len(set(names.values()) | {"a_b"}) == 5
    assert all(re.fullmatch(r"[A-Za-z_]\w*", name) for name in names.values())


def test_a_file_that_is_called_as_another_would_be_does_not_take_its_name() -> None:
    paths = ["/m/a-b.pt", "/m/a_b.pt"]
    told_apart = names_of(paths)[paths[0]]
    names = names_of([*paths, f"/m/{told_apart}.pt"])
    assert len(set(names.values())) == 3
    assert names[f"/m/{told_apart}.pt"] == told_apart
    assert names[paths[0]] == told_apart + "_2"


@pytest.mark.parametrize(
    ("path", "tag"),
    [
        ("/models/ads/x.pt", "ads"),
        ("/models/my models/x.pt", "my_models"),
        ("/models/ranker/1/model.pt", "ranker"),
        ("/x.pt", "files"),
        ("/m/planted/x.pt", "m"),
        ("/1/2/x.pt", "files"),
    ],
)
def test_the_tag_is_the_folder_where_that_says_something(path: str, tag: str) -> None:
    assert tag_of(path) == tag
