"""Every command that any format of a finished run prints: it runs as printed, from any folder, whatever ``python`` is."""

import argparse
import ast
import os
import re
import shlex
import subprocess
import sys
from collections.abc import Iterable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from harness.cli.parser import commands as known_commands
from harness.cli.parser import parser
from harness.config.command_words import from_anywhere
from harness.config.command_words import kept as kept_options
from harness.verdict.causes import with_causes
from harness.verdict.commands import at_home
from harness.core.migration import RunMigration
from harness.core.report import RunReport
from harness.report.formats import RUN, Shown
from harness.report.json.report import dump_report
from harness.apps.report.files import Finished, read_report, shown_run
from harness.apps.gate.gate import gate
from harness.project import Project, own_command
from harness.report.document import Block, Fact, Part
from tests.unit.builders import documents, reports
from tests.unit.builders.printed import check, commands_in

CHECKOUT = Path(__file__).resolve().parents[3]
BARE = "python -m harness"
MADE_AS = "/elsewhere/bin/python /elsewhere/harness --project /elsewhere"


@pytest.fixture
def project(tmp_path: Path) -> Path:
    folder = tmp_path / "our project"
    folder.mkdir()
    return folder


def made_elsewhere(name: str) -> RunReport:
    """A report as the machine of a job has written it: its paths are not here."""
    report = replace(reports.REPORTS[name](), program=MADE_AS, folder="/elsewhere/reports/r")
    rerun = {
        cell: f"{MADE_AS} rerun /elsewhere/reports/r {shlex.quote(cell)} --latency thorough" for cell in report.rerun
    }
    back, migration = report.rollback, report.migration
    if back is not None:
        models = tuple(replace(item, command=f"{MADE_AS} compat -k x" if item.command else "") for item in back.models)
        back = replace(back, models=models)
    if migration is not None and migration.command:
        migration = RunMigration(**{**_fields(migration), "command": f"{MADE_AS} migrate --old 2.1.2 --new 2.6.0"})
    return with_causes(replace(report, rerun=rerun, rollback=back, migration=migration))


def _fields(item: RunMigration) -> dict[str, Any]:
    return {name: getattr(item, name) for name in item.__slots__}


def kept(project: Path, name: str) -> Path:
    folder = project / "reports" / "2026-01-02T03-04-05-a-to-b"
    folder.mkdir(parents=True)
    (folder / "report.json").write_bytes(dump_report(made_elsewhere(name)))
    return folder


