"""The programs that fill an environment, and one run of such a program: logged, bounded, killable as a group."""

import importlib
import importlib.util
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from harness.errors import EnvironmentUnavailable
from harness.runtime.patience import Patience

_POLL_S: Final = 0.02
_GRACE_S: Final = 1.0
_REAP_S: Final = 5.0

Commands = tuple[tuple[str, ...], ...]


def find_uv() -> str | None:
    """Return the path of uv: the one of the ``uv`` Python package, else the one on PATH, else None."""
    try:
        return str(importlib.import_module("uv").find_uv_bin())
    except (ImportError, AttributeError, FileNotFoundError):
        return shutil.which("uv")


def install_commands(uv: str | None, python: str, folder: Path, packages: Sequence[str]) -> Commands:
    """Return the commands that create ``folder`` as an environment of ``python`` and install ``packages`` there.

    With uv where its path is given, else with ``venv`` and pip. Nothing is seeded: the environment gets no pip and no
    setuptools beyond what the packages ask for. Nothing is compiled to bytecode either: that costs a pair of
    environments 9 s (torch has 8000 modules), where the first import compiles the 1700 it needs in 2 s.

    Raises:
        EnvironmentUnavailable: there is neither uv nor any pip.
    """
    inside = str(environment_python(folder))
    if uv is not None:
        return (
            (uv, "venv", "--no-progress", "--no-project", "--python", python, str(folder)),
            (uv, "pip", "install", "--no-progress", "--python", inside, *packages),
        )
    options = ("install", "--no-compile", "--progress-bar", "off", "--disable-pip-version-check")
    return (
        (python, "-m", "venv", "--without-pip", str(folder)),
        (*pip_for(python, inside), *options, *packages),
    )


def environment_python(folder: Path) -> Path:
    """Return where the interpreter of the environment in ``folder`` is."""
    return folder / "bin" / "python"


def pip_for(python: str, inside: str) -> tuple[str, ...]:
    """Return pip's start: the wheel that came with ``python`` and so suits it, else the controller's own pip."""
    home = Path(os.path.realpath(python)).parent.parent
    bundled = sorted(home.glob("lib/python3.*/ensurepip/_bundled/pip-*.whl"))
    wheels = bundled or sorted(Path("/usr/share/python-wheels").glob("pip-*.whl"))
    if wheels:
        return inside, str(wheels[-1] / "pip")
    if importlib.util.find_spec("pip") is not None:
        return sys.executable, "-m", "pip", "--python", inside
    raise EnvironmentUnavailable("neither uv nor pip was found to build environments with", "pip install uv")


def run_installer(command: Sequence[str], log: Path, patience: Patience, *, lock: int) -> int:
    """Return the exit status of ``command``; its output is appended to ``log``.

    It runs in its own session with the user's environment, less what belongs to another Python. It inherits the file
    descriptor ``lock``: should the controller be killed, the lock stays taken until the orphan has ended too.

    Raises:
        Cancelled, DeadlineExceeded: patience has ended; the group has been killed.
        OSError: the command could not be started.
    """
    with log.open("ab") as sink:
        sink.write(f"$ {redacted(' '.join(command))}\n".encode())
        sink.flush()
        process = subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=sink,
            stderr=subprocess.STDOUT,
            env=installer_environment(),
            start_new_session=True,
            pass_fds=(lock,),
        )
        try:
            patience.wait_until(lambda: process.poll() is not None)
        except BaseException:
            _kill_group(process)
            raise
    return process.returncode


def redacted(text: str) -> str:
    """Return ``text`` with the credentials of URLs replaced by ``***``."""
    return re.sub(r"(\w://)[^/\s@]+@", r"\1***@", text)


def _kill_group(process: subprocess.Popen[bytes]) -> None:
    """End the whole group; its leader is reaped last, so that the group's number cannot be reused before."""
    if process.returncode is not None:
        return
    _signal_group(process.pid, signal.SIGTERM)
    limit = time.monotonic() + _GRACE_S
    while time.monotonic() < limit and not _has_ended(process.pid):
        time.sleep(_POLL_S)
    _signal_group(process.pid, signal.SIGKILL)
    try:
        process.wait(timeout=_REAP_S)
    except subprocess.TimeoutExpired:
        return  # in the kernel's D state: it cannot be reaped, and its environment has no marker


def _has_ended(pid: int) -> bool:
    return os.waitid(os.P_PID, pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is not None


def _signal_group(group: int, number: int) -> None:
    try:
        os.killpg(group, number)
    except ProcessLookupError:
        return


def installer_environment() -> dict[str, str]:
    """Return the user's environment without what belongs to another Python."""
    foreign = ("VIRTUAL_ENV", "CONDA_PREFIX", "UV_PROJECT_ENVIRONMENT", "PIP_USER")
    kept = {name: text for name, text in os.environ.items() if name not in foreign and not name.startswith("PYTHON")}
    return kept | {"NO_COLOR": "1", "UV_NO_WRAP": "1", "PIP_NO_INPUT": "1", "PIP_USER": "0"}
