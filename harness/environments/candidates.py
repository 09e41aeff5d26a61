"""Finds out about environments that a run would need, built or not, without building or importing anything.

The index and the installer's cache are asked by the same program, options and configuration as for building.
"""

import subprocess
import tempfile
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

from harness.core.environment import DEFAULT_BACKEND, EnvSpec
from harness.core.errors import EnvironmentUnavailable
from harness.environments import wheel_requirements
from harness.environments.builder import EnvironmentBuilder
from harness.environments.candidate_facts import Candidate, IndexAnswer, Wheel
from harness.environments.installer import (
    PYTORCH_INDEX,
    backend_args,
    environment_python,
    explained,
    installer_environment,
    list_command,
    listed,
    redacted,
)
from harness.environments.interpreters import inspect_interpreter, verified_python
from harness.environments.pythons import python_range, read_minor
from harness.environments.versions import resolved
from harness.environments.wheel_requirements import wheel_of
from harness.machine import processes
from harness.store.json import from_json

SITE_S: Final = 10.0
_SITE: Final = "import json, sysconfig; print(json.dumps([sysconfig.get_path(n) for n in ('platlib', 'purelib')]))"


def examine(
    spec: EnvSpec, builder: EnvironmentBuilder, *, uv: str | None, pythons: Mapping[str, tuple[str, ...]]
) -> Candidate:
    """Return what is known of one environment.

    ``spec``: a ready-made interpreter, or a release with the Python that it would get; ``uv``: the installer; None is
    pip; ``pythons``: from ``find_pythons``.
    """
    if spec.interpreter is not None:
        return _ready_made(spec, spec.interpreter)
    assert spec.release is not None
    assert spec.python is not None
    try:
        span = python_range(spec.release)
        suits = str(span)
        if not builder.is_ready(spec):
            interpreter = verified_python(spec.python, pythons)
            index = ask_index(spec, uv=uv, interpreter=interpreter)
            wheel = wheel_of(spec.version)
            unsuited = read_minor(spec.python) not in span
            return Candidate(
                name=spec.name, python=spec.python, pythons=suits, unsuited=unsuited, wheel=wheel, index=index
            )
    except EnvironmentUnavailable as error:
        return Candidate(name=spec.name, trouble=error.message, hint=error.hint)
    return Candidate(
        name=spec.name,
        built=True,
        python=spec.python,
        pythons=suits,
        wheel=_wheel(environment_python(builder.root / builder.place(spec)), spec.version),
    )


def _ready_made(spec: EnvSpec, interpreter: str) -> Candidate:
    try:
        facts = inspect_interpreter(str(Path(interpreter).expanduser()))
    except EnvironmentUnavailable as error:
        return Candidate(name=spec.name, trouble=error.message, hint=error.hint)
    wheel = wheel_beside(interpreter)
    return Candidate(
        name=spec.name,
        built=True,
        python=f"{facts.python} with torch {facts.torch}",
        wheel=_with_glibc(wheel, facts.torch),
    )


def wheel_beside(interpreter: str) -> Wheel | None:
    """Return what the torch of a ready-made interpreter asks for; None without one."""
    wheels = map(wheel_requirements.look_at_wheel, _sites(interpreter))
    return next((wheel for wheel in wheels if wheel is not None), None)


def _wheel(interpreter: Path, release: str) -> Wheel | None:
    site = wheel_requirements.site_of(interpreter)
    installed = wheel_requirements.look_at_wheel(site) if site is not None else None
    return _with_glibc(installed, release) if installed is not None else wheel_of(release)


def _with_glibc(wheel: Wheel | None, release: str) -> Wheel | None:
    known = wheel_of(release.partition("+")[0])
    return replace(wheel, glibc=known.glibc) if wheel is not None and wheel.glibc is None and known else wheel


def _sites(interpreter: str) -> list[Path]:
    """Return the site-packages of a ready-made interpreter, which need not lie beside it."""
    try:
        done = processes.run((str(Path(interpreter).expanduser()), "-I", "-c", _SITE), limit_s=SITE_S)
        return [Path(path) for path in from_json(done.stdout.encode(), list[str])]
    except (OSError, subprocess.SubprocessError, ValueError):
        return []


LIMIT_S: Final = 3.0
_YES: Final = ("1", "true", "yes", "on", "t", "y")


@dataclass(frozen=True, kw_only=True)
class _Ended:
    """How a program ended: ``status`` None where it did not in time."""

    status: int | None
    out: str
    errors: str


