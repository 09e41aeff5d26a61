"""What bad input gets: one line that says what and what to do, the right exit code, no traceback."""

import os
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from harness.cli.entry import REQUIRED
from harness.cli.parser import commands, parser
from harness.cli import main
from harness.apps.upgrade.plan import make_plan
from harness.project import Project
from harness.core.plan import Plan
from harness.environments.interpreters import find_pythons, verified_python
from harness.core.errors import ConfigError, EnvironmentUnavailable

PROJECT = Path(__file__).resolve().parents[3]


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A project of its own with the real fixtures."""
    (tmp_path / "pyproject.toml").write_text((PROJECT / "pyproject.toml").read_text())
    (tmp_path / "fixtures").symlink_to(PROJECT / "fixtures")
    return tmp_path


def _fails(capsys: pytest.CaptureFixture[str], code: int, *arguments: str) -> str:
    assert main(arguments) == code
    captured = capsys.readouterr()
    assert captured.err.startswith("error: ")
    assert captured.err.count("\n") == 1, captured.err
    assert "Traceback" not in captured.err
    return captured.err


CONFIG = "pyproject.toml"
BAD_INPUT: list[tuple[dict[str, str], str, tuple[str, ...]]] = [
    ({}, "-k drlm", ("drlm", "dlrm", "--list")),
    ({}, "--new 2.six", ("2.six",)),
    ({}, "--fixtures nowhere", ("nowhere",)),
    ({}, "--old 2.6.0 --new 2.6.0", ("same torch",)),
    ({}, "--env ood=/usr/bin/python3", ("ood",)),
    ({}, "--resume yesterday", ("yesterday",)),
    ({}, "--golden", ("golden propose",)),
    ({"mine/broken.py": "import torch\n\ndef oops(:\n"}, "--fixtures mine", ("broken.py:3",)),
    ({"golden/waivers.toml": 'reason = "gr\u00fcn"\n'}, "-k din", ("waivers.toml", "UTF-8")),
    ({"file": ""}, "--out file/runs", ("file", "--out")),
    ({CONFIG: "[tool.compat\n"}, "", ("not valid TOML",)),
    ({CONFIG: "tool = 3\n"}, "", ("pyproject.toml: tool.compat: expected a table, got 3", "[tool.compat]")),
    ({CONFIG: "[tool]\ncompat = 3\n"}, "", ("pyproject.toml: tool.compat: expected a table, got 3",)),
    ({CONFIG: "[tool.compat.latency]\nbudgett = 1\n"}, "", ("pyproject.toml: tool.compat.latency.budgett", "budget")),
]


@pytest.mark.parametrize(("files", "words", "parts"), BAD_INPUT)
def test_bad_input_is_named_before_anything_is_built(
    project: Path,
    files: dict[str, str],
    words: str,
    parts: tuple[str, ...],
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(project)
    for name, text in files.items():
        (project / name).parent.mkdir(exist_ok=True)
        (project / name).write_bytes(text.encode("latin-1"))
    said = _fails(capsys, 2, "compat", *words.split())
    assert [part for part in parts if part not in said] == []
    assert not list((project / "reports").glob("2*")) and not (project / ".nox").exists()


@pytest.mark.skipif(os.path.exists("/dev/nvidiactl"), reason="this machine has a GPU")
def test_asking_for_a_gpu_where_there_is_none_is_never_green(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    said = _fails(capsys, 3, "--project", str(project), "compat", "--device", "cuda")
    assert "GPU" in said


def test_the_list_shows_every_model_without_an_environment(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--project", str(project), "compat", "--list"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) >= 24
    assert any(line.startswith("dlrm ") and "fixtures/zoo/recommendation.py:" in line for line in lines)
    assert not (project / ".nox").exists()


@pytest.mark.parametrize(
    ("typed", "meant"),
    [
        ("compta", "did you mean compat?"),
        ("compat --scenarios alone", "did you mean --scenario?"),
        ("compat --scenario aloen", "did you mean alone?"),
        ("report last --format=markdwon", "did you mean markdown?"),
        ("golden propose last --outt=x", "did you mean --out?"),
        ("", "see python -m harness --help"),
        ("help", "see python -m harness --help"),
        ("golden", "see python -m harness golden --help"),
    ],
)
def test_a_mistyped_word_names_the_one_that_was_meant(
    typed: str, meant: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as left:
        main(typed.split())
    assert left.value.code == 2
    assert capsys.readouterr().err.endswith(f"; {meant}\n")


def test_every_verb_of_the_parser_leads_to_a_function() -> None:
    choices = next(action.choices for action in parser()._actions if action.dest == "verb")
    assert choices is not None and list(choices) == list(commands())
    for name in choices:
        assert callable(commands()[name].call)


def test_help_waits_for_nothing_that_only_a_run_needs() -> None:
    code = (
        "import contextlib, sys, harness.cli\n"
        "with contextlib.suppress(SystemExit): harness.cli.main(['compat', '--help'])\n"
        "print(sorted({'numpy', 'msgspec', 'jinja2', 'tabulate', 'harness.apps.upgrade.pipeline'} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, cwd=PROJECT)
    assert done.stdout.splitlines()[-1] == "[]", done.stderr


def test_our_own_bug_is_called_ours(
    project: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def explode(*_arguments: object) -> None:
        raise ZeroDivisionError("planted")

    monkeypatch.setattr("harness.apps.upgrade.execute.make_plan", explode)
    assert main(["--project", str(project), "compat"]) == 5
    said = capsys.readouterr().err
    assert "bug of the harness" in said
    kept = Path(said.partition("report it with ")[2].strip())
    assert "planted" in kept.read_text()
    kept.unlink()


def test_a_python_without_the_gates_dependencies_is_named_with_what_to_install(tmp_path: Path) -> None:
    bare = [sys.executable, "-S", "-m", "harness", "env", "2.6.0"]  # -S: no site-packages
    done = subprocess.run(bare, capture_output=True, text=True, timeout=60, cwd=PROJECT, check=False)
    assert (done.returncode, done.stdout) == (3, "")
    assert len(done.stderr.splitlines()) == 1
    assert re.search(r" has no \w+, which the gate needs: ", done.stderr)
    pyproject = tomllib.loads((PROJECT / "pyproject.toml").read_text())
    names = [re.split(r"[^\w-]", item)[0].replace("-", "_") for item in pyproject["project"]["dependencies"]]
    modules = {"pyelftools": "elftools"}
    assert sorted(modules.get(name, name) for name in names) == sorted(REQUIRED)


def test_a_golden_folder_that_does_not_exist_is_named(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert "nodir" in _fails(capsys, 2, "--project", str(project), "compat", "--golden", "nodir")


def test_a_project_that_does_not_exist_is_named(capsys: pytest.CaptureFixture[str]) -> None:
    assert "/nowhere" in _fails(capsys, 2, "--project", "/nowhere", "compat")


def test_a_wrong_deadline_names_the_option_that_was_typed(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert "--deadline:" in _fails(capsys, 2, "--project", str(project), "compat", "--deadline", "x")


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("--scenario", "inter_op", "--runtime", "python"), ("inter_op", "C++ worker", "leave it out")),
        (("--scenario", "cuda_graphs", "--device", "cpu"), ("cuda_graphs", "GPU")),
        (("--init-rounds", "0"), ("--init-rounds", "whole number >= 1")),
        (("--init-threads", "1"), ("--init-threads", "whole number >= 2")),
    ],
)
def test_an_initialization_that_cannot_be_done_is_refused_before_anything_is_built(
    project: Path, capsys: pytest.CaptureFixture[str], arguments: tuple[str, ...], words: tuple[str, ...]
) -> None:
    said = _fails(capsys, 2, "--project", str(project), "compat", "-k", "din", *arguments)
    assert all(word in said for word in words), said
    assert not (project / "reports").exists()


@pytest.mark.parametrize(
    ("option", "wrong"), [("--scenario", "together"), ("--runtime", "cpp"), ("--capture-mode", "strict")]
)
def test_an_unknown_choice_names_the_choices(capsys: pytest.CaptureFixture[str], option: str, wrong: str) -> None:
    with pytest.raises(SystemExit) as left:
        main(["compat", option, wrong])
    assert left.value.code == 2
    said = capsys.readouterr().err
    assert wrong in said and "choose from" in said


def test_options_of_initialization_reach_the_plan(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    plans: list[Plan] = []

    def remember(options: Project) -> Plan:
        plans.append(make_plan(options))
        raise ConfigError("planned", "that is all")

    monkeypatch.setattr("harness.apps.upgrade.execute.make_plan", remember)
    typed = "--scenario all --runtime python --init-rounds 50 --init-threads 6 --device cpu"
    captures = "--capture-mode relaxed --capture-warm-calls 0"
    assert main(["--project", str(project), "compat", "-k", "din", *typed.split(), *captures.split()]) == 2
    (plan,) = plans
    settings = plan.settings
    assert (settings.runtime, settings.init_rounds, settings.init_threads) == ("python", 50, 6)
    assert (settings.capture_mode, settings.capture_warm_calls) == ("relaxed", 0)
    assert {"sequential", "shared", "reinit", "processes"} <= set(plan.scenarios)
    assert not {"inter_op", "small_pools", "cuda_graphs"} & set(plan.scenarios)


def test_no_name_steers_the_terminal(project: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "models.toml").write_text('[[models]]\npath = "a.pt"\n"\x9b31m\u202eevil" = 1\n', encoding="utf-8")
    said = _fails(capsys, 2, "--project", str(project), "compat", "--artifacts", str(tmp_path))
    assert said.rstrip("\n").isprintable()
    assert r'"\x9b31m\u202eevil": unknown key' in said


@pytest.mark.parametrize("flags", [[], ["-P"]])
def test_what_lies_in_the_working_directory_is_not_imported(tmp_path: Path, flags: list[str]) -> None:
    for name in ("msgspec", "shutil", "tomllib"):
        (tmp_path / f"{name}.py").write_text("open('was_run', 'w')")
    command = [sys.executable, *flags, "-m", "harness", "--help"]
    done = subprocess.run(command, cwd=tmp_path, env={"PYTHONPATH": str(PROJECT)}, capture_output=True, timeout=60)
    assert done.returncode == 0
    assert b"compat" in done.stdout
    assert not (tmp_path / "was_run").exists()


@pytest.mark.parametrize("started", [("-m", "harness", "--help"), ("noxfile.py", "-s", "compat")])
@pytest.mark.parametrize("minor", ["3.8", "3.9", "3.10"])
def test_a_python_that_is_too_old_is_reported_what_is_needed(minor: str, started: tuple[str, ...]) -> None:
    """The workers' code is for these Pythons, the controller's is not."""
    try:
        python = verified_python(minor, find_pythons())
    except EnvironmentUnavailable as error:
        pytest.skip(f"no Python {minor} here: {error}")
    done = subprocess.run([python, "-B", *started], cwd=PROJECT, env={}, capture_output=True, text=True, timeout=60)
    assert done.returncode == 2
    assert done.stderr.startswith(f"error: the gate needs Python 3.11 or later, and this is {minor}.")
    assert done.stderr.count("\n") == 1


def test_a_clone_is_run_from_its_root() -> None:
    command = [sys.executable, "-m", "harness", "--help"]
    done = subprocess.run(command, cwd=PROJECT, env={}, capture_output=True, timeout=60)
    assert done.returncode == 0, done.stderr
