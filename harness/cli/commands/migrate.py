"""``migrate``: can artifacts leave TorchScript, and what stands in the way."""

import argparse
from collections.abc import Sequence

from harness.cli.help import CommandHelp
from harness.cli.options import add_models, add_running, add_sides, add_verbose, options_of
from harness.cli.terminal import say, shown
from harness.report.formats import MIGRATION

HELP = CommandHelp(
    "Say which artifacts can leave TorchScript. Each is converted by torch's own converter (torch.export), saved as "
    ".pt2, loaded, and asked every request that it has; what it answers is compared with what TorchScript answers in "
    "the old release. What is known already is not run again.",
    (
        ("--artifacts models/ --new 2.15.0", "your files"),
        ("--artifacts models/ --manifest fleet.toml", "and whose they are"),
        ("--new 2.15.0 --releases 2.6.0", "and whether that release loads what 2.15.0 writes"),
        ("--new 2.15.0 --cure", "try and verify rewrites of what is not convertible"),
        ("--new 2.15.0 -k dlrm --package", "compile packages of AOTInductor as well, a minute for each"),
    ),
    "0 every artifact is ready, 1 one is not, 4 one was not decided, or there is none",
    "guide/migrate.md",
)


def add_options(command: argparse.ArgumentParser) -> None:
    """Add which releases, which models, and how far they go."""
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
    command.add_argument("--package", action="store_true", help="compile each with AOTInductor too: minutes")
    command.add_argument(
        "--cure",
        action="store_true",
        help="try rewrites on what is not convertible, and verify them; their price needs --package",
    )
    command.add_argument(
        "--explain",
        dest="parts",
        action="store_true",
        help="find the smallest part that is not convertible, for one model of each cause, with a reproducer",
    )
    command.add_argument("--fresh", action="store_true", help="ask again what earlier runs with the same --out found")
    command.add_argument("--format", choices=MIGRATION.names, default="console", help="how the answer is written")
    add_verbose(command)
    command.add_argument("--out", metavar="DIR", help="results that later runs go on with (default: reports/matrix)")


def call(parsed: argparse.Namespace, arguments: Sequence[str]) -> int:
    """Try every artifact."""
    from harness.machine.progress import Progress
    from harness.run.releases.migrate import migrate
    from harness.verdict.migration import exit_code

    found = migrate(
        options_of(parsed, arguments),
        parsed.loaders,
        Progress(),
        package=parsed.package,
        fresh=parsed.fresh,
        cure=parsed.cure,
        explain=parsed.parts,
        manifest=parsed.manifest,
    )
    say(MIGRATION.render(parsed.format, found.migration, shown(found.folder, every_row=parsed.verbose)))
    return exit_code(found.migration)
