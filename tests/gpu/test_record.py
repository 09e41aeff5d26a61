"""A GPU record rehearsed on the CPU: whole, cut off by its time or by Ctrl-C, gone on with, and refused."""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from harness.core.environment import Environment
from harness.environments.builder import default_environment_root
from tests.gpu.parts import PARTS
from tests.gpu.record import main
from tests.accelerator.build import build
from tests.integration.gate import PROJECT
from tests.programs import cli, stub
from tests.programs.cli import Line

FAKEDEV = ("streams", "events", "memory", "graphs", "contexts")


@pytest.fixture
def line(tmp_path: Path, stub_environment: Environment, other_stub_environment: Environment) -> Line:
    project = tmp_path / "project"
    project.mkdir()
    return Line(project, stub_environment.interpreter, other_stub_environment.interpreter)


def start(line: Line, *more: str, given: Sequence[str] | None = None) -> "subprocess.Popen[str]":
    sides = ("--env", f"old={line.old}", "--env", f"new={line.new}", "--old", "old", "--new", "new")
    if given is None:
        given = (*sides, "--device", "cpu", "--jobs", "2", *line.models, "-k", "well_a")
    return cli.started([sys.executable, "-m", "tests.gpu.record", "--project", str(line.project), *given, *more])


def read(line: Line) -> tuple[dict[str, Any], str]:
    """Return the only record: its JSON, and its markdown."""
    (path,) = (line.project / "docs" / "gpu").glob("RECORD-*.json")
    record: dict[str, Any] = json.loads(path.read_bytes())
    return record, path.with_suffix(".md").read_text()


@pytest.mark.slow
def test_time_that_is_over_ends_the_part_and_leaves_a_record_of_it(line: Line) -> None:
    done = cli.finish(start(line, "--minutes", "0.04"), within_s=60.0)
    assert done.returncode == 4, done.stderr
    record, text = read(line)
    models, timing, scenarios = [part["why"] for part in record["parts"]]
    assert models.endswith("the 0.04 min were over")
    assert (timing, scenarios) == ("not begun: models has not ended", "not begun: the 0.04 min were over")
    assert f"models did not come to its end: {models}" in text
    assert text == done.stdout
    assert stub.eventually(lambda: not stub.processes_naming(line.project))
    done = cli.finish(start(line, "--resume", "last", "-k", "well_b"), within_s=60.0)
    assert done.returncode == 2
    assert "which was given: " in done.stderr and "leave options out" in done.stderr


@pytest.mark.slow
def test_resume_goes_on_to_a_whole_rehearsal_which_is_never_green(line: Line) -> None:
    cli.finish(start(line, "--minutes", "0.08"), within_s=60.0)
    (cut,) = (line.project / "reports").glob("*/models/*/plan.json")
    done = cli.finish(start(line, given=("--resume", "last")))
    assert done.returncode == 4, done.stderr
    record, text = read(line)
    assert [part["name"] for part in record["parts"] if not part["why"]] == ["models", "timing", "scenarios"]
    models, _, scenarios = record["parts"]
    assert cut.parent.name == Path(models["run"]).name
    assert models["models"] == {"PASS": 1}
    assert models["processes"]["completed"] > 0
    assert set(scenarios["cells"]) >= {"alone", "concurrent"}
    assert record["new"]["fingerprint"]["torch"] == "2.6.0"
    assert text.startswith("# Rehearsal of a GPU record, without a GPU: ")


def test_ctrl_c_keeps_what_is_there_and_still_writes_the_record(line: Line) -> None:
    process = start(line)
    assert stub.eventually(lambda: "zygote" in str(stub.processes_naming(line.reports)))
    os.kill(process.pid, signal.SIGINT)
    done = cli.finish(process, within_s=60.0)
    assert done.returncode == 130
    assert done.stderr.splitlines()[-1] == "interrupted"
    record, text = read(line)
    assert [part["why"] for part in record["parts"]] == ["interrupted", "not begun", "not begun"]
    assert "models did not come to its end: interrupted" in text
    assert stub.eventually(lambda: not stub.processes_naming(line.project))


