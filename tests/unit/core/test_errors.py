"""Errors say what is wrong and what to do: those in the source, and those that typical mistakes end in."""

import ast
import functools
from pathlib import Path
from typing import NamedTuple

import pytest

from harness.core import errors
from harness.cli import main
from harness.core.errors import GateError, InternalError

PROJECT = Path(__file__).resolve().parents[3]
CLASSES = {
    name
    for name, found in vars(errors).items()
    if isinstance(found, type) and issubclass(found, GateError) and found is not InternalError
}
CONFIG = '[tool.compat]\nold = "2.1.2"\nnew = "2.6.0"\nfixtures = "fixtures/zoo"\n'


class Made(NamedTuple):
    """Where an error is made, and of what."""

    where: str
    arguments: tuple[str, ...]


@functools.cache
def made() -> tuple[Made, ...]:
    """Return every error that the source makes."""
    errors_made: list[Made] = []
    for path in sorted((PROJECT / "harness").rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in CLASSES:
                where = f"{path.relative_to(PROJECT)}:{node.lineno}"
                arguments = tuple(ast.unparse(argument) for argument in (*node.args, *node.keywords))
                errors_made.append(Made(where, arguments))
    return tuple(errors_made)


def test_every_error_has_a_hint_or_says_what_was_expected() -> None:
    """Lists of errors have the hints of their parts."""
    silent = [
        one.where
        for one in made()
        if (len(one.arguments) < 2 or one.arguments[1] in ("''", '""'))
        and "expected" not in one.arguments[0]
        and "could not be provisioned" not in one.arguments[0]
    ]
    assert silent == []


def test_errors_are_found_in_the_source_at_all() -> None:
    assert len(made()) > 200


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A project with a few models."""
    (tmp_path / "pyproject.toml").write_text(CONFIG)
    (tmp_path / "fixtures").mkdir()
    (tmp_path / "fixtures" / "zoo").symlink_to(PROJECT / "tests" / "docs" / "scratch")
    return tmp_path


@pytest.mark.parametrize(
    ("words", "wrong", "do"),
    [
        ("compat -k drlm", "drlm", "--list"),
        ("compat -k (dlrm", "(dlrm", "dlrm or"),
        ("compat --new 2.six", "2.six", "2."),
        ("compat --set latency.limmit=1", "latency.limmit", "limit"),
        ("compat --set latency.limit=much", "latency.limit", ""),
        ("compat --set latency.limit", "latency.limit", "--set latency.limit=0.05"),
        ("compat --fixtures nowhere", "nowhere", "name a folder"),
        ("compat --artifacts nowhere.pt", "nowhere.pt", "name"),
        ("compat --env new", "--env new", "NAME=PYTHON"),
        ("compat --env neww=/bin/python", "neww", "--new neww"),
        ("compat --jobs many", "jobs", "many"),
        ("compat --profile fast", "fast", "allowed: default"),
        ("compat --resume last", "last", "--out"),
        ("compat --golden", "golden", "golden propose"),
        ("compat --old 2.6.0 --new 2.6.0", "2.6.0", "--allow-same-torch"),
        ("report last", "last", "--out"),
        ("report nowhere", "nowhere", "--out"),
        ("rerun last dlrm/backward", "last", "--out"),
        ("bisect last dlrm/backward", "dlrm/backward", "dlrm/alone"),
        ("bisect --over releases --resume last", "--resume", "same command"),
        ("bisect --builds 3 --model dlrm", "--builds", "--over"),
        ("mitigate --cell dlrm/backward", "dlrm/backward", "dlrm/alone"),
        ("inspect nowhere.pt", "nowhere.pt", "name"),
        ("inspect pyproject.toml --env x=/bin/python", "--env", "--old"),
        ("matrix --releases 2.6.0", "2.6.0", "--releases 2.1.2 2.6.0"),
        ("matrix --releases 2.1.2 2.6.0 --golden-in 2.3.1", "2.3.1", "2.6.0"),
        ("golden accept dlrm --reason x", "dlrm", "propos"),
        ("golden propose last", "last", "--out"),
        ("pack --old 2.1.2 --artifacts nowhere", "nowhere", "name"),
    ],
)
def test_a_mistake_gets_one_line_that_names_it_and_says_what_to_do(
    words: str, wrong: str, do: str, project: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    code = main(["--project", str(project), *words.split()])
    said = capsys.readouterr().err.splitlines()[-1]
    assert code == 2, said
    assert said.startswith("error: ")
    what, mark, hint = said.partition("; ")
    assert wrong in said
    assert do in hint if mark else "expected" in what, said
    assert not (project / "reports").exists()
