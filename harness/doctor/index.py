"""Asks the package index whether it has a release, and the installer's cache whether it has all of it; seconds only.

The same program, options and configuration as for building environments, so that the answer is about those.
"""

import subprocess
import tempfile
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Final

from harness.domain.environment import EnvSpec
from harness.domain.machine import IndexAnswer
from harness.environments.installer import explained, installer_environment, pip_for, redacted
from harness.errors import EnvironmentUnavailable
from harness.releases.versions import listed, resolved

LIMIT_S: Final = 3.0
_YES: Final = ("1", "true", "yes", "on", "t", "y")


@dataclass(frozen=True, kw_only=True)
class _Said:
    """How a program ended: ``status`` None where it did not in time."""

    status: int | None
    out: str
    errors: str


def ask_index(spec: EnvSpec, *, uv: str | None, interpreter: str, limit_s: float = LIMIT_S) -> IndexAnswer:
    """Return what the index and the cache have of the release of ``spec``, within ``limit_s`` seconds.

    Args:
        uv: its path; None asks pip, whose cache cannot be asked.
        interpreter: a Python of the minor version that the environment would get.
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


def _online(uv: str, interpreter: str, spec: EnvSpec, limit_s: float) -> _Said:
    options = ("--no-deps", "--no-header", "--no-annotate", "--no-progress", "--python", interpreter)
    return _run((uv, "pip", "compile", *options, *spec.index_args, "-"), f"torch=={spec.release}\n", limit_s)


def _is_cached(uv: str, interpreter: str, spec: EnvSpec, limit_s: float) -> bool:
    """Return whether an installation could be made with nothing from the network; a dry run says what it lacks."""
    options = ("--dry-run", "--offline", "--no-progress", "--python", interpreter)
    with tempfile.TemporaryDirectory(prefix="doctor-") as nowhere:
        packages = (f"torch=={spec.release}", *spec.extras, *spec.index_args)
        said = _run((uv, "pip", "install", *options, "--target", nowhere, *packages), "", limit_s)
    return said.status == 0 and "Would install" in said.errors and "Would download" not in said.errors


def _answer(spec: EnvSpec, said: _Said, *, cached: bool, limit_s: float) -> IndexAnswer:
    if said.status == 0 and resolved(said.out) is not None:
        return IndexAnswer(found=True, cached=cached)
    return _refused(spec, said, cached=cached, limit_s=limit_s)


def _refused(spec: EnvSpec, said: _Said, *, cached: bool, limit_s: float) -> IndexAnswer:
    if said.status is None:
        return IndexAnswer(reached=False, cached=cached, said=said.errors or f"no answer in {limit_s:g} s")
    why = explained(said.errors, status=said.status, release=spec.release or "", python=spec.python or "")
    return IndexAnswer(
        found=None if why.is_unreachable else False,
        reached=not why.is_unreachable,
        cached=cached,
        said=redacted(why.message),
        hint=why.hint,
    )


def _ask_pip(spec: EnvSpec, interpreter: str, limit_s: float) -> IndexAnswer:
    try:
        pip = pip_for(interpreter, interpreter)
    except EnvironmentUnavailable as error:
        return IndexAnswer(reached=False, said=error.message, hint=error.hint)
    options = ("index", "versions", "torch", "--only-binary", ":all:", "--disable-pip-version-check")
    said = _run((*pip, *options, *spec.index_args), "", limit_s)
    if said.status != 0:
        return _refused(spec, said, cached=False, limit_s=limit_s)
    release = (spec.release or "").partition("+")[0]
    if release in listed(said.out):
        return IndexAnswer(found=True)
    return IndexAnswer(found=False, said=f"the index has no torch {spec.release}", hint="name another release")


def _run(command: Sequence[str], text: str, limit_s: float) -> _Said:
    try:
        done = subprocess.run(
            command,
            input=text,
            capture_output=True,
            text=True,
            env={**installer_environment(), "UV_HTTP_RETRIES": "0"},  # a refusal is told at once, not after its limit
            timeout=limit_s,
            check=False,
        )
    except subprocess.TimeoutExpired:
        return _Said(status=None, out="", errors="")
    except OSError as error:
        return _Said(status=None, out="", errors=f"{command[0]} cannot be started: {error.strerror}")
    return _Said(status=done.returncode, out=done.stdout, errors=done.stderr)
