"""No command of a page is left unexecuted without a reason."""

import ast
import re

import pytest

from tests.docs.pages import PROJECT, commands
from tests.docs.running import LEFT_OUT, SESSIONS, Speed, way_of, ways

HANDED = r"""_harness\(session, ['"]([a-z-]+)['"]\)"""


def test_every_command_is_executed_or_left_out_with_a_reason() -> None:
    planned = ways()
    assert {way.command for way in planned} == {command.text for command in commands()}
    for way in planned:
        assert bool(way.reason) == (way.speed is Speed.LEFT_OUT)
        assert bool(way.expected) == (way.speed is not Speed.LEFT_OUT)


@pytest.mark.parametrize("pattern", LEFT_OUT)
def test_every_reason_is_still_needed(pattern: str) -> None:
    assert [command.text for command in commands() if re.fullmatch(pattern, command.text)]


def test_a_reason_that_names_a_test_names_one_that_exists() -> None:
    there = {path.name for path in (PROJECT / "tests").rglob("test_*.py")}
    named = set(re.findall(r"test_\w+\.py", " ".join(LEFT_OUT.values())))
    assert named
    assert named <= there


def test_most_commands_are_executed() -> None:
    speeds = [way.speed for way in ways()]
    assert speeds.count(Speed.QUICK) >= 30
    assert speeds.count(Speed.SLOW) >= 30


@pytest.mark.parametrize(
    ("text", "speed", "expected"),
    [
        ("python -m harness compat --help", Speed.QUICK, {0}),
        ("nox -s compat -- --list", Speed.QUICK, {0}),
        ("nox -s doctor -- 2.1.2", Speed.QUICK, {0, 3}),
        ("nox -s compat -- --no-such-option", Speed.SLOW, {0, 1, 4}),
        ("python -m harness --project x report last", Speed.QUICK, {1}),
        ("python -m harness golden diff --format html > golden.html", Speed.QUICK, {0}),
        ("torchscript-gate compat --list", Speed.QUICK, {0}),
        ("pytest --torchscript-compat=last", Speed.QUICK, {0, 1}),
        ("pytest --torchscript-compat=models/ -n auto", Speed.SLOW, {0, 1}),
        ("nox -s gpu", Speed.LEFT_OUT, set()),
    ],
)
def test_verb_and_options_decide(text: str, speed: Speed, expected: set[int]) -> None:
    way = way_of(text)
    assert way.speed is speed
    assert set(way.expected) == expected


def test_sessions_hand_everything_over_to_their_verb() -> None:
    """So a session is executed as its verb is."""
    tree = ast.parse((PROJECT / "noxfile.py").read_text(encoding="utf-8"))
    bodies = {node.name: ast.unparse(node) for node in tree.body if isinstance(node, ast.FunctionDef)}
    handed = {name: found[1] for name, body in bodies.items() if (found := re.search(HANDED, body))}
    assert handed == SESSIONS
    assert "*session.posargs" in bodies["_harness"]


def test_a_session_that_nobody_knows_how_to_execute_is_refused() -> None:
    with pytest.raises(KeyError):
        way_of("nox -s unheard_of")
