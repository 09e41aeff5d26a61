"""What a node of a cluster does with a part of a plan: one call of ``fleet run`` in a folder of its own.

Plan and configuration come with the order, and results go back as the bytes of their files: nodes need share no disk.
Where the project lies on the node as it does for who asks, it runs there. Environments are those of the node's cache.
"""

import contextlib
import fcntl
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from harness import PACKAGE
from harness.apps.fleet.plan import PLAN, STORE
from harness.apps.fleet.results import FAULTS, FRAMES, MARK, RESULTS
from harness.machine import processes
from harness.project import CONFIG

LOCK = ".lock"
HIDES_GPUS = "CUDA_VISIBLE_DEVICES"
OVER = 124
"""Exit code of a call that was ended for its time, as of timeout(1)."""
TOLD = 2000
"""Characters of what a command said in the end, where it failed."""


@dataclass(frozen=True, kw_only=True)
class Order:
    """A part of a plan for whichever node.

    Attributes:
        fleet: names the plan, and ``name`` the call and its part: they name its folder on the node.
        plan: the bytes of ``plan.json``, with the units of this part alone.
        project: folder of the project as it lies for who asks; ``config``: its configuration file, empty without one.
        trust: whether programs that the store holds run.
    """

    fleet: str
    name: str
    plan: bytes
    project: str
    config: bytes
    limit_s: float
    trust: bool = False


@dataclass(frozen=True, kw_only=True)
class Answer:
    """What became of an order: the exit code, the end of what was said, and by path all files of results and faults."""

    code: int
    said: str
    files: dict[str, bytes]


def do(order: Order) -> Answer:
    """Do an order here, and leave nothing behind but environments."""
    folder = _folder(order.fleet, order.name)
    folder.mkdir(parents=True)
    try:
        with _locked(folder / LOCK):
            return _done(order, folder)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _done(order: Order, folder: Path) -> Answer:
    fleet = folder / "fleet"
    fleet.mkdir()
    (fleet / PLAN).write_bytes(order.plan)
    project = Path(order.project)
    variables = dict(os.environ)
    if not variables.get(HIDES_GPUS, "-"):  # Ray hides them from what asks it for none
        del variables[HIDES_GPUS]
    if not _is_same(project / CONFIG, order.config):
        project = folder / "project"
        project.mkdir()
        (project / CONFIG).write_bytes(order.config)
    trust = ["--trust"] if order.trust else []
    command = (sys.executable, "-m", PACKAGE, "--project", str(project), "fleet", "run", str(fleet), *trust)
    try:
        done = processes.run(command, limit_s=order.limit_s, cwd=project, env=variables)
        code, output = done.returncode, f"{done.stdout}\n{done.stderr}"
    except subprocess.TimeoutExpired:
        code, output = OVER, f"it took longer than {order.limit_s:.0f} s"
    made = {str(path.relative_to(fleet / STORE)): path.read_bytes() for path in _kept(fleet / STORE)}
    return Answer(code=code, said=output.strip()[-TOLD:], files=made)


def forget(fleet: str) -> None:
    """Remove what calls that were killed have left here of a plan, and nothing of a call that is at work."""
    for lock in Path(tempfile.gettempdir()).glob(f"{_folder(fleet, '*').name}/{LOCK}"):
        with contextlib.suppress(OSError), _locked(lock):
            shutil.rmtree(lock.parent, ignore_errors=True)


def _folder(fleet: str, name: str) -> Path:
    """Return the folder of a part: on a disk of the node's own."""
    return Path(tempfile.gettempdir()) / f"torchscript-fleet-{fleet}-{name}"


@contextlib.contextmanager
def _locked(path: Path) -> Iterator[None]:
    with path.open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        yield


def unpack(answer: Answer, folder: Path) -> None:
    """Write the files of an answer below a folder, as results of another machine that can be taken over."""
    for name, data in answer.files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)


def _is_same(config: Path, expected: bytes) -> bool:
    try:
        return config.read_bytes() == expected
    except OSError:
        return not expected and config.parent.is_dir()


def _kept(store: Path) -> Sequence[Path]:
    paths = [path for part in (RESULTS, FRAMES, FAULTS) for path in (store / part).rglob("*.json")]
    return sorted([*paths, *([store / MARK] if (store / MARK).is_file() else [])])
