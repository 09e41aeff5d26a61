"""A scratch project in which the commands of the pages run: small models, files, a finished run, and what they name."""

import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

from harness.environments.builder import ROOT_VARIABLE, default_environment_root
from tests.docs.running import JUDGED, verb_of
from tests.integration.gate import PROJECT

SCRATCH = PROJECT / "tests" / "docs" / "scratch"
GIVEN = PROJECT / "tests" / "integration" / "artifacts" / "given" / "program.py"
HANGS = PROJECT / "tests" / "integration" / "checks" / "startup" / "hangs"
CELL = "enlarge_thumbnail/alone"
DEADLINE_S = 1500.0

SERVER = "namespace at::autocast { bool is_enabled(); } bool serve() { return at::autocast::is_enabled(); }"

PROPOSE = ("golden", "propose", "last")
ACCEPT = ("golden", "accept", "all", "--reason", "tried")
FIRST: Mapping[str, tuple[tuple[str, ...], ...]] = {
    r"golden (accept|diff(?! --since)).*": (PROPOSE,),
    r"golden diff --since.*": (PROPOSE, ACCEPT),
    r".*--golden( .*|$)": (PROPOSE, ACCEPT),
    r"rerun last --undecided": (("compat", "--artifacts", "undecided", "--scenario", "alone", "--latency", "off"),),
    r"rerun last \S+/latency/.*": (("compat", "-k", "served_bert"),),
    r"compat --resume last --more .*": (("compat", "-k", "served_bert"),),
    r"bisect --resume last": (("bisect", "--cell", CELL),),
    r".*--artifacts bundles.*": (("pack", "--old", "2.1.2", "--artifacts", "models", "--into", "bundles"),),
}
"""By pattern of the words what has to be done before."""
READING = (
    *("", "attach", "completion", "doctor", "env", "gate", "inspect", "link-check", "compile-check", "operators"),
    "report",
)
"""Verbs that write nothing into the project."""


@dataclass(frozen=True)
class Scratch:
    """The project, what pages write where a reader has something of their own, and copies with more done in them."""

    folder: Path
    stands_for: Mapping[str, str]
    cache: Path = field(default_factory=default_environment_root)
    made: "dict[tuple[tuple[str, ...], ...], Scratch]" = field(default_factory=dict)

    def words(self, words: tuple[str, ...]) -> list[str]:
        """Return the words as they are typed here."""
        return [self._word(word) for word in words]

    def environment(self) -> dict[str, str]:
        """Return what is set here beside everything else."""
        return {"PYTHONPATH": str(PROJECT), "COLUMNS": "80", ROOT_VARIABLE: str(self.cache)}

    def run(self, *words: str, program: str = "harness") -> "subprocess.CompletedProcess[str]":
        """Run ``python -m harness`` here, a program like it, or pytest with the plugin."""
        plugin = ("-p", "torchscript_gate_plugin") if program == "pytest" else ()
        return subprocess.run(
            [sys.executable, "-P", "-m", program, *plugin, *words],
            cwd=self.folder,
            env={**os.environ, **self.environment()},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=DEADLINE_S,
            check=False,
        )

    def copy(self, folder: Path, words: tuple[str, ...]) -> "Scratch":
        """Return a project of its own for one command, in which everything is as that command needs it.

        What only reads is given the project itself, and what cleans the cache one of its own.
        """
        if verb_of(words) in READING:
            return self
        if verb_of(words) == "cache":
            return replace(self, cache=_small_cache(folder.with_name("cache")))
        typed = " ".join(words)
        needed = tuple(one for pattern, many in FIRST.items() if re.fullmatch(pattern, typed) for one in many)
        shutil.copytree(self._after(needed).folder, folder, copy_function=_light)
        return replace(self, folder=folder)

    def _after(self, commands: tuple[tuple[str, ...], ...]) -> "Scratch":
        """Return the project after these commands, each of which is run once."""
        if not commands:
            return self
        if commands not in self.made:
            before = self._after(commands[:-1])  # which takes a number of its own
            folder = self.folder.with_name(f"after-{len(self.made)}")
            shutil.copytree(before.folder, folder, copy_function=_light)
            self.made[commands] = replace(self, folder=folder)
            done = self.made[commands].run(*commands[-1])
            assert done.returncode in JUDGED, (commands, done.stderr)
        return self.made[commands]

    def _word(self, word: str) -> str:
        word = re.sub(r"reports/(\d{4}-\S+|RUN)", "last", word)
        for name, stands in self.stands_for.items():
            word = stands if word == name else word.replace(f"={name}", f"={stands}")
        return word


def _small_cache(folder: Path) -> Path:
    """Return a cache that holds an environment, of which nobody reads more than its size."""
    environment = folder / "torch-2.1.2-cp311-00000000"
    environment.mkdir(parents=True)
    (environment / "environment.json").write_text("{}")
    return folder


