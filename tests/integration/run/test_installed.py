"""The gate as a wheel in an environment of its own: the console script, the pytest plugin, and real checks by it.

A checkout hides what a wheel forgets: worker, native sources, templates, planted defects, the zoo.
"""

import json
import os
import re
import shutil
import signal
import subprocess
import sys
import zipfile
from dataclasses import dataclass
from pathlib import Path

import pytest

from harness.cli import main
from harness.environments.builder import ROOT_VARIABLE, default_environment_root
from harness.environments.installer import find_uv
from tests.integration.gate import PROJECT
from tests.programs import stub

pytestmark = pytest.mark.integration

MADE_BY_OLD = """
import sys, torch
import torch.nn.functional as F

class Scores(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = torch.nn.Linear(4, 3)
    def forward(self, rows):
        return torch.relu(self.layer(rows))

class Enlarged(torch.nn.Module):
    def forward(self, image):
        return F.interpolate(image, size=[20, 16], mode="bicubic").to(torch.float32)

torch.jit.script(Scores().eval()).save(sys.argv[1] + "/scores.pt")
torch.jit.script(Enlarged()).save(sys.argv[1] + "/enlarged.pt")
"""
CONFIGURATION = """
[tool.compat]
old = "2.1.2"
new = "2.6.0"
[tool.compat.policy]
minimum_models = 20
[tool.pytest.ini_options]
addopts = ["--strict-markers", "--strict-config"]
filterwarnings = ["error"]
"""
TESTS = """
import numpy as np
import pytest

def test_scores(torchscript_compat):
    folder = torchscript_compat.check("models/scores.pt", np.ones((2, 4), dtype="float32"))
    assert (folder / "report.html").stat().st_size > 10_000

def test_enlarged(torchscript_compat):
    image = (np.arange(192) * 37 % 256).astype("uint8").reshape(1, 3, 8, 8)
    torchscript_compat.check("models/enlarged.pt", image, old="2.1.2", new="2.6.0")

def test_absent(torchscript_compat):
    with pytest.raises(Exception, match="absent.pt") as caught:
        torchscript_compat.check("models/absent.pt")
    assert type(caught.value).__name__ == "CannotCheck"
"""
SHIPPED = {
    "harness": "torchscript_gate",
    "fixtures": "torchscript_gate/shipped/fixtures",
    "docs": "torchscript_gate/shipped/docs",
}
NAMED_AS_IN_A_CHECKOUT = re.compile(
    r"^\s*(from|import) harness\b|import_module\(.harness|\"-m\", \"harness|python -m harness|= harness\.", re.MULTILINE
)
STRICT = ("-W", "error", "-p", "no:cacheprovider")


@dataclass(frozen=True)
class Installed:
    """An environment with the wheel, and a project beside it that is no checkout."""

    wheel: Path
    bin: Path
    project: Path

    def environment(self) -> dict[str, str]:
        kept = {name: value for name, value in os.environ.items() if not name.startswith(("PYTHON", "PYTEST"))}
        return {**kept, ROOT_VARIABLE: str(default_environment_root()), "VIRTUAL_ENV": "", "NO_COLOR": "1"}

    def start(self, program: str, *arguments: str) -> "subprocess.Popen[str]":
        return subprocess.Popen(
            [str(self.bin / program), *arguments],
            cwd=self.project,
            env=self.environment(),
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            start_new_session=True,
        )

    def run(self, program: str, *arguments: str) -> "subprocess.CompletedProcess[str]":
        process = self.start(program, *arguments)
        out, _ = process.communicate(timeout=240)
        return subprocess.CompletedProcess(process.args, process.returncode, out)


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory, old_python: str, new_python: str) -> Installed:
    folder = tmp_path_factory.mktemp("installed")
    uv = find_uv()
    assert uv is not None and new_python
    project = folder / "project"
    (project / "models").mkdir(parents=True)
    (folder / "make.py").write_text(MADE_BY_OLD)
    making = subprocess.Popen([old_python, "-W", "ignore", str(folder / "make.py"), str(project / "models")])
    subprocess.run([uv, "build", "-q", "--wheel", "--out-dir", str(folder / "dist"), str(PROJECT)], check=True)
    (wheel,) = (folder / "dist").glob("*.whl")
    subprocess.run([uv, "venv", "-q", "--python", sys.executable, str(folder / "venv")], check=True)
    python = str(folder / "venv" / "bin" / "python")
    subprocess.run([uv, "pip", "install", "-q", "--python", python, str(wheel), "pytest", "pytest-xdist"], check=True)
    assert making.wait(timeout=120) == 0
    (project / "pyproject.toml").write_text(CONFIGURATION)
    (project / "test_models.py").write_text(TESTS)
    return Installed(wheel, folder / "venv" / "bin", project)


