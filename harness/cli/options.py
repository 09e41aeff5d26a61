"""Options that several commands take: which sides, which models, which cell, and how they are run."""

import argparse
import os
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from harness.project import Project

# What is kept of a command line as it was typed; the rest are keys of the configuration, or a command's own.
TYPED = (
    *("assignments", "environments", "expression", "scenarios", "golden", "artifacts", "libraries", "out", "resume"),
    *("trusted", "until", "budget", "more", "policy_file"),
)
RUNNING: dict[str, dict[str, Any]] = {
    "--device": {"metavar": "NAME"},
    "--jobs": {"metavar": "N", "help": "probes at the same time"},
    "--profile": {"metavar": "NAME", "help": "serving profile, e.g. cpu_fusion"},
    "--new-profile": {"metavar": "NAME", "help": "serving profile of the new side only"},
    "--deadline": {
        "dest": "deadlines.floor_s",
        "metavar": "SECONDS",
        "help": "no load or call counts as a hang before that (default: 60; of bisect and mitigate: 10)",
    },
}


def add_sides(command: argparse.ArgumentParser) -> None:
    command.add_argument("--old", metavar="RELEASE", help="release that production runs, or the NAME of an --env")
    command.add_argument("--new", metavar="RELEASE", help="release to move to, or the NAME of an --env")


def add_running(command: argparse.ArgumentParser, *names: str) -> None:
    from harness.core.devices import TABLE

    devices = f"{', '.join(TABLE)}, or one of the configuration (default: auto, the NVIDIA GPU if there is one)"
    for name in names:
        command.add_argument(name, **{"help": devices, **RUNNING[name]})


def add_models(command: argparse.ArgumentParser) -> None:
    command.add_argument(
        "--env",
        action="append",
        default=[],
        metavar="NAME=PYTHON",
        help="ready-made interpreter; NAME may be old or new",
    )
    command.add_argument(
        "--artifacts",
        action="extend",
        nargs="+",
        default=[],
        metavar="FILES",
        help="TorchScript and .pt2 files, bundles, folders, patterns or a models.toml, in place of the fixtures",
    )
    command.add_argument(
        "--artifact",
        dest="artifacts",
        action="append",
        default=[],
        metavar="FILE",
        help="one more file, as --artifacts (files of one folder share a server group); may be given again",
    )
    command.add_argument(
        "--fixtures", metavar="DIR", help="folder, package or entry point of declarations (default: fixtures/zoo)"
    )
    command.add_argument(
        "-k", dest="expression", metavar="EXPR", help="parts of names or tags: 'dlrm or (bert and not traced)'"
    )
    add_library(command)
    command.add_argument(
        "--set",
        dest="assignments",
        action="append",
        default=[],
        metavar="KEY=VALUE",
        help="a key of [tool.compat] for this run, e.g. latency.limit=0.05; may be given again",
    )


def add_library(command: argparse.ArgumentParser) -> None:
    command.add_argument(
        "--library",
        dest="libraries",
        action="append",
        default=[],
        metavar="[NAME=]LIB",
        help="operator library to load first: an .so or a module, in all environments or in that one",
    )


def add_policy(command: argparse.ArgumentParser) -> None:
    command.add_argument("--policy", metavar="FILE", help="what is acceptable, in place of [tool.compat.policy]")


def add_policy_keys(command: argparse.ArgumentParser) -> None:
    command.add_argument(
        "--set",
        dest="assignments",
        action="append",
        default=[],
        metavar="KEY=VALUE",
        type=_of_policy,
        help="a key of the policy, e.g. limits.steady=1.10 or severity.values=warn; may be given again",
    )


def _of_policy(text: str) -> str:
    """Return the assignment of a key of the policy as one of ``[tool.compat]``."""
    return text if text.startswith("policy.") else f"policy.{text}"


def add_baseline(command: argparse.ArgumentParser) -> None:
    text = "an earlier run, 'last', or a report.json: shows what is new, fixed or flaky since"
    command.add_argument("--baseline", metavar="RUN", help=text)


def add_format(
    command: argparse.ArgumentParser, names: Sequence[str], note: str = "", *, default: str = "console"
) -> None:
    """Add ``--format``; ``note``: what one of them is for, in its help."""
    text = f"{', '.join(names)} (default: {default}){f'; {note}' if note else ''}"
    command.add_argument("--format", choices=names, default=default, metavar="FORMAT", help=text)


def add_verbose(command: argparse.ArgumentParser) -> None:
    text = "on the console, every model and every red cell; without it at most 60 lines"
    command.add_argument("--verbose", action="store_true", help=text)


def add_trust(command: argparse.ArgumentParser) -> None:
    text = "accept a run that is another user's or holds links: what its plan names is executed"
    command.add_argument("--trust", dest="trusted", action="store_true", help=text)


def add_out(command: argparse.ArgumentParser) -> None:
    command.add_argument("--out", metavar="DIR", help="where runs are kept (default: reports)")


def add_cell(command: argparse.ArgumentParser) -> None:
    text = "a finished run or 'last', in place of --model, --old, --new"
    command.add_argument("run", nargs="?", metavar="RUN", help=text)
    add_trust(command)
    command.add_argument("cell_id", nargs="?", metavar="CELL_ID", help="one of its red cells, as its report prints it")
    command.add_argument("--cell", metavar="CELL_ID", help="such a cell of RUN, or of the last run with a report")
    command.add_argument("--model", metavar="NAME", help="which model; may be left out where there is only one")


def project_of(parsed: argparse.Namespace, arguments: Sequence[str]) -> "Project":
    """Return the project that the command line names, with what it says beside that."""
    from harness.config.schema import OPTIONS
    from harness.project import Project

    given = {name: value for name, value in vars(parsed).items() if value not in (None, [])}
    names = {"env": "environments", "policy": "policy_file", "scenario": "scenarios"}
    typed = {names.get(name, name): value for name, value in given.items()}
    return Project(
        folder=Path(os.path.realpath(parsed.project or Path.cwd())),
        assumed=parsed.project is None,
        overrides={name: given[name] for name in OPTIONS if name in given},
        **{name: typed[name] for name in TYPED if name in typed},
        arguments=arguments,
    )
