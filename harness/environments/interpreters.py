"""The Pythons of this machine: which are installed, which one runs, and which torch a ready-made one has.

Finding looks at names only and starts nothing. Only a chosen interpreter is run once, because a name can lie:
pyenv's shims are called ``python3.9`` and fail when that version is not active.
"""

import os
import re
import subprocess
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from harness.core.errors import EnvironmentUnavailable
from harness.environments.pythons import OLDEST_PYTHON, OWN_PYTHON, read_minor, write_minor
from harness.machine import files, processes
from harness.store.json import JsonError, from_json

VERIFY_TIMEOUT_S: Final = 10.0
INSPECT_TIMEOUT_S: Final = 120.0

_ON_PATH: Final = re.compile(r"python(3\.\d+)")
_PYENV: Final = re.compile(r"(3\.\d+)\.\d+")
_UV: Final = re.compile(r"cpython-(3\.\d+)\.\d+-.+")
_VERIFY: Final = "import sys; print(sys.implementation.name, '%d.%d' % sys.version_info[:2])"
_INSPECT: Final = """
import json, sys
facts = {"implementation": sys.implementation.name, "python": "%d.%d.%d" % sys.version_info[:3], "torch": None}
facts["build"], facts["installed"] = "", []
if sys.version_info >= (3, 8):
    import importlib.util, os, re
    spec = importlib.util.find_spec("torch")
    if spec is not None and spec.origin is not None:
        try:
            with open(os.path.join(os.path.dirname(spec.origin), "version.py")) as file:
                text = file.read()
            found = re.search(r"^__version__[^=]*=\\s*['\\"]([^'\\"]+)", text, re.M)
            facts["build"] = "%s\\n%d" % (text, os.stat(file.name).st_mtime_ns)
        except OSError:
            found = None
        if found:
            facts["torch"] = found.group(1)
        else:
            from importlib import metadata
            try:
                facts["torch"] = metadata.version("torch")
            except metadata.PackageNotFoundError:
                facts["torch"] = "unknown"
    for folder in sys.path:
        names = os.listdir(folder) if os.path.isdir(folder) and os.access(folder, os.R_OK) else []
        facts["installed"] += [name for name in names if name.endswith((".dist-info", ".egg-info"))]
print("facts:" + json.dumps(facts))
"""


@dataclass(frozen=True, kw_only=True, slots=True)
class InterpreterFacts:
    """What a ready-made interpreter says of itself without importing torch.

    Attributes:
        python: its full version, ``"3.11.7"``.
        torch: the version of its torch, ``"2.6.0+cu124"``; ``"unknown"`` if torch is there and does not say.
        build: changes when another build is installed there, even of the same version; never to be shown.
        installed: what else is: names with versions, as ``numpy-2.1.0.dist-info``, sorted.
    """

    python: str
    torch: str
    build: str = ""
    installed: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True)
class _Answer:
    """What ``_INSPECT`` prints."""

    implementation: str
    python: str
    torch: str | None
    build: str = ""
    installed: tuple[str, ...] = ()


def find_pythons(environ: Mapping[str, str] = os.environ, *, own: str | None = None) -> dict[str, tuple[str, ...]]:
    """Return the candidates for each installed CPython minor, ``{"3.11": (path, ...)}``, the best path first.

    Looks, without starting anything, at the controller's own interpreter, ``PATH``, pyenv's versions and uv's managed
    Pythons. Shims are left out. A candidate is a promise, not a proof: see ``verified_python``. ``environ``: read for
    PATH, HOME, PYENV_ROOT, UV_PYTHON_INSTALL_DIR and XDG_DATA_HOME; ``own``: the controller's interpreter; by default
    the one behind ``sys.executable``'s virtual environment.
    """
    own = own if own is not None else str(getattr(sys, "_base_executable", None) or sys.executable)
    pythons: dict[str, dict[str, str]] = {OWN_PYTHON: {os.path.realpath(own): own}}
    for minor, path in _candidates(environ):
        if os.access(path, os.X_OK):
            pythons.setdefault(minor, {}).setdefault(os.path.realpath(path), path)
    return {minor: tuple(pythons[minor].values()) for minor in sorted(pythons, key=read_minor)}