@pytest.mark.parametrize("name", ["blocked", "mitigated", "inconclusive", "since", "upgrade_ok", "golden", "migrating"])
def test_every_command_of_every_format_runs_from_any_folder(
    project: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    if name not in reports.REPORTS:
        pytest.skip(f"there is no such report: {name}")
    folder = kept(project, name)
    finished = read_report(Project(folder=project), str(folder))
    begin = own_command(project)
    monkeypatch.chdir("/")
    seen, checked = set(), set[str]()
    forms = [(form, Shown(directory="elsewhere")) for form in RUN.names]
    forms += [("console", Shown(directory="elsewhere", every_row=True))]
    for form, shown in forms:
        if form == "trace":
            continue  # which is of a run's events, and names no command
        text = RUN.render(form, shown_run(finished), shown)
        assert BARE not in text and MADE_AS not in text, form
        printed = set(commands_in(form, text, begin))
        for command in printed - checked:
            check(command, begin)
        checked |= printed
        seen |= {form} if printed else set()
    if name == "blocked":
        assert seen >= {"console", "markdown", "html", "junit", "ctrf", "csv", "json", "github"}


def _command_facts(blocks: Iterable[Block]) -> Iterator[Fact]:
    for block in blocks:
        if isinstance(block, Part):
            yield from _command_facts(block.blocks)
        elif isinstance(block, Fact) and block.form == "command":
            yield block


def test_what_a_document_gives_to_copy_as_a_command_parses() -> None:
    parsed = set()
    for made in documents.PLAIN.values():
        for fact in _command_facts([*made().parts, *made().screen]):
            if fact.label not in ("Python", "C++", "Triton", "TorchServe"):  # lines to paste into files
                words = shlex.split(fact.text.partition(" > ")[0])  # the shell takes the rest
                assert words[:3] == BARE.split(), fact
                parser("gate", typed=words[3:]).parse_args(words[3:])
                parsed.add(words[3])
    assert parsed >= {"attach", "bisect", "compat", "fleet", "inspect", "migrate", "report", "rerun"}


# Options of other programs that the gate starts, or names in advice.
OTHERS = {
    "docker": {"--cap-add", "--cpuset-cpus", "--gpus", "--pids-limit"},
    "nvidia-smi": {"--compute-mode", "--gpu-reset", "--id", "--lock-gpu-clocks", "--query-compute-apps", "--query-gpu"},
    "slurm, ray": {"--array", "--exclusive", "--head", "--job-name", "--requeue", "--time"},
    "debuggers": {"--json", "--native", "--native-all", "--no-block", "--no-color", "--nonblocking"},
    "dcgmi": {"--pause"},
    "uv, pip, venv": {
        *("--disable-pip-version-check", "--no-annotate", "--no-compile", "--no-deps", "--no-header", "--no-progress"),
        *("--no-project", "--offline", "--only-binary", "--pre", "--progress-bar", "--python-version", "--target"),
        *("--extra-index-url", "--find-links", "--index-url", "--no-index", "--show-settings", "--without-pip"),
    },
    "linkers": {"--as-needed", "--copy-dt-needed-entries", "--dynamic-list", "--exclude-libs", "--no-as-needed"},
    "patchelf": {"--force-rpath", "--set-rpath"},
    "torch-model-archiver": {"--archive-format"},
    "nvidia-ctk": {"--create-all"},
    "pytest": {"--collect-only", "--torchscript-compat", "--torchscript-compat-options"},
    "reproducers": {"--preload", "--runs", "--switch"},
}


def _options() -> dict[str, set[str]]:
    """Return the options of each command, those of what it consists of too."""
    found: dict[str, set[str]] = {}

    def read(name: str, one: argparse.ArgumentParser) -> None:
        for action in one._actions:
            found.setdefault(name, set()).update(action.option_strings)
            if isinstance(action, argparse._SubParsersAction):
                for inner, its in action.choices.items():
                    read(name or inner, its)

    for typed in known_commands():
        read("", parser("gate", typed=[typed]))
    return found


def _sentences(file: Path) -> Iterator[str]:
    """Yield the texts of a module; what is filled in is ``{}``."""
    tree = ast.parse(file.read_text(encoding="utf-8"))
    inside = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.JoinedStr):
            inside |= {id(part) for part in node.values}
            yield "".join(str(part.value) if isinstance(part, ast.Constant) else "{}" for part in node.values)
        elif isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in inside:
            yield node.value


def unknown_options(sentences: Iterable[str]) -> set[str]:
    """Return the options in texts that neither the gate nor another program has."""
    options = _options()
    some = set().union(*options.values(), *OTHERS.values())
    found = {option for text in sentences for option in re.findall(r"(?<![\w-])--[a-z][a-z-]+", text)} - some
    advised = re.compile(
        rf"(?<![\w./-])({'|'.join(filter(None, options))})(?: (?:RUN|last|\{{\}}|[a-z]+))? (--[a-z][a-z-]+)"
    )
    pairs = {(found[1], found[2]) for text in sentences for found in advised.finditer(text)}
    return found | {f"{command} {option}" for command, option in pairs if option not in options[command]}


def test_no_text_names_an_option_that_nothing_has() -> None:
    every = (file for file in (CHECKOUT / "harness").rglob("*.py") if "worker" not in file.parts)
    files = [file for file in every if file.name != "command.py"]  # argparse knows those, and examples are parsed
    assert unknown_options([text for file in files for text in _sentences(file)]) == set()
    planted = ["go on with --resum last", "report {} --until correctness", "report last --verbose, or --device cpu"]
    assert unknown_options(planted) == {"--resum", "report --until"}


