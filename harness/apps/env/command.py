"""``env``: environments, built before anybody needs them."""

import argparse
from typing import TYPE_CHECKING

from harness.cli.help import CommandHelp

if TYPE_CHECKING:
    from harness.project import Project

HELP = CommandHelp(
    "env",
    "build environments, one per torch release",
    "Build the environments of torch releases, or say where they are. A run does this automatically.",
    (("2.1.2 2.6.0", "both; one that exists already takes no time"),),
    "0 all exist, 3 one could not be provisioned",
    "guide/environments.md",
)


def add_options(command: argparse.ArgumentParser) -> None:
    command.add_argument("releases", nargs="*", metavar="RELEASE", help="default: the configured pair")
    command.add_argument(
        "--torch-backend",
        metavar="BUILD",
        help="auto, default (what the package index has), or a build of PyTorch's own index: cpu, cu126",
    )


def call(parsed: argparse.Namespace, project: "Project") -> object:
    from harness.environments.pythons import parse_release
    from harness.probing.provision import build_environments

    wanted = parsed.releases or [project.settings.old, project.settings.new]
    specs = {name: project.release(parse_release(name), names=()) for name in wanted}
    project.progress.stage("environments")
    environments = build_environments(specs, project.builder)
    project.progress.finish()
    for environment in environments.values():
        print(f"{f'torch {environment.spec.version}':16} {environment.interpreter}")
    return None
