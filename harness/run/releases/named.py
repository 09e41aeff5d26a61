"""Releases that a command line names one by one: what to build or use for each, and where what they say is kept."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from harness.config.command_words import OTHER_SIDE
from harness.core.environment import EnvSpec
from harness.core.errors import ConfigError
from harness.core.plan import Settings
from harness.environments.sides import env_spec
from harness.run.options import CONFIG, Options

# Shared by the version matrix and the search for the first bad release: what either has probed is known to both.
FOLDER = "matrix"


def store_folder(options: Options) -> Path:
    """Return the folder that keeps results for later commands."""
    return options.reports if options.out is not None else options.reports / FOLDER


def refuse_unused_interpreters(options: Options, names: Collection[str]) -> None:
    """Refuse an ``--env`` whose NAME is none of the releases."""
    unused = next((name for name in map(_name_of, options.environments) if name not in names), None)
    if unused is not None:
        raise ConfigError(f"--env {unused}: it is none of the releases", f"name it: --releases {unused} ...")


def sides_given(options: Options) -> frozenset[str]:
    """Return the sides that an ``--env`` replaces by its interpreter, whatever releases they are else."""
    return frozenset(OTHER_SIDE) & set(map(_name_of, options.environments))


def interpreters_for(name: str, options: Options) -> list[str]:
    """Return the arguments of ``--env`` for one release."""
    return [argument for argument in options.environments if _name_of(argument) == name]


def libraries_for(name: str, options: Options, names: Collection[str]) -> list[str]:
    """Return the arguments of ``--library`` that hold for one release; ``names`` are all that they may be meant for."""
    return [argument for argument in options.libraries if library_of(argument, names) in (None, name)]


def library_of(argument: str, names: Collection[str]) -> str | None:
    """Return which of ``names`` a ``NAME=LIB`` is for; None for all."""
    name, equals, _ = argument.partition("=")
    return name if equals and name in names else None


def spec_of(
    name: str, options: Options, table: Mapping[str, Any], settings: Settings, *, names: Sequence[str]
) -> EnvSpec:
    """Return what to build or use for one release; ``names`` are all that libraries may be meant for."""
    return env_spec(
        table,
        replace(settings, old=name, new=name),
        "new",
        interpreters_for(name, options),
        file=CONFIG,
        libraries=libraries_for(name, options, names),
        project=options.project,
    )


def _name_of(argument: str) -> str:
    return argument.partition("=")[0]
