"""``migrate``: can artifacts leave TorchScript, and what stands in the way."""

import argparse
from typing import TYPE_CHECKING

from harness.cli.help import CommandHelp
from harness.cli.options import add_format, add_models, add_running, add_sides, add_verbose
from harness.cli.terminal import say, shown

if TYPE_CHECKING:
    from harness.project import Project

HELP = CommandHelp(
    "migrate",
    "assess which artifacts can leave TorchScript; changes nothing",
    "Assess which artifacts can leave TorchScript; your files stay as they are. Each is converted by walking "
    "its graph under torch.export, or by torch's own converter where that comes further, saved as .pt2, loaded, and "
    "asked every request that it has; what it answers is compared with what TorchScript answers in the old release. "
    "What is known already is not run again.",
    (
        ("models/ --new 2.15.0", "your files"),
        ("models/ --manifest fleet.toml", "and whose they are"),
        ("--new 2.15.0 --releases 2.6.0", "and whether that release loads what 2.15.0 writes"),
        ("--new 2.15.0 --converter torch --explain", "find the smallest part that is not convertible"),
        ("--new 2.15.0 -k dlrm --package", "compile packages of AOTInductor as well, a minute for each"),
    ),
    "0 every artifact is ready, 1 one is not, 4 one was not decided, or there is none",
    "guide/migrate.md",
)


def add_options(command: argparse.ArgumentParser) -> None:
    from harness.report.formats import MIGRATION

    command.add_argument(
        "artifacts", nargs="*", action="extend", metavar="MODELS", help="files, folders or patterns, as --artifacts"
    )
    add_sides(command)
    command.add_argument(
        "--releases",
        dest="loaders",
        nargs="+",
        default=[],
        metavar="RELEASE",
        help="releases, or the NAMEs of --env, that must load the programs too",
    )
    add_models(command)
    command.add_argument("--manifest", metavar="FILE", help="a fleet.toml: whose the artifacts are")
    add_running(command, "--device", "--jobs", "--profile", "--deadline")
    command.add_argument(
        "--converter",
        choices=("both", "torch"),
        default="both",
        help="torch: leave out what the converter of torch does not convert (default: both)",
    )
    command.add_argument("--package", action="store_true", help="compile each with AOTInductor too: minutes")
    command.add_argument(
        "--explain",
        dest="parts",
        action="store_true",
        help="with --converter torch, find the smallest part that is not convertible, for one model of each cause",
    )
    command.add_argument("--fresh", action="store_true", help="ask again what earlier runs with the same --out found")
    add_format(command, MIGRATION.names)
    add_verbose(command)
    command.add_argument("--out", metavar="DIR", help="results that later runs go on with (default: reports/matrix)")


def call(parsed: argparse.Namespace, project: "Project") -> object:
    from harness.apps.migration.migrate import migrate
    from harness.core.errors import ConfigError
    from harness.report.formats import MIGRATION

    if parsed.parts and parsed.converter != "torch":
        raise ConfigError("--explain finds the smallest part for torch's own converter", "add --converter torch")
    migration, folder = migrate(
        project,
        parsed.loaders,
        package=parsed.package,
        walk=parsed.converter == "both",
        fresh=parsed.fresh,
        explain=parsed.parts,
        manifest=parsed.manifest,
    )
    say(MIGRATION.render(parsed.format, migration, shown(folder, every_row=parsed.verbose)))
    return migration