def test_missing_interpreter_is_named_and_leaves_no_record(line: Line) -> None:
    done = cli.finish(start(Line(line.project, line.old, "/nowhere/python", line.models)), within_s=60.0)
    assert done.returncode == 3
    (said,) = [text for text in done.stderr.splitlines() if text.startswith("error: ")]
    assert "/nowhere/python does not exist" in said
    assert [path.name for path in line.project.rglob("*") if path.is_file()] in ([], [".gitignore"])


def test_without_a_record_there_is_nothing_to_go_on_with(line: Line) -> None:
    done = cli.finish(start(line, given=("--resume", "last")), within_s=60.0)
    assert done.returncode == 2
    assert "there is no GPU record 'last'" in done.stderr


@pytest.mark.integration
@pytest.mark.slow
def test_one_torch_on_both_sides_judges_no_upgrade(line: Line, new_python: str) -> None:
    sides = ("--env", f"old={new_python}", "--env", f"new={new_python}")
    given = (*sides, "--device", "cpu", "--fixtures", "zoo", "-k", "dlrm and served")
    done = cli.finish(start(line, "--minutes", "4", given=given), within_s=280.0)  # its scenarios take longer
    assert done.returncode == 4, done.stderr
    record, text = read(line)
    models, timing, _ = record["parts"]
    assert timing["timed"]["load"] == 1
    assert models["missed"] == []
    assert "No upgrade was judged: both sides are torch 2.6.0" in text


@pytest.mark.integration
@pytest.mark.slow
def test_record_is_rehearsed_whole_on_a_device_from_an_unpacked_tree_without_network(
    old_python: str, new_python: str, tmp_path: Path
) -> None:
    tree = tmp_path / "tree"
    tree.mkdir()
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=PROJECT, capture_output=True, check=True).stdout
    subprocess.run(
        ["tar", "--null", "-T", "-", "-c", "-f", tree.with_suffix(".tar")], cwd=PROJECT, input=listed, check=True
    )
    subprocess.run(["tar", "-x", "-f", tree.with_suffix(".tar"), "-C", tree], check=True)
    sides = {"old": old_python, "new": new_python}
    native = default_environment_root() / "native"
    libraries = {side: build(python, native) / "fakedev.py" for side, python in sides.items()}
    given = (
        *(word for side, python in sides.items() for word in ("--env", f"{side}={python}")),
        *(word for side, library in libraries.items() for word in ("--library", f"{side}={library}")),
        *(word for name in FAKEDEV for word in ("--set", f"devices.fakedev.{name}=true")),
        # Few models: the fake device computes on the CPU, and every scenario does all of them many times over.
        *("--device", "fakedev", "--minutes", "10", "-k", "two_tower"),
    )
    alone = ("unshare", "--net") if os.geteuid() == 0 else ()
    env = {**os.environ, "PIP_NO_INDEX": "1", "UV_OFFLINE": "1"}
    line = [*alone, sys.executable, "-m", "tests.gpu.record", *given]
    done = subprocess.run(line, cwd=tree, env=env, capture_output=True, text=True, timeout=700)
    (path,) = (tree / "docs" / "gpu").glob("RECORD-*.json")
    record = json.loads(path.read_bytes())
    assert [(part["name"], part["why"]) for part in record["parts"]] == [(part.name, "") for part in PARTS], done.stderr
    models, _, scenarios = record["parts"]
    assert (models["missed"], scenarios["missed"]) == ([], [])
    assert "cuda_graphs" in models["cells"] and "cuda_graphs" in scenarios["cells"]
    assert done.stdout.startswith("# Rehearsal of a GPU record, without a GPU: ")
    assert "- given: `" in done.stdout and "-k two_tower" in done.stdout


def test_device_that_nobody_knows_is_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "pyproject.toml").write_text('[tool.compat]\nold = "2.1.2"\nnew = "2.6.0"\n')
    assert main(["--project", str(tmp_path), "--device", "nothing"]) == 2
    assert 'got "nothing"' in capsys.readouterr().err
    assert not (tmp_path / "docs").exists()
