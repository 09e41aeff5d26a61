"""``--help`` teaches: what a verb is for, commands that parse, exit codes, a page; and it fits a terminal."""

import argparse
import re
import shlex
from collections.abc import Iterator

import pytest

from harness.cli.parser import commands as verbs, parser
from harness.core.errors import ExitCode
from tests.docs import commands_page
from tests.docs.pages import PROJECT, commands
from tests.docs.test_commands import STANDS_FOR

PROGRAM = "python -m harness"


def below(one: argparse.ArgumentParser, name: str = "") -> Iterator[tuple[str, argparse.ArgumentParser]]:
    """Yield a parser and all below it, each with its words."""
    yield name, one
    for action in one._actions:
        if isinstance(action, argparse._SubParsersAction):
            for word, part in action.choices.items():
                yield from below(part, f"{name} {word}".strip())


PARSERS = dict(below(parser()))
HELP = {name: command.HELP for name, command in verbs().items()}
EXAMPLES = [
    f"{PROGRAM} {verb} {example}" for verb, command_help in HELP.items() for example, _ in command_help.examples
]


@pytest.fixture(autouse=True)
def terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "80")


def test_every_module_of_a_command_is_a_command_and_the_other_way_round() -> None:
    folders = [path for path in (PROJECT / "harness" / "apps").iterdir() if (path / "__init__.py").exists()]
    assert len(folders) == len(verbs()) == sum((path / "command.py").exists() for path in folders)


@pytest.mark.parametrize("name", PARSERS)
def test_help_fits_80_columns(name: str) -> None:
    assert [line for line in PARSERS[name].format_help().splitlines() if len(line) > 80] == []


@pytest.mark.parametrize("name", PARSERS)
def test_every_option_says_what_it_is_for(name: str) -> None:
    options = [action for action in PARSERS[name]._actions if not isinstance(action, argparse._SubParsersAction)]
    assert [action.dest for action in options if not action.help] == []


@pytest.mark.parametrize("verb", verbs())
def test_help_of_a_verb_has_what_it_is_for_examples_exit_codes_and_a_page_that_exists(verb: str) -> None:
    said = PARSERS[verb].format_help()
    command_help = HELP[verb]
    assert command_help.what in " ".join(said.split())
    assert said.count(f"  {PROGRAM} {verb} ") >= len(command_help.examples) > 0
    named = {int(code) for code in re.findall(r"^ +(\d+)  \w", said.rpartition("exit codes:\n")[2], re.MULTILINE)}
    assert named < set(map(int, ExitCode))
    assert {0, 2, 5, 130} <= named
    assert said.rstrip().endswith(f"more: docs/{command_help.page}")
    assert (PROJECT / "docs" / command_help.page).is_file()


def test_help_of_the_program_tells_every_exit_code_and_how_to_begin() -> None:
    said = PARSERS[""].format_help()
    codes = said.rpartition("exit codes: ")[2]
    assert not [code for code in ExitCode if not re.search(rf"\b{int(code)} ", codes)]
    begin = said.partition("where to begin:\n")[2].partition("\n\n")[0].splitlines()
    assert {line.split()[0] for line in begin} <= set(verbs())


@pytest.mark.parametrize("example", EXAMPLES)
def test_every_example_parses_and_is_shown_on_a_page_where_a_test_executes_it(example: str) -> None:
    words = [STANDS_FOR.get(word, word) for word in shlex.split(example)]
    parser().parse_args(words[3:])
    assert example in [command.text for command in commands()]


def test_the_console_script_shows_its_own_name() -> None:
    own = dict(below(parser("torchscript-gate")))["report"].format_help()
    assert "  torchscript-gate report last\n" in own
    assert PROGRAM not in own


def test_the_page_of_commands_is_what_help_teaches() -> None:
    """``python -m tests.docs.commands_page`` writes it."""
    assert commands_page.PAGE.read_text(encoding="utf-8") == commands_page.text()


@pytest.mark.parametrize("verb", [name for name, command_help in HELP.items() if command_help.often])
def test_help_of_many_options_shows_those_used_often_and_all_of_them_on_request(
    verb: str, capsys: pytest.CaptureFixture[str]
) -> None:
    shown = []
    for more in ([], ["all"]):
        with pytest.raises(SystemExit) as left:
            parser().parse_args([verb, "--help", *more])
        assert left.value.code == 0
        shown.append(capsys.readouterr().out)
    brief, everything = ({*re.findall(r"^  (-{1,2}[\w-]+)", said, re.MULTILINE)} for said in shown)
    assert brief == {"-h", *HELP[verb].often} and len(brief) <= 12
    options = {action.option_strings[0] for action in PARSERS[verb]._actions}
    assert everything == options > brief
    assert [line for line in shown[0].splitlines() if len(line) > 80] == []
    assert f"--help all shows {len(options)}:" in shown[0] and "exit codes:" in shown[0]
