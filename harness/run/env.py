"""Environments by command: one per torch release, built before anybody needs them."""

from collections.abc import Sequence
from dataclasses import replace

from harness.core.environment import Environment
from harness.environments.pythons import parse_release
from harness.environments.sides import env_spec
from harness.machine.progress import Progress
from harness.probing.provision import build_environments
from harness.run.options import CONFIG, Options, builder_for, settings_of


def build(options: Options, releases: Sequence[str], progress: Progress) -> list[Environment]:
    """Build the environments of ``releases`` (the configured pair if none is named) side by side."""
    table, settings = settings_of(options)
    wanted = releases or [settings.old, settings.new]
    specs = {}
    for release in wanted:
        one = replace(settings, new=parse_release(release))
        specs[release] = env_spec(table, one, "new", (), file=CONFIG)
    progress.stage("environments")
    environments = list(build_environments(specs, builder_for(options, progress)).values())
    progress.finish()
    return environments