def test_a_run_judged_again_names_its_policy_and_its_folder_from_anywhere(
    project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = kept(project, "blocked")
    monkeypatch.chdir(project)
    (project / "policy.toml").write_text('[severity]\nhang = "info"\n')
    judged = gate(Project(folder=project, policy_file="policy.toml"), str(folder)).report
    found = [command for cause in judged.causes for _, command in cause.commands]
    assert found
    monkeypatch.chdir("/")
    for command in [*found, *judged.rerun.values()]:
        check(command, own_command(project))
        assert "bisect" in command or "waivers add" in command or f"'{project / 'policy.toml'}'" in command


def test_a_report_of_an_older_harness_gets_commands_that_run_here() -> None:
    older = reports.blocked()
    here = at_home(older, program="/p/python /p/harness --project /p", folder="/p/reports/r")
    assert set(here.rerun) == set(older.rerun)
    assert all(
        command.startswith("/p/python /p/harness --project /p rerun /p/reports/r ") for command in here.rerun.values()
    )


@pytest.mark.parametrize("where", ["/", "elsewhere"])
def test_the_program_runs_from_any_folder_without_any_python_on_the_path(
    project: Path, tmp_path: Path, where: str
) -> None:
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "elsewhere" / "harness.py").write_text("raise SystemExit('what lies here is not the program')\n")
    command = own_command(project, "gate", "--help")
    environment = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}
    done = subprocess.run(
        ["/bin/sh", "-c", command],
        cwd=tmp_path / where,
        env={**environment, "PATH": "/nowhere"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith("usage: ")


def test_a_console_script_is_named_by_its_path(project: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    script = tmp_path / "torchscript-gate"
    script.touch()
    monkeypatch.setattr(sys, "argv", [str(script)])
    assert own_command(project, "gate") == shlex.join([str(script), "--project", str(project), "gate"])


@pytest.mark.parametrize(("ci", "stands_in", "moves"), [("true", "", True), ("true", "..", False), ("", "", False)])
def test_a_command_of_a_ci_job_runs_in_a_checkout_and_names_nothing_of_the_runner(
    project: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, ci: str, stands_in: str, moves: bool
) -> None:
    script = tmp_path / "torchscript-gate"
    script.touch()
    monkeypatch.setattr(sys, "argv", [str(script)])
    monkeypatch.setenv("CI", ci)
    monkeypatch.chdir(project / stands_in)
    run = kept(project, "blocked")
    report = read_report(Project(folder=project), str(run)).report
    printed = [*report.rerun.values(), *(command for cause in report.causes for _, command in cause.commands)]
    begin = "torchscript-gate " if moves else f"{shlex.join([str(script), '--project', str(project)])} "
    assert printed and all(command.startswith(begin) for command in printed)
    assert (str(tmp_path) not in " ".join(printed)) is moves
    assert all(f" {run.relative_to(project)} " in command for command in printed) or not moves


def test_one_function_makes_every_command() -> None:
    """What begins a command stands nowhere else; advice names the command without the program that it is of."""
    allowed = {"cli/help.py", "cli/entry.py", "cli/parser.py", "__main__.py"}
    found = {
        str(path.relative_to(CHECKOUT / "harness"))
        for path in (CHECKOUT / "harness").rglob("*.py")
        if re.search(r"-m (harness|\{PACKAGE)|\"-m\", (PACKAGE|\"torchscript_gate\")", path.read_text(encoding="utf-8"))
    }
    # One makes it, two start the gate on other machines.
    rest = {
        "project.py",
        "apps/fleet/engines/jobs.py",
        "apps/fleet/engines/node.py",
    }
    assert found - allowed == rest


def test_a_finished_run_names_where_it_lies(project: Path) -> None:
    finished: Finished = read_report(Project(folder=project), str(kept(project, "blocked")))
    assert finished.report.folder == str(finished.folder) and finished.report.program == own_command(project)


@pytest.mark.parametrize(
    ("name", "value", "anywhere"),
    [
        ("--artifacts", "models/", "/here/models"),
        ("--artifacts", "../m/*.pt", "/m/*.pt"),
        ("--artifact", "/abs/net.pt", "/abs/net.pt"),
        ("--artifacts", "s3://bucket/models", "s3://bucket/models"),
        ("--library", "torchvision", "torchvision"),
        ("--library", "old=./ops.so", "old=/here/ops.so"),
        ("--library", "./a=b/ops.so", "/here/a=b/ops.so"),
        ("--library", "new=/x=y/ops.so", "new=/x=y/ops.so"),
        ("--env", "old=.venv/bin/python", "old=/here/.venv/bin/python"),
        ("--env", "old=python3.11", "old=python3.11"),
        ("--fixtures", "zoo", "zoo"),  # the project's, which commands name
        ("--set", "latency.limit=0.05", "latency.limit=0.05"),
    ],
)
def test_what_an_option_names_is_named_from_anywhere(name: str, value: str, anywhere: str) -> None:
    assert from_anywhere(name, value, "/here") == anywhere
    assert from_anywhere(name, value, "") == value
    assert kept_options(["compat", name, value], (name,), here="/here") == [(name, anywhere)]
