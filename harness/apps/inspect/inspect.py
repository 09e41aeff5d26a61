"""The static check: read files, compare them with what releases accept. Nothing is loaded, nothing is run."""

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Literal

from harness.artifacts.archive.code import CodeMemory
from harness.artifacts.files import FoundFile, find_files, is_request_file, models_beside, others_in
from harness.checks.prediction.check import inspect_file
from harness.checks.prediction.known_releases import is_known, known, known_registry
from harness.core.archive import OperatorRegistry
from harness.core.environment import EnvSpec
from harness.core.errors import ConfigError
from harness.core.prediction import Inspection
from harness.core.text import counted, first_few
from harness.project import Project

NAMED = 3
SIDES: tuple[Literal["old", "new"], ...] = ("old", "new")


def inspect(project: Project, names: Sequence[str]) -> Inspection:
    files_named = find_files(names)
    wanted = [file for file in files_named if file.named or not is_request_file(file.path)] or files_named
    folders = [name for name in names if os.path.isdir(name)]  # noqa: PTH112  Path.is_dir raises where a name is too long
    beside = {path: (what, os.path.realpath(folder)) for folder in folders for path, what in models_beside(folder)}
    read = {path: FoundFile(path, folder) for path, (_, folder) in beside.items() if os.path.isfile(path)}  # noqa: PTH113
    wanted = (*wanted, *read.values())
    registries = _registries(project)
    across = {} if registries else {release: known_registry(release) for release in known()}
    progress = project.progress
    progress.stage("read", len(wanted))
    files = []
    memory = CodeMemory()
    for path, within in wanted:
        files.append(inspect_file(path, registries, memory, within=within, across=across))
        progress.step()
    progress.finish()
    for path, (what, _) in beside.items():
        if path not in read:
            progress.note(f"also there: {path}: {what}")
    if others := [path for path in others_in(names) if path not in beside]:
        named = first_few([Path(path).name for path in others], NAMED)
        progress.note(f"also there, and by their suffix no models: {counted(len(others), 'file')} ({named})")
    return Inspection(
        releases={side: files_named.torch for side, files_named in registries.items()}, files=tuple(files)
    )


def _registries(project: Project) -> dict[str, OperatorRegistry]:
    """Return what each named release accepts, by side; the configured pair is not taken unasked."""
    given = {argument.partition("=")[0] for argument in project.environments}
    sides = [side for side in SIDES if side in project.overrides or side in given]
    if not sides:
        if given:
            raise ConfigError("--env names no side", "say which one it is with --old NAME or --new NAME")
        return {}
    specs: dict[str, EnvSpec] = {side: project.side(side) for side in sides}
    to_build = {side: spec for side, spec in specs.items() if not is_known(spec)}
    registries = {side: known_registry(str(spec.release)) for side, spec in specs.items() if is_known(spec)}
    if to_build:
        from harness.checks.prediction.registries import registries_of
        from harness.probing.provision import build_environments

        builder = project.builder
        project.progress.stage("environments")
        environments = build_environments(to_build, builder)
        project.progress.stage("operators")
        registries |= registries_of(environments, builder.root)
    return {side: registries[side] for side in sides}
