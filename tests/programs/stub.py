"""Stub environments, artifacts and requests, and a look at the processes that belong to them."""

import json
import os
import shutil
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path

from harness.core.environment import EnvSpec, Environment
from harness.core.models import Artifact, InputSet
from harness.core.probe import Deadline, ModelRun, ProbeRequest
from harness.environments.builder import default_environment_root
from harness.serving.scenarios import INITIALIZATIONS

PATIENT = Deadline(load_s=120.0, call_s=120.0, total_s=240.0)
"""For work that is expected to end: only a broken harness would wait this long."""
BRIEF = Deadline(load_s=2.0, call_s=2.0, total_s=120.0)
"""For work that is expected to hang."""

PROJECT = Path(__file__).parents[2]
MODELS = Path(__file__).parent / "stub_models"
_TORCH = Path(__file__).parent / "stub_env" / "torch"


def make_environment(
    folder: Path, *, version: str = "2.1.2", python: str | None = None, minor: str = "", on_import: str | None = None
) -> Environment:
    """Return an environment with the stub as its torch: a virtual environment, as an interpreter would find one."""
    base = os.path.realpath(python or sys.executable)
    minor = minor or f"{sys.version_info.major}.{sys.version_info.minor}"
    site = folder / "lib" / f"python{minor}" / "site-packages" / "torch"
    shutil.copytree(_TORCH, site, ignore=shutil.ignore_patterns("__pycache__"))
    (site / "version.py").write_text(
        f"__version__ = {version!r}\nON_IMPORT = {on_import!r}\ngit_version = 'stub {version}'\ncuda = None\n"
    )
    (folder / "pyvenv.cfg").write_text(f"home = {os.path.dirname(base)}\ninclude-system-site-packages = false\n")
    (folder / "bin").mkdir()
    interpreter = folder / "bin" / "python"
    interpreter.symlink_to(base)
    spec = EnvSpec(name=f"stub {version}", interpreter=str(interpreter))
    return Environment(name=spec.name, interpreter=str(interpreter), spec=spec)


def compiled_once(root: Path) -> None:
    """Make an empty root of environments in which what is compiled is that of the project, which is compiled once."""
    compiled = default_environment_root(PROJECT) / "native"
    compiled.mkdir(parents=True, exist_ok=True)
    root.mkdir()
    (root / "native").symlink_to(compiled)


def write_artifact(folder: Path, model: str, **program: object) -> Artifact:
    """Return an artifact that does what ``program`` says; see the stub's docstring."""
    inputs = folder / model / "inputs"
    inputs.mkdir(parents=True)
    entry = {"model": model, "set": "example", "method": "forward", "tree": ["tuple", [["int", 1]]]}
    (inputs / "tensors.jsonl").write_text(json.dumps(entry) + "\n")
    (inputs / "tensors.bin").write_bytes(b"")
    path = folder / model / "artifact.json"
    path.write_text(json.dumps(program))
    return Artifact(
        model=model,
        path=str(path),
        digest=path.read_text(),
        size_bytes=path.stat().st_size,
        operators=(),
        inputs_dir=str(inputs),
        input_sets=(InputSet(name="example"),),
    )


def run_request(
    artifacts: Sequence[Artifact], deadline: Deadline, *, threads: int = 1, verb: str = "run"
) -> ProbeRequest:
    """Return the request that loads ``artifacts`` and calls each of them three times, in ``threads`` from a barrier."""
    runs = tuple(ModelRun(artifact=artifact, schedule=(("example", 3),)) for artifact in artifacts)
    names = [artifact.model for artifact in artifacts]
    script = INITIALIZATIONS["concurrent"].write(names, threads) if threads > 1 else None
    return ProbeRequest(verb=verb, side="old", environment="stub", deadline=deadline, runs=runs, script=script)


def processes_naming(text: str | Path) -> dict[int, str]:
    """Return pid -> command line of the living processes whose command line contains ``text``.

    A worker's command line names its folder, and what it forks without exec keeps that command line.
    """
    found = {}
    for pid in filter(str.isdigit, os.listdir("/proc")):
        if str(text) in (command := _command(int(pid))) and int(pid) != os.getpid():
            found[int(pid)] = command
    return found


def _command(pid: int) -> str:
    try:
        return Path("/proc", str(pid), "cmdline").read_bytes().decode(errors="replace").replace("\0", " ")
    except OSError:
        return ""


def descendants() -> dict[int, str]:
    """Return pid -> command line of the living processes below this one."""
    states = _states()
    found: dict[int, str] = {}
    level = {os.getpid()}
    while level := {pid for pid, (_, parent) in states.items() if parent in level}:
        found |= {pid: _command(pid) for pid in level if states[pid][0] != "Z"}
    return found


def zombies() -> list[int]:
    """Return the ended children that this process has not waited for."""
    return [pid for pid, (state, parent) in _states().items() if state == "Z" and parent == os.getpid()]


def _states() -> dict[int, tuple[str, int]]:
    found = {}
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            state, parent, *_ = Path("/proc", pid, "stat").read_text().rpartition(")")[2].split()
        except OSError:
            continue
        found[int(pid)] = state, int(parent)
    return found


def is_alive(pid: int) -> bool:
    """Whether ``pid`` runs; a zombie does not."""
    return _states().get(pid, ("Z", 0))[0] != "Z"


def open_descriptors() -> list[str]:
    """Return what this process holds open, sorted."""
    found = []
    for name in os.listdir("/proc/self/fd"):
        try:
            found.append(os.readlink(f"/proc/self/fd/{name}"))
        except OSError:
            continue
    return sorted(found)


def eventually(condition: Callable[[], bool], *, within_s: float = 30.0) -> bool:
    """Whether ``condition`` becomes true in time; the kernel needs a moment to end processes."""
    limit = time.monotonic() + within_s
    while not condition():
        if time.monotonic() > limit:
            return False
        time.sleep(0.02)
    return True
