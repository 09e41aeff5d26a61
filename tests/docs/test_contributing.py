"""CONTRIBUTING's table "to change X, go to Y" leads somewhere: each path is there and defines what is named beside it."""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

PROJECT = Path(__file__).resolve().parents[2]
PAGE = (PROJECT / "CONTRIBUTING.md").read_text(encoding="utf-8")
TABLE = PAGE.partition("## To change X, go to Y")[2].partition("\n## ")[0]
ROWS = re.findall(r"^\| (?!what \||---)(.+?) \| (.+) \|$", TABLE, re.MULTILINE)
PATH = re.compile(r"`([\w./-]+/[\w./-]*)`|\]\(([\w./-]+)(?:#[\w-]+)?\)")
# `NAME` in `path`, `NAME` and `OTHER` of `path`
NAMED = re.compile(r"((?:`@?\w+`(?:, | and )?)+) (?:in|of) `([\w./-]+\.\w+)`")


def named() -> Iterator[tuple[str, str]]:
    for _, where in ROWS:
        for names, path in NAMED.findall(where):
            yield from ((name, path) for name in re.findall(r"`@?(\w+)`", names))


def test_the_table_answers_what_strangers_ask() -> None:
    asked = [what for what, _ in ROWS]
    assert len(asked) == len(set(asked)) >= 30
    assert len(list(named())) >= 30


@pytest.mark.parametrize(("what", "where"), ROWS, ids=[what for what, _ in ROWS])
def test_every_path_is_there(what: str, where: str) -> None:
    paths = [one or other for one, other in PATH.findall(where)]
    assert paths, f"{what}: names no place"
    assert [path for path in paths if not (PROJECT / path).exists()] == []


@pytest.mark.parametrize(("name", "path"), sorted(set(named())))
def test_every_name_is_defined_where_the_table_says(name: str, path: str) -> None:
    text = (PROJECT / path).read_text(encoding="utf-8")
    defined = rf"^\s*(?:(?:def|class|struct|inline [\w:<>]+|void|bool) {name}\b|{name}\b\s*(?::[^=\n]+)?=|{name}: )"
    assert re.search(defined, text, re.MULTILINE), f"{path} does not define {name}"
