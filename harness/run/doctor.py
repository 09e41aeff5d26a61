"""The doctor by command: the environments that are named, or the configured pair."""

from collections.abc import Sequence
from typing import Literal

from harness.apps.doctor.preflight import examine
from harness.core.errors import ConfigError
from harness.core.machine import Checkup
from harness.environments.sides import env_spec
from harness.machine.progress import Progress
from harness.run.options import CONFIG, Options, builder_for, settings_of
from harness.run.releases.named import refuse_unused_interpreters, spec_of


def doctor(options: Options, releases: Sequence[str]) -> Checkup:
    """Return all checks of this machine for ``releases``, or for the configured pair; builds and imports nothing.

    Raises:
        ConfigError: a release or an option is wrong.
    """
    table, settings = settings_of(options)
    if releases:
        sides_too = [f"--{side}" for side in ("old", "new") if side in options.overrides]
        if sides_too:
            raise ConfigError(f"{' and '.join(sides_too)} beside {', '.join(releases)}", "name all the same way")
        refuse_unused_interpreters(options, releases)
        specs = [spec_of(name, options, table, settings, names=releases) for name in releases]
    else:
        sides: tuple[Literal["old", "new"], ...] = ("old", "new")
        specs = [
            env_spec(table, settings, side, options.environments, file=CONFIG, project=options.project)
            for side in sides
        ]
    each_once = {(spec.release, spec.interpreter): spec for spec in specs}
    return examine(list(each_once.values()), settings, builder_for(options, Progress(enabled=False)))
