"""The doctor by command: the environments that are named, or the configured pair."""

from collections.abc import Sequence
from dataclasses import replace

from harness.apps.doctor.preflight import examine
from harness.core.errors import ConfigError
from harness.core.machine import Checkup
from harness.machine.progress import Progress
from harness.project import Project


def doctor(project: Project, releases: Sequence[str]) -> Checkup:
    if releases:
        sides_too = [f"--{side}" for side in ("old", "new") if side in project.overrides]
        if sides_too:
            raise ConfigError(f"{' and '.join(sides_too)} beside {', '.join(releases)}", "name all the same way")
        specs = list(project.releases(releases).values())
    else:
        specs = [project.side("old"), project.side("new")]
    each_once = {(spec.release, spec.interpreter): spec for spec in specs}
    quiet = replace(project, progress=Progress(enabled=False))
    return examine(list(each_once.values()), project.settings, quiet.builder)