def test_the_wheel_has_everything_and_takes_no_name_that_others_use(installed: Installed) -> None:
    with zipfile.ZipFile(installed.wheel) as archive:
        names = set(archive.namelist())
        texts = {name: archive.read(name).decode() for name in names if name.endswith((".py", ".md", ".txt"))}
    top = {name.partition("/")[0] for name in names if ".dist-info/" not in name}
    assert top == {"torchscript_gate", "torchscript_gate_plugin.py"}
    for package, place in SHIPPED.items():
        tracked = {
            f"{place}/{path.relative_to(PROJECT / package)}"
            for path in (PROJECT / package).rglob("*")
            if path.is_file() and "__pycache__" not in path.parts
        }
        assert len(tracked) > 20
        assert not tracked - names
    assert len(texts) > 500
    left = {name: found[0] for name, text in texts.items() if (found := NAMED_AS_IN_A_CHECKOUT.search(text))}
    assert left == {}


def test_the_console_script_says_its_own_name_and_completes_it(installed: Installed) -> None:
    told = installed.run("torchscript-gate", "--help")
    assert told.returncode == 0 and told.stdout.startswith("usage: torchscript-gate ")
    assert installed.run("python", "-m", "torchscript_gate").stdout.startswith("usage: python -m torchscript_gate ")
    for verb, name in (((), "index.md"), (("gate",), "guide/policy.md")):
        page = installed.run("torchscript-gate", *verb, "--help").stdout.rstrip().rpartition("more: ")[2]
        assert page.endswith(f"/docs/{name}") and Path(page).is_file()
    script = installed.run("torchscript-gate", "completion", "bash").stdout
    words = ("compat", "--latency", "")
    asked = f"{script}\nCOMP_WORDS=(torchscript-gate {' '.join(words[:2])} ''); COMP_CWORD=3; _shtab_torchscript_gate"
    done = subprocess.run(
        ["bash", "-c", f"{asked}; echo ${{COMPREPLY[*]}}"], capture_output=True, text=True, check=True
    )
    assert done.stdout.split() == ["off", "quick", "thorough"]


def test_files_are_inspected_as_in_a_checkout(installed: Installed, capsys: pytest.CaptureFixture[str]) -> None:
    words = ("inspect", str(PROJECT / "examples" / "models"), "--format", "json")
    answer = subprocess.run(
        [installed.bin / "torchscript-gate", *words], env=installed.environment(), capture_output=True, check=True
    )
    assert main(words) == 0
    assert json.loads(capsys.readouterr().out) == json.loads(answer.stdout)


def test_pytest_loads_the_plugin_by_its_entry_point(installed: Installed) -> None:
    trace = installed.run("pytest", *STRICT, "--trace-config", "--fixtures").stdout
    assert re.search(
        r"^PLUGIN registered: <module 'torchscript_gate_plugin' from .*/site-packages/", trace, re.MULTILINE
    )
    assert "torchscript_compat [session scope]" in trace


@pytest.mark.slow
def test_a_check_in_a_teams_own_tests_judges_between_real_releases(installed: Installed) -> None:
    kept = installed.project.parent / "kept"
    done = installed.run("pytest", "-n", "1", *STRICT, "-k", "not scores", f"--basetemp={kept}")
    assert "1 failed, 1 passed" in done.stdout, done.stdout
    told = done.stdout
    assert "AssertionError: values: output: off by" in told
    assert "FAIL  enlarged: load and calls" in told and "rule: " in told
    assert re.search(r"-m torchscript_gate --project \S+ rerun \S+ enlarged/alone", told)
    assert "plugin/fixture.py" not in told and "Captured stderr" not in told
    # The run of that cell is a run like any other, and what it prints can be typed.
    (page,) = set(re.findall(r"page +(\S+)/report\.html", told))  # in CI pytest says the whole text twice
    items = installed.run("pytest", f"--torchscript-compat={page}", "torchscript-compat", "-q")
    assert "FAILED torchscript-compat::enlarged::alone - Failed: values: output" in items.stdout
    (rerun,) = set(re.findall(r"  rerun +(\S+) -m torchscript_gate --project \S+ rerun ", items.stdout))
    assert (installed.project / rerun).samefile(installed.bin / "python")


@pytest.mark.slow
def test_an_interrupted_check_leaves_no_process(installed: Installed) -> None:
    base = installed.project.parent / "interrupted"
    process = installed.start("pytest", "-n", "1", *STRICT, "-k", "scores", f"--basetemp={base}")
    assert stub.eventually(lambda: any(base.glob("**/probes/*/events.jsonl")), within_s=120.0)
    os.killpg(process.pid, signal.SIGINT)  # as a terminal does
    out, _ = process.communicate(timeout=60)
    assert process.returncode == pytest.ExitCode.INTERRUPTED, out
    assert stub.eventually(lambda: not stub.processes_naming(base)), stub.processes_naming(base)
    shutil.rmtree(base)


@pytest.mark.slow
def test_checks_that_are_green_and_red_run_side_by_side(installed: Installed) -> None:
    done = installed.run("pytest", "-n", "2", *STRICT)
    assert "1 failed, 2 passed" in done.stdout, done.stdout
