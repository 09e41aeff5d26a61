"""The doctor by command: the environments that are named, or the configured pair."""

from collections.abc import Mapping, Sequence
from typing import Any, Literal

from harness.doctor.preflight import examine
from harness.domain.environment import EnvSpec
from harness.domain.machine import Checkup
from harness.domain.plan import Settings
from harness.environments.sides import env_spec
from harness.errors import ConfigError
from harness.run.options import CONFIG, Options, builder_for, settings_of
from harness.run.releases.named import refuse_unused_interpreters, spec_of
from harness.system.progress import Progress


def doctor(options: Options, releases: Sequence[str]) -> Checkup:
    """Return all checks of this machine for ``releases``, or for the configured pair; builds and imports nothing.

    Raises:
        ConfigError: a release or an option is wrong.
    """
    table, settings = settings_of(options)
    specs = _specs(options, releases, table, settings)
    return examine(specs, settings, builder_for(options, Progress(enabled=False)))


def _specs(options: Options, releases: Sequence[str], table: Mapping[str, Any], settings: Settings) -> list[EnvSpec]:
    """Return the environments that were asked for, each once."""
    if releases:
        sides_too = [f"--{side}" for side in ("old", "new") if side in options.overrides]
        if sides_too:
            raise ConfigError(f"{' and '.join(sides_too)} beside {', '.join(releases)}", "name all the same way")
        refuse_unused_interpreters(options, releases)
        asked = [spec_of(name, options, table, settings, names=releases) for name in releases]
    else:
        sides: tuple[Literal["old", "new"], ...] = ("old", "new")
        asked = [
            env_spec(table, settings, side, options.environments, file=CONFIG, project=options.project)
            for side in sides
        ]
    return list({(spec.release, spec.interpreter): spec for spec in asked}.values())