def _light(source: str, target: str) -> None:
    """Copy a file; what no command writes anew is linked, for a project is copied fifty times."""
    if {"fixtures", "probes"} & set(Path(source).parts):
        os.link(source, target)
    else:
        shutil.copy2(source, target)


def make_scratch(folder: Path, old_python: str, new_python: str) -> Scratch:
    """Make the project in ``folder``: its models and files, and one finished run, which is BLOCKED."""
    folder.mkdir()
    settings = (PROJECT / "pyproject.toml").read_text(encoding="utf-8")
    (folder / "pyproject.toml").write_text(settings.partition("[tool.ruff]")[0])
    (folder / "test_service.py").write_text("def test_service():\n    assert True\n")
    shutil.copytree(PROJECT / "docs" / "examples", folder / "docs" / "examples")
    shutil.copytree(PROJECT / "fixtures", folder / "fixtures", ignore=shutil.ignore_patterns("zoo", "__pycache__"))
    zoos = (folder / "fixtures" / "zoo", folder / "mypkg" / "zoo")
    for zoo in zoos:
        zoo.mkdir(parents=True)
        (zoo.parent / "__init__.py").touch()
        (zoo / "__init__.py").touch()
        shutil.copy(SCRATCH / "models.py", zoo)
    subprocess.run([old_python, "-s", "-W", "ignore", str(GIVEN), str(folder / "given")], timeout=120, check=True)
    shutil.copytree(HANGS, folder / HANGS.relative_to(PROJECT), ignore=shutil.ignore_patterns("__pycache__"))
    (folder / "models").mkdir()
    for name in ("ranker.pt", "ranker.inputs.pt", "guessed.pt"):
        shutil.copy(folder / "given" / "files" / name, folder / "models")
    (folder / "undecided").mkdir()
    shutil.copy(folder / "given" / "files" / "guessed.pt", folder / "undecided" / "asked.pt")
    (folder / "undecided" / "asked.inputs.py").write_text("def inputs():\n    return 'no request'\n")
    shutil.copy(folder / "given" / "files" / "ranker.pt", folder)
    shutil.copytree(folder / "given" / "listed", folder / "fleet")
    shutil.rmtree(folder / "given")
    shutil.copy(SCRATCH / "models.py", folder / "models")
    shutil.copy(SCRATCH / "policy.toml", folder)
    shutil.copy(SCRATCH / "fleet.toml", folder)
    for binary in ("server", "build/server", "ops/libmyops.so"):
        (folder / binary).parent.mkdir(exist_ok=True)
        command = ["g++", "-std=c++17", "-shared", "-fPIC", "-x", "c++", "-", "-o", str(folder / binary)]
        subprocess.run(command, input=SERVER.encode(), check=True)
    shutil.copytree(PROJECT / "examples", folder / "examples")
    program = PROJECT / "tests" / "programs" / "planted_server.py"
    (folder / "server.toml").write_text(
        f'command = "{{python}} {program} {{port}} {{side}} healthy"\nready = {{ path = "/ready" }}\n'
    )
    (folder / "requests.jsonl").write_text(
        '{"format": "torchscript-gate requests", "version": 1}\n'
        '{"path": "/x", "body": {"json": {"inputs": [{"data": [1.0]}]}}}\n'
    )
    (folder / "rootfs").mkdir()
    (folder / "src").mkdir()
    (folder / "include").mkdir()
    (folder / "src" / "server.cpp").write_text("#include <c10/macros/Macros.h>\nint main() { return 0; }\n")
    includes = next(Path(old_python).parents[1].glob("lib/python*/site-packages/torch/include"))
    entry = {"directory": str(folder), "file": "src/server.cpp", "command": f"g++ -I{includes} -c src/server.cpp"}
    (folder / "build" / "compile_commands.json").write_text(json.dumps([entry]))
    scratch = Scratch(
        folder,
        {
            "CELL_ID": CELL,
            "PID": str(os.getppid()),
            "RUN": "last",
            "/opt/torch21/bin/python": old_python,
            "/opt/prod/bin/python": old_python,
            "/opt/torch26/bin/python": new_python,
            "/opt/libtorch-2.6": str(Path(new_python).parents[1]),
            "/models": "models",
            "/reports": str(folder.with_name("of-the-container")),
            "/srv/models": ".",
            "/tmp/main/golden": "golden",
            "/var/tmp/reports": str(folder.with_name("elsewhere")),
            "ci/policy.toml": "policy.toml",
            "operator-prim::is_ort": "semantics-aten::adaptive_avg_pool2d",
            "torchscript-compat::ranker::alone": "torchscript-compat::dlrm::alone",
        },
    )
    one_defect = "tests.programs.one_defect"  # no page is about those that a run plants
    done = scratch.run("compat", "--latency", "off", "--scenario", "alone", program=one_defect)
    assert done.returncode == 1, done.stderr
    (report,) = folder.glob("reports/*/report.json")
    shutil.copy(report, folder / "last-report.json")
    return scratch
