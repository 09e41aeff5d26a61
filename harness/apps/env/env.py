"""Environments by command: one per torch release, built before anybody needs them."""

from collections.abc import Sequence

from harness.domain.environment import Environment
from harness.environments.pythons import parse_release
from harness.probing.provision import build_environments
from harness.project import Project


def build(project: Project, releases: Sequence[str]) -> list[Environment]:
    """Build the environments of ``releases`` (the configured pair if none is named) side by side."""
    wanted = releases or [project.settings.old, project.settings.new]
    specs = {release: project.release(parse_release(release), names=()) for release in wanted}
    project.progress.stage("environments")
    environments = list(build_environments(specs, project.builder).values())
    project.progress.finish()
    return environments
