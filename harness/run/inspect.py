"""The static check: read files, compare them with what releases accept. Nothing is loaded, nothing is run."""

from collections.abc import Sequence
from typing import Literal

from harness.artifacts.archive.code import CodeMemory
from harness.artifacts.files import find_files
from harness.artifacts.given import is_request_file
from harness.checks.prediction.check import inspect_file
from harness.checks.prediction.registries import registries_of
from harness.core.archive import OperatorRegistry
from harness.core.environment import EnvSpec
from harness.core.errors import ConfigError
from harness.core.prediction import Inspection
from harness.environments.sides import env_spec
from harness.machine.progress import Progress
from harness.probing.provision import build_environments
from harness.run.options import CONFIG, Options, builder_for, settings_of

SIDES: tuple[Literal["old", "new"], ...] = ("old", "new")


def inspect(options: Options, names: Sequence[str], progress: Progress) -> Inspection:
    """Return what the files are and hold, and what the releases that were named will do with them.

    Raises:
        SelectionError: a name means no file.
        ConfigError: a release or an environment is named wrongly.
        EnvironmentUnavailable: a release could not be provisioned or asked.
    """
    found = find_files(names)
    wanted = [file for file in found if file.named or not is_request_file(file.path)] or found
    registries = _registries(options, progress)
    progress.stage("read", len(wanted))
    files = []
    memory = CodeMemory()
    for path, within in wanted:
        files.append(inspect_file(path, registries, memory, within=within))
        progress.step()
    progress.finish()
    return Inspection(releases={side: found.torch for side, found in registries.items()}, files=tuple(files))


def _registries(options: Options, progress: Progress) -> dict[str, OperatorRegistry]:
    """Return what each named release accepts, by side; the configured pair is not taken unasked."""
    given = {argument.partition("=")[0] for argument in options.environments}
    sides = [side for side in SIDES if side in options.overrides or side in given]
    if not sides:
        if given:
            raise ConfigError("--env names no side", "say which one it is with --old NAME or --new NAME")
        return {}
    table, settings = settings_of(options)
    specs: dict[str, EnvSpec] = {
        side: env_spec(
            table,
            settings,
            side,
            options.environments,
            file=CONFIG,
            libraries=options.libraries,
            project=options.project,
        )
        for side in SIDES
        if side in sides
    }
    builder = builder_for(options, progress)
    progress.stage("environments")
    environments = build_environments(specs, builder)
    progress.stage("operators")
    return registries_of(environments, builder.root)
