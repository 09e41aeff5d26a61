"""Finds out about environments that a run would need, built or not, without building or importing anything."""

import json
import subprocess
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Final

from harness.doctor import wheels
from harness.doctor.index import ask_index
from harness.doctor.wheels import wheel_of
from harness.domain.environment import EnvSpec
from harness.domain.machine import Candidate, Wheel
from harness.environments.builder import EnvironmentBuilder
from harness.environments.installer import environment_python
from harness.environments.interpreters import inspect_interpreter, verified_python
from harness.environments.pythons import python_range, read_minor
from harness.errors import EnvironmentUnavailable

SITE_S: Final = 10.0
_SITE: Final = "import json, sysconfig; print(json.dumps([sysconfig.get_path(n) for n in ('platlib', 'purelib')]))"


def examine(
    spec: EnvSpec, builder: EnvironmentBuilder, *, uv: str | None, pythons: Mapping[str, tuple[str, ...]]
) -> Candidate:
    """Return what is known of one environment.

    Args:
        spec: a ready-made interpreter, or a release with the Python that it would get.
        uv: the installer; None is pip.
        pythons: from ``find_pythons``.
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
            wheel = wheel_of(spec.release)
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
        wheel=_wheel(environment_python(builder.root / builder.place(spec)), spec.release),
    )


def _ready_made(spec: EnvSpec, interpreter: str) -> Candidate:
    try:
        facts = inspect_interpreter(str(Path(interpreter).expanduser()))
    except EnvironmentUnavailable as error:
        return Candidate(name=spec.name, trouble=error.message, hint=error.hint)
    wheel = next((found for site in _sites(interpreter) if (found := wheels.look_at_wheel(site)) is not None), None)
    return Candidate(
        name=spec.name,
        built=True,
        python=f"{facts.python} with torch {facts.torch}",
        wheel=_with_glibc(wheel, facts.torch),
    )


def _wheel(interpreter: Path, release: str) -> Wheel | None:
    site = wheels.site_of(interpreter)
    installed = wheels.look_at_wheel(site) if site is not None else None
    return _with_glibc(installed, release) if installed is not None else wheel_of(release)


def _with_glibc(wheel: Wheel | None, release: str) -> Wheel | None:
    """Return a wheel whose own tag tells no glibc with that of the table."""
    known = wheel_of(release.partition("+")[0])
    return replace(wheel, glibc=known.glibc) if wheel is not None and wheel.glibc is None and known else wheel


def _sites(interpreter: str) -> list[Path]:
    """Return the site-packages of a ready-made interpreter, which need not lie beside it."""
    try:
        done = subprocess.run(
            (str(Path(interpreter).expanduser()), "-I", "-c", _SITE),
            capture_output=True,
            text=True,
            timeout=SITE_S,
            check=True,
        )
        return [Path(path) for path in json.loads(done.stdout)]
    except (OSError, subprocess.SubprocessError, ValueError):
        return []
