"""``compat``: the main job."""

import argparse
from typing import TYPE_CHECKING

from harness.cli.help import CommandHelp
from harness.cli.options import (
    add_baseline,
    add_models,
    add_out,
    add_policy,
    add_running,
    add_sides,
    add_trust,
    add_verbose,
)
from harness.cli.terminal import say, terminal_width

if TYPE_CHECKING:
    from harness.project import Project

EXPLAIN_S = "120"

HELP = CommandHelp(
    "compat",
    "judge the upgrade from one release to another",
    "Judge the upgrade: export each model in the old release, load and call it in the new one, compare answers, "
    "initialization and latency. The last line is the decision.",
    (
        ("--artifacts models/", "your own TorchScript files"),
        ("--old 2.1.2 --new 2.6.0", "the configured models, from one release to another"),
        ("--list", "list the models; runs nothing"),
        ('-k "dlrm or bert" --latency off', "some of them, without timing: the quickest check"),
        ("--explain", "search for the cause of each red cell, two minutes in all"),
        ("--migrate", "and which models could leave TorchScript as well"),
        ("--budget 5min", "what does not fit is left out, named, and done by --resume last"),
        ("--resume last", "go on with an interrupted run"),
        ("--resume last --more 10min", "ten more minutes for the latencies that are undecided"),
    ),
    "0 compatible, 1 incompatible, 3 environment not provisioned, 4 inconclusive or nothing tested",
    "guide/getting-started.md",
    often=(
        *("--old", "--new", "--artifacts", "-k", "--list", "--latency", "--until", "--budget", "--explain", "--policy"),
        "--resume",
    ),
)


def add_options(command: argparse.ArgumentParser) -> None:
    from harness.core.plan import CAPTURE_MODES, DEFAULT_SCENARIOS, RUNTIMES, UNTIL
    from harness.serving.scenarios import CELL_SCENARIOS, SCENARIOS

    add_sides(command)
    add_models(command)
    command.add_argument("--list", action="store_true", help="list the models and stop")
    add_running(command, "--device", "--jobs")
    command.add_argument("--init-threads", metavar="N", help="threads of the concurrent initialization")
    command.add_argument(
        "--scenario",
        action="append",
        default=[],
        choices=(*CELL_SCENARIOS, "all"),
        metavar="NAME",
        help=f"{', '.join(SCENARIOS)}, or all; may be given again (default: {', '.join(DEFAULT_SCENARIOS)})",
    )
    command.add_argument("--init-rounds", metavar="N", help="repeat each initialization N times, to bound a rare hang")
    command.add_argument("--runtime", choices=RUNTIMES, help="which worker initializes and is timed")
    command.add_argument(
        "--capture-mode", choices=CAPTURE_MODES, help="how graphs are captured (default: thread_local)"
    )
    command.add_argument("--capture-warm-calls", metavar="N", help="calls in a capture's stream before it (default: 3)")
    add_running(command, "--profile", "--new-profile", "--deadline")
    command.add_argument("--latency", choices=("off", "quick", "thorough"), help="how long the benchmark may take")
    command.add_argument("--until", choices=UNTIL, help="end before timing; --resume goes on with it")
    command.add_argument(
        "--budget",
        metavar="TIME",
        help="end within 90s, 5min, 1h from when the environments stand; --resume goes on with what was left out",
    )
    command.add_argument(
        "--golden", nargs="?", const="golden", metavar="DIR", help="golden records in place of the old environment"
    )
    command.add_argument(
        "--allow-same-torch",
        action="store_true",
        default=None,
        help="one torch on both sides, to see the noise; never green",
    )
    command.add_argument(
        "--fresh",
        action="store_true",
        default=None,
        help="ask again what earlier runs were answered of the same artifacts, releases and settings",
    )
    command.add_argument(
        "--rollback",
        action="store_const",
        const="probe",
        help="load and call what the new release exports in the old one, not only read it",
    )
    command.add_argument(
        "--explain",
        nargs="?",
        const=EXPLAIN_S,
        metavar="SECONDS",
        help=f"search for the cause of red cells, the gravest first, within SECONDS in all ({EXPLAIN_S}); 0: none",
    )
    command.add_argument(
        "--migrate",
        action="store_true",
        default=None,
        help="say of each model, too, whether it could leave TorchScript in the new release; decides nothing",
    )
    add_policy(command)
    add_baseline(command)
    add_verbose(command)
    command.add_argument("--resume", metavar="RUN", help="go on with an interrupted run ('last' is the newest)")
    add_trust(command)
    command.add_argument("--more", metavar="TIME", help="with --resume: time what is undecided for 90s, 10min, 1h more")
    add_out(command)


def call(parsed: argparse.Namespace, project: "Project") -> object:
    from harness.apps.report.command import show_run
    from harness.apps.upgrade.execute import compat
    from harness.config.selection import select
    from harness.report.text.models import render_models

    if parsed.list:
        known = project.models
        say(render_models(select(known.models, project.expression), known.notes, width=terminal_width()))
        return None
    return show_run(compat(project, baseline=parsed.baseline), verbose=parsed.verbose)