def verified_python(minor: str, pythons: Mapping[str, tuple[str, ...]]) -> str:
    """Return the first interpreter among ``pythons[minor]`` that runs and is a CPython of that minor version.

    Runs each candidate at most once, for at most 10 s. Raises ``EnvironmentUnavailable``: there is none; names what was
    tried and what is installed.
    """
    tried = []
    for path in pythons.get(minor, ()):
        output = _run([path, "-I", "-c", _VERIFY], VERIFY_TIMEOUT_S)
        if output.strip() == f"cpython {minor}":
            return path
        tried.append(f"{path} says {_last_line(output)!r}")
    why = "; ".join(tried) or f"installed: {', '.join(pythons) or 'none'}"
    raise EnvironmentUnavailable(
        f"no working CPython {minor} was found ({why})",
        f"install Python {minor} (the system's package, pyenv, or: uv python install {minor}), or --env NAME=PYTHON",
    )


def inspect_interpreter(interpreter: str) -> InterpreterFacts:
    """Return what a ready-made interpreter is, after one short run of it that does not import torch.

    The run is isolated (``-I``): a torch that only ``PYTHONPATH`` or the user's site would show does not count, because
    workers start without them. Raises ``EnvironmentUnavailable``: it does not exist, does not run, is too old for a
    worker, or has no torch.
    """
    path = Path(interpreter)
    try:
        is_folder, is_there = path.is_dir(), path.exists()
    except OSError as error:
        raise EnvironmentUnavailable(
            f"{path} cannot be reached: {files.refusal(error)}", "let this user read its folder, or name another --env"
        ) from error
    if is_folder:
        raise EnvironmentUnavailable(f"{path} is a folder", f"name the interpreter in it, perhaps {path}/bin/python")
    if not is_there:
        raise EnvironmentUnavailable(f"{path} does not exist", "check the path after --env NAME=")
    output = _run([interpreter, "-I", "-c", _INSPECT], INSPECT_TIMEOUT_S)
    answer = next((line[6:] for line in output.splitlines() if line.startswith("facts:")), None)
    if answer is None:
        raise EnvironmentUnavailable(
            f"{path} does not run as a Python ({_last_line(output)!r})", "check that it starts on this machine"
        )
    try:
        facts = from_json(answer.encode(), _Answer)
    except JsonError as error:  # not of our program
        raise EnvironmentUnavailable(
            f"{path} answers with something else than was asked: {error}", "check what it runs when it starts"
        ) from error
    if facts.implementation != "cpython" or read_minor(facts.python) < OLDEST_PYTHON:
        raise EnvironmentUnavailable(
            f"{path} is {facts.implementation} {facts.python}",
            f"a worker needs CPython {write_minor(OLDEST_PYTHON)} or newer",
        )
    if facts.torch is None:
        raise EnvironmentUnavailable(f"{path} has no torch", "pip install torch there, or give another --env")
    installed = tuple(sorted(facts.installed))
    return InterpreterFacts(python=facts.python, torch=facts.torch, build=facts.build, installed=installed)


def _candidates(environ: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    home = Path(environ.get("HOME", "~")).expanduser()
    pyenv = Path(environ.get("PYENV_ROOT") or home / ".pyenv")
    for folder in environ.get("PATH", "").split(os.pathsep):
        if folder and Path(folder).name != "shims":
            for name in _names(Path(folder)):
                if match := _ON_PATH.fullmatch(name):
                    yield match[1], os.path.join(folder, name)  # noqa: PTH118  a Path drops "./", and then PATH decides
    yield from _versions(pyenv / "versions", _PYENV)
    data = Path(environ.get("XDG_DATA_HOME") or home / ".local" / "share")
    yield from _versions(Path(environ.get("UV_PYTHON_INSTALL_DIR") or data / "uv" / "python"), _UV)


def _versions(folder: Path, pattern: re.Pattern[str]) -> Iterator[tuple[str, str]]:
    def by_number(name: str) -> list[int]:
        return [int(number) for number in re.findall(r"\d+", name)]

    for name in sorted(_names(folder), key=by_number, reverse=True):
        if match := pattern.fullmatch(name):
            yield match[1], str(folder / name / "bin" / f"python{match[1]}")


def _names(folder: Path) -> list[str]:
    try:
        return sorted(path.name for path in folder.iterdir())
    except OSError:
        return []


def _run(command: list[str], timeout_s: float) -> str:
    """Return stdout and stderr together, or the reason why there is none; never raises for a bad interpreter."""
    kept = {name: os.environ[name] for name in ("PATH", "HOME", "LANG", "LD_LIBRARY_PATH") if name in os.environ}
    try:
        done = processes.run(command, limit_s=timeout_s, env=kept)
    except OSError as error:
        return error.strerror or str(error)
    except subprocess.TimeoutExpired:
        return f"no answer in {timeout_s:.0f} s"
    return done.stdout + done.stderr


def _last_line(output: str) -> str:
    lines = output.strip().splitlines()
    return lines[-1][:200] if lines else "nothing"
