"""The two sides of a run, as ``EnvSpec``: a torch release to build, or a ready-made interpreter."""

import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal

from packaging.version import InvalidVersion, Version

from harness.config.schema import ENVIRONMENT, RELEASE, RELEASE_PATTERN, ROOT, TOP, read, shown
from harness.core.environment import EnvSpec
from harness.core.errors import ConfigError
from harness.core.plan import Settings
from harness.environments.operator_libraries import libraries_of


def env_specs(
    table: Mapping[str, Any],
    settings: Settings,
    env_arguments: Sequence[str],
    *,
    file: str = "pyproject.toml",
    libraries: Sequence[str] = (),
    project: Path = Path(),
) -> tuple[EnvSpec, EnvSpec]:
    """Return what to build or use on the old and on the new side.

    ``settings.old`` and ``new`` are releases or names from ``env_arguments``: ``NAME=PYTHON``, a ready-made
    interpreter; ``old`` and ``new`` replace that side. ``libraries`` are ``LIB`` or ``NAME=LIB``, on top of the
    configured ones; NAME may be a release too. Configured paths of shared objects are relative to ``project``. Raises
    ``ConfigError``: a side is missing or neither release nor name; an argument is malformed, given twice or used by no
    side; both sides are the same torch and ``settings.allow_same_torch`` is not set.
    """
    old, new = (
        env_spec(table, settings, side, env_arguments, file=file, libraries=libraries, project=project)
        for side in ("old", "new")
    )
    if (old.release, old.interpreter) == (new.release, new.interpreter) and not settings.allow_same_torch:
        hint = "it would prove nothing: give another --old or --new, or --allow-same-torch to check the gate itself"
        raise ConfigError(f"same torch on both sides: {old.interpreter or old.name}", hint)
    return old, new


def env_spec(
    table: Mapping[str, Any],
    settings: Settings,
    side: Literal["old", "new"],
    env_arguments: Sequence[str],
    *,
    file: str = "pyproject.toml",
    libraries: Sequence[str] = (),
    project: Path = Path(),
) -> EnvSpec:
    """Return one side only, for a run whose other side is a golden record; arguments and errors as ``env_specs``."""
    wanted = {"old": settings.old, "new": settings.new}
    text = wanted[side]
    spec, options = _spec_and_options(table, wanted, side, env_arguments, file=file)
    configured = options.pop("libraries", ())
    used = {*wanted, *(name for text in wanted.values() for name in _names_of(text))}
    names = {side, *_names_of(text)}
    loaded = libraries_of(configured, libraries, names=names, used=used, project=project)
    backend = settings.torch_backend if spec.release is not None else spec.torch_backend
    return replace(spec, torch_backend=backend, libraries=loaded, **options)


def _names_of(text: str) -> set[str]:
    return {text, _in_full(text)} if text else set()


def _spec_and_options(
    table: Mapping[str, Any], wanted: Mapping[str, str], side: str, env_arguments: Sequence[str], *, file: str
) -> tuple[EnvSpec, dict[str, Any]]:
    """Return what the side is, and what ``[tool.compat.environments]`` says of it."""
    environments, place = table.get("environments", {}), f"{file}: {ROOT}.environments"
    ready = _ready_made(env_arguments, {*wanted, *wanted.values()})
    text = wanted[side]
    for name in (side, text):
        if name in ready:
            common = _environment_options(environments, "", place)
            return EnvSpec(name=name, interpreter=ready[name]), {"libraries": common.get("libraries", ())}
    written = f"{file}: {ROOT}.{side}"
    if not text:
        hint = f"write a torch release there, or give --{side} or --env {side}=PYTHON"
        raise ConfigError(f"{written}: missing", hint)
    where = written if text == table.get(side) else f"command line: --{side}"
    kind = RELEASE._replace(expected="a torch release such as 2.6.0")  # a shell takes its quotes away
    release = _in_full(kind.read(text, f"{where}: no --env NAME=PYTHON has this name"))
    return EnvSpec(name=f"torch {release}", release=release), _environment_options(environments, release, place)


def direction_of(old_release: str | None, new_release: str | None) -> Literal["backward", "forward"]:
    """Return "forward" (a rollback) if the new release is the earlier one, build suffixes aside, else "backward"."""
    try:
        old, new = (Version(text or "").public for text in (old_release, new_release))
    except InvalidVersion:
        return "backward"
    return "forward" if Version(new) < Version(old) else "backward"


def _ready_made(env_arguments: Sequence[str], used: Collection[str]) -> dict[str, str]:
    ready: dict[str, str] = {}
    for argument in env_arguments:
        name, _, interpreter = argument.partition("=")
        where = f"command line: --env {argument}"
        if not name.strip() or not interpreter.strip():
            raise ConfigError(f"{where}: expected NAME=PYTHON, such as old=/opt/torch21/bin/python")
        if name in ready:
            raise ConfigError(f"{where}: {name} is given twice", "keep one of them")
        if name not in used:
            raise ConfigError(f"{where}: no side uses {name}", f"refer to it with --old {name} or --new {name}")
        ready[name] = interpreter
    return ready


def _in_full(release: str) -> str:
    return re.sub(RELEASE_PATTERN, lambda match: match[1] + (match[2] or ".0") + match[3], release)


def _environment_options(table: object, release: str, where: str) -> dict[str, Any]:
    options: dict[str, Any] = read(table, TOP.keys["environments"], where)
    own: dict[str, dict[str, Any]] = {}
    for key in [key for key in options if key not in ENVIRONMENT]:
        full = _in_full(key)
        if full in own:
            raise ConfigError(f"{where}.{shown(key)}: {full} is configured twice", "keep one of the two tables")
        own[full] = options.pop(key)
    # A table for 2.6.0 holds for its builds too; one for 2.6.0+cpu comes on top.
    return {**options, **own.get(release.partition("+")[0], {}), **own.get(release, {})}
