"""Lets the compiler read every unit against other headers, and groups what it refuses by the name that it is about."""

import os
import re
import shlex
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from harness.checks.compiling.api_changes import change_of
from harness.checks.compiling.compile import Headers, Read, check_unit, compiles
from harness.checks.compiling.units import OF_LIBTORCH, Unit, units_of
from harness.checks.linking import known_symbols
from harness.core.compiling import BrokenApi, CompileCheck, CompiledUnit, CompilerError
from harness.core.environment import EnvSpec
from harness.core.errors import ConfigError
from harness.environments.cache import NATIVE
from harness.environments.native import INSTALL, find_compiler, standard_of, why_no_compiler
from harness.machine import pool
from harness.machine.files import folder_with, text_of
from harness.project import Project
from harness.store import codec
from harness.verdict.compiling import outcome_of

# Where headers lie below what users name: an include folder, LibTorch's zip, site-packages/torch, an environment.
PLACES = ("include", "torch/include", "lib/python*/site-packages/torch/include")
RELEASE = re.compile(r"\d+\.\d+(\.\d+)?(\+\w+)?")
API_INCLUDES = "torch/csrc/api/include"


def compile_check(
    project: Project, named: Sequence[Path], *, new: str, flags: str = "", jobs: int | None = None
) -> CompileCheck:
    """Return what becomes of sources when they are compiled against the headers of ``new``.

    Args:
        named: sources, databases of compile commands, and folders that have one.
        new: a release, whose environment is built where it is not there, or a folder with a LibTorch.
        flags: of sources that stand in no database.
        jobs: sources at a time; None: as many as cores.

    Raises:
        ConfigError: something named is not there or is no source, or ``new`` has no headers.
        EnvironmentUnavailable: the release cannot be installed.
    """
    compiler = find_compiler()
    if compiler is None:
        raise ConfigError(why_no_compiler(), INSTALL)
    units = units_of(named, shlex.split(flags), shlex.split(compiler))
    if not units:
        raise ConfigError(f"{', '.join(map(str, named))}: no source stands there", "name the database of a whole build")
    headers = _headers(project, new)
    name = f"torch-{headers.name}-sources" if RELEASE.fullmatch(headers.name) else "sources"
    cache = project.builder.root / NATIVE / f"{name}-{headers.identity[:12]}"
    project.progress.stage(f"compile against {headers.name}", len(units))

    def check(unit: Unit) -> tuple[CompiledUnit, Read]:
        with project.progress.running(Path(unit.file).name):
            done = check_unit(unit, headers, cache)
        if done[0].after:
            project.progress.red([unit.file])
        project.progress.step(unit.file)
        return done

    checked = pool.each(check, units, jobs=jobs or len(os.sched_getaffinity(0)))
    by_file = {unit.file: unit for unit in units}
    project.progress.stage("what to write")
    broken = [_verified(one, by_file[one.units[0]], headers) for one in _by_api([unit for unit, _ in checked])]
    project.progress.finish()
    return CompileCheck(
        new=headers.name,
        standard=headers.standard,
        units=tuple(unit for unit, _ in checked),
        broken=tuple(broken),
        outcomes={unit.file: outcome_of(unit) for unit, _ in checked},
        raised=sum(read.raised for _, read in checked),
        stopped=tuple(unit.file for unit, read in checked if read.stopped and unit.after),
        cached=sum(read.cached for _, read in checked),
    )


def _headers(project: Project, new: str) -> Headers:
    path = Path(new).absolute()  # a unit is read in the folder of its own
    if path.is_dir():
        place = path
    elif RELEASE.fullmatch(new):
        place = Path(project.builder.build(EnvSpec(name=f"torch {new}", release=new)).interpreter).parents[1]
    else:
        raise ConfigError(
            f"--new {new} is no release and no folder", "name a release such as 2.6.0, or a LibTorch's folder"
        )
    include = folder_with(place, PLACES, OF_LIBTORCH[0])
    if include is None:
        raise ConfigError(f"{new} has no headers of LibTorch", "name its folder: the zip's, or site-packages/torch")
    return Headers(
        name=new,
        folders=(include, include / API_INCLUDES),
        standard=standard_of(include),
        identity=codec.digest([str(include.resolve()), text_of(include / API_INCLUDES / "torch" / "version.h")]),
    )


def _by_api(units: Sequence[CompiledUnit]) -> list[BrokenApi]:
    """Return the errors by what they are about, that of most places first."""
    errors: dict[str, list[CompilerError]] = defaultdict(list)
    named: dict[str, list[str]] = defaultdict(list)
    for unit in units:
        for error in unit.after:
            name = error.api or error.message
            if error not in errors[name]:  # in a header of the server's own, which several units read
                errors[name].append(error)
            if unit.file not in named[name]:
                named[name].append(unit.file)
    broken = [
        BrokenApi(
            api=name,
            errors=tuple(found),
            units=tuple(named[name]),
            since=change.since if (change := change_of(name)) is not None else known_symbols.last_named(name),
            change=change,
        )
        for name, found in errors.items()
    ]
    return sorted(broken, key=lambda one: (-len(one.errors), one.api))


def _verified(broken: BrokenApi, unit: Unit, headers: Headers) -> BrokenApi:
    """Compile what the gate says to write, with the build's own headers and with the others."""
    if broken.change is None:
        return broken
    example = broken.change.example
    return replace(broken, verified=compiles(example, unit, headers) and compiles(example, unit, None))
