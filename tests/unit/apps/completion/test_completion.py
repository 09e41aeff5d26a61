"""The script of each shell knows every verb and option, and the shell itself takes it."""

import argparse
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from harness.apps.completion.command import SCRIPT, SHELLS, render_completion
from harness.cli.parser import parser


def verbs(top: argparse.ArgumentParser) -> Iterator[tuple[str, argparse.ArgumentParser]]:
    for action in top._actions:
        if isinstance(action, argparse._SubParsersAction):
            yield from action.choices.items()


@pytest.mark.parametrize("shell", SHELLS)
def test_every_verb_and_option_is_completed(shell: str) -> None:
    text = render_completion(parser(SCRIPT), shell)
    for name, verb in verbs(parser(SCRIPT)):
        assert name in text
        options = [option for action in verb._actions for option in action.option_strings if option.startswith("--")]
        assert not [option for option in options if option.removeprefix("--") not in text]


@pytest.mark.parametrize("shell", SHELLS)
def test_it_is_the_same_each_time(shell: str) -> None:
    assert render_completion(parser(SCRIPT), shell) == render_completion(parser(SCRIPT), shell)


@pytest.mark.parametrize("shell", SHELLS)
def test_the_shell_reads_it(shell: str, tmp_path: Path) -> None:
    program = shutil.which(shell)
    if program is None:
        pytest.skip(f"no {shell} here")
    path = tmp_path / "script"
    path.write_text(render_completion(parser(SCRIPT), shell))
    done = subprocess.run([program, "-n", str(path)], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.parametrize(
    ("words", "offered"),
    [
        (("co",), {"compat", "compile-check", "completion"}),
        (("compat", "--lat"), {"--latency"}),
        (("compat", "--latency", ""), {"off", "quick", "thorough"}),
        (("report", "2026"), {"2026-01-01-run"}),
        (("report", "la"), {"last"}),
        (("bisect", "--artifact", "ran"), {"ranker.pt"}),
        (("compat", "--out", "rep"), {"reports"}),
    ],
)
def test_bash_offers_what_may_follow(words: tuple[str, ...], offered: set[str], tmp_path: Path) -> None:
    (tmp_path / "reports" / "2026-01-01-run").mkdir(parents=True)
    (tmp_path / "ranker.pt").touch()
    typed = " ".join(f"'{word}'" for word in ("torchscript-gate", *words))
    asked = (
        f"COMP_WORDS=({typed}); COMP_CWORD={len(words)}; _shtab_torchscript_gate; printf '%s\\n' \"${{COMPREPLY[@]}}\""
    )
    script = f"{render_completion(parser(SCRIPT), 'bash')}\n{asked}"
    done = subprocess.run(["bash", "-c", script], cwd=tmp_path, capture_output=True, text=True, check=True)
    assert set(done.stdout.split()) == offered