def ask_index(spec: EnvSpec, *, uv: str | None, interpreter: str, limit_s: float = LIMIT_S) -> IndexAnswer:
    """Return what the index and the cache have of the release of ``spec``, within ``limit_s`` seconds.

    ``uv``: its path; None asks pip, whose cache cannot be asked; ``interpreter``: a Python of the minor version that
    the environment would get.
    """
    assert spec.release is not None
    if uv is None:
        return _ask_pip(spec, interpreter, limit_s)
    if installer_environment().get("UV_OFFLINE", "").lower() in _YES:
        return _offline(cached=_is_cached(uv, interpreter, spec, limit_s))
    # Both at once: an index that does not answer takes all the time there is.
    with ThreadPoolExecutor(max_workers=2) as pool:
        online = pool.submit(_online, uv, interpreter, spec, limit_s)
        cached = pool.submit(_is_cached, uv, interpreter, spec, limit_s)
        return _answer(spec, online.result(), cached=cached.result(), limit_s=limit_s)


def _offline(*, cached: bool) -> IndexAnswer:
    """Return the answer where uv may ask no index; it lists versions that it cannot download then."""
    if cached:
        return IndexAnswer(found=True, reached=False, cached=True)
    return IndexAnswer(
        found=False,
        reached=False,
        said="UV_OFFLINE is set, and the cache lacks a part of it",
        hint="unset UV_OFFLINE, or build it once with a network",
    )


def _online(uv: str, interpreter: str, spec: EnvSpec, limit_s: float) -> _Ended:
    options = ("--no-deps", "--no-header", "--no-annotate", "--no-progress", "--python", interpreter)
    index = (*spec.index_args, *backend_args(uv, spec.torch_backend))
    return _run((uv, "pip", "compile", *options, *index, "-"), f"torch=={spec.version}\n", limit_s)


def _is_cached(uv: str, interpreter: str, spec: EnvSpec, limit_s: float) -> bool:
    options = ("--dry-run", "--offline", "--no-progress", "--python", interpreter)
    with tempfile.TemporaryDirectory(prefix="doctor-") as nowhere:
        index = (*spec.index_args, *backend_args(uv, spec.torch_backend))
        packages = (f"torch=={spec.version}", *spec.extras, *index)
        ended = _run((uv, "pip", "install", *options, "--target", nowhere, *packages), "", limit_s)
    return ended.status == 0 and "Would install" in ended.errors and "Would download" not in ended.errors


def _answer(spec: EnvSpec, ended: _Ended, *, cached: bool, limit_s: float) -> IndexAnswer:
    if ended.status == 0 and resolved(ended.out) is not None:
        return IndexAnswer(found=True, cached=cached)
    return _refused(spec, ended, cached=cached, limit_s=limit_s)


def _refused(spec: EnvSpec, ended: _Ended, *, cached: bool, limit_s: float) -> IndexAnswer:
    if ended.status is None:
        return IndexAnswer(reached=False, cached=cached, said=ended.errors or f"no answer in {limit_s:g} s")
    why = explained(ended.errors, status=ended.status, release=spec.release or "", python=spec.python or "")
    return IndexAnswer(
        found=None if why.is_unreachable else False,
        reached=not why.is_unreachable,
        cached=cached,
        said=redacted(why.message),
        hint=why.hint,
    )


def _ask_pip(spec: EnvSpec, interpreter: str, limit_s: float) -> IndexAnswer:
    try:
        own = () if spec.torch_backend == DEFAULT_BACKEND else ("--index-url", f"{PYTORCH_INDEX}/{spec.torch_backend}")
        command = list_command(interpreter, (*spec.index_args, *own))
    except EnvironmentUnavailable as error:
        return IndexAnswer(reached=False, said=error.message, hint=error.hint)
    ended = _run(command, "", limit_s)
    if ended.status != 0:
        return _refused(spec, ended, cached=False, limit_s=limit_s)
    release = (spec.release or "").partition("+")[0]
    if release in listed(ended.out):
        return IndexAnswer(found=True)
    return IndexAnswer(found=False, said=f"the index has no torch {spec.version}", hint="name another release")


def run_briefly(command: Sequence[str], limit_s: float) -> str:
    """Return what a question to an installer printed; empty where it failed."""
    ended = _run(command, "", limit_s)
    return ended.out if ended.status == 0 else ""


def _run(command: Sequence[str], text: str, limit_s: float) -> _Ended:
    try:
        impatient = {
            **installer_environment(),
            "UV_HTTP_RETRIES": "0",
        }  # a refusal is told at once, not after its limit
        done = processes.run(command, text=text, env=impatient, limit_s=limit_s)
    except subprocess.TimeoutExpired:
        return _Ended(status=None, out="", errors="")
    except OSError as error:
        return _Ended(status=None, out="", errors=f"{command[0]} cannot be started: {error.strerror}")
    return _Ended(status=done.returncode, out=done.stdout, errors=done.stderr)
