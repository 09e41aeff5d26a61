"""Commands that the documentation shows: they parse, name sessions that exist, and are what CI runs."""

import argparse
import functools
import re
import shlex
from collections.abc import Sequence
from pathlib import Path

import pytest

from harness.cli.parser import parser
from tests.docs.pages import PAGES, PROJECT, Command, commands, nox_sessions, without_redirection
from tests.docs.running import SESSIONS

# Words in capitals stand for what a reader fills in.
STANDS_FOR = {"CELL_ID": "dlrm/alone", "PID": "4711"}


ours = functools.cache(parser)  # parsing leaves it as it is


def parses(arguments: Sequence[str]) -> None:
    try:
        ours().parse_args([STANDS_FOR.get(word, word) for word in arguments])
    except SystemExit as left:
        if left.code:
            raise


def identifier(command: Command) -> str:
    return f"{command.page}: {command.text}"


@pytest.mark.parametrize("command", commands(), ids=identifier)
def test_every_command_parses(command: Command) -> None:
    words = without_redirection(shlex.split(command.text))
    if words[0] == "pytest":  # which parses it where it is executed
        return
    if words[0] == "torchscript-gate":
        parses(words[1:])
        return
    if words[1:3] == ("-m", "harness"):
        if words[3:]:
            parses(words[3:])
        return
    session = re.sub(r"\(.*", "", words[words.index("-s") + 1])
    assert session in nox_sessions()
    after = words[words.index("--") + 1 :] if "--" in words else ()
    if session in SESSIONS:
        parses([SESSIONS[session], *after])


def test_commands_are_found_in_each_place_where_readers_look() -> None:
    pages = {command.page for command in commands()}
    assert {"README.md", "CONTRIBUTING.md", "golden/README.md", "docs/guide/before-an-upgrade.md"} <= pages
    assert "docs/guide/in-ci.md" in pages


def test_an_unknown_option_would_fail() -> None:
    with pytest.raises(SystemExit):
        parses(["compat", "--no-such-option"])


def test_the_readme_gives_the_test_command_that_ci_runs() -> None:
    script = (PROJECT / ".ci" / "run").read_text(encoding="utf-8")
    (command,) = [line for line in script.splitlines() if "noxfile.py" in line]
    assert command in [found.text for found in commands() if found.page == "README.md"]


def test_the_workflow_runs_what_ci_runs() -> None:
    workflow: Path = PROJECT / ".github" / "workflows" / "tests.yml"
    assert re.search(r"run: \.ci/run$", workflow.read_text(encoding="utf-8"), re.MULTILINE)


def test_every_option_of_compat_has_a_row() -> None:
    page = (PROJECT / "docs" / "guide" / "getting-started.md").read_text(encoding="utf-8")
    rows = "\n".join(re.findall(r"^\| ([^|]*`-[^|]*) \|", page, re.MULTILINE))
    assert _options(rows) == _options(_help("compat")) - {"-h", "--help"}


def test_every_command_and_option_is_shown_somewhere() -> None:
    text = "\n".join(page.read_text(encoding="utf-8") for page in PAGES)
    verbs = set(_verbs(ours()))
    assert not [verb for verb in verbs if f"python -m harness {verb}" not in text]
    options = set().union(*(_options(_help(verb)) for verb in verbs))
    assert not options - _options(text) - {"-h"}


def _options(text: str) -> set[str]:
    return set(re.findall(r"(?<![\w-])--?[a-z][a-z-]*", text.replace("python -m", "")))


def _verbs(top: argparse.ArgumentParser) -> dict[str, argparse.ArgumentParser]:
    (verbs,) = [action.choices for action in top._actions if isinstance(action, argparse._SubParsersAction)]
    return dict(verbs)


def _help(verb: str) -> str:
    """Return the help of a command and of the actions below it."""
    one = _verbs(ours())[verb]
    below = [action for action in one._actions if isinstance(action, argparse._SubParsersAction)]
    parts = [part for action in below for part in action.choices.values()]
    return "\n".join(part.format_help() for part in (one, *parts))
