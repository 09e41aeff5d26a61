"""Options that several commands take: which sides, which models, which cell, and how they are run."""

import argparse
import os
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from harness.core.devices import TABLE

if TYPE_CHECKING:
    from harness.run.options import Options

RUNNING: dict[str, dict[str, Any]] = {
    "--device": {
        "metavar": "NAME",
        "help": f"{', '.join(TABLE)}, or one of the configuration (default: auto, the NVIDIA GPU if there is one)",
    },
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
    """Add the pair of releases."""
    command.add_argument("--old", metavar="RELEASE", help="release that production runs, or the NAME of an --env")
    command.add_argument("--new", metavar="RELEASE", help="release to move to, or the NAME of an --env")


def add_running(command: argparse.ArgumentParser, *names: str) -> None:
    """Add the named options of those that say how models are run."""
    for name in names:
        command.add_argument(name, **RUNNING[name])


def add_models(command: argparse.ArgumentParser) -> None:
    """Add the options that choose models and environments: the same for every command that runs models."""
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
    """Add operator libraries."""
    command.add_argument(
        "--library",
        dest="libraries",
        action="append",
        default=[],
        metavar="[NAME=]LIB",
        help="operator library to load first: an .so or a module, in all environments or in that one",
    )


def add_policy(command: argparse.ArgumentParser) -> None:
    """Add the file that says what is acceptable."""
    command.add_argument("--policy", metavar="FILE", help="what is acceptable, in place of [tool.compat.policy]")


def add_policy_keys(command: argparse.ArgumentParser) -> None:
    """Add keys of the policy, one by one."""
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
    """Add the earlier run that this one is compared with."""
    text = "an earlier run, 'last', or a report.json: shows what is new, fixed or flaky since; decides nothing"
    command.add_argument("--baseline", metavar="RUN", help=text)


def add_verbose(command: argparse.ArgumentParser) -> None:
    """Add the option that leaves nothing out on the console."""
    text = "on the console, every model and every red cell; without it at most 60 lines"
    command.add_argument("--verbose", action="store_true", help=text)


def add_trust(command: argparse.ArgumentParser) -> None:
    """Add the option that accepts a run which somebody else has made."""
    text = "accept a run that is another user's or holds links: what its plan names is executed"
    command.add_argument("--trust", dest="trusted", action="store_true", help=text)


def add_out(command: argparse.ArgumentParser) -> None:
    """Add where runs are kept."""
    command.add_argument("--out", metavar="DIR", help="where runs are kept (default: reports)")


def add_cell(command: argparse.ArgumentParser) -> None:
    """Add the options that choose one cell: of a finished run, or of a model."""
    text = "a finished run or 'last', in place of --model, --old, --new"
    command.add_argument("run", nargs="?", metavar="RUN", help=text)
    add_trust(command)
    command.add_argument("cell_id", nargs="?", metavar="CELL_ID", help="one of its red cells, as its report prints it")
    command.add_argument("--cell", metavar="CELL_ID", help="such a cell of RUN, or of the last run with a report")
    command.add_argument("--model", metavar="NAME", help="which model; may be left out where there is only one")


def options_of(parsed: argparse.Namespace, arguments: Sequence[str]) -> "Options":
    """Return the options that were typed."""
    from harness.config.schema import OPTIONS
    from harness.run.options import Options

    given = vars(parsed)
    return Options(
        project=Path(os.path.realpath(parsed.project)),
        overrides={name: given[name] for name in OPTIONS if given.get(name) not in (None, [])},
        assignments=given.get("assignments") or (),
        environments=given.get("env") or (),
        expression=given.get("expression"),
        scenarios=given.get("scenario") or (),
        golden=given.get("golden"),
        artifacts=given.get("artifacts") or (),
        libraries=given.get("libraries") or (),
        out=given.get("out"),
        resume=given.get("resume"),
        trusted=given.get("trusted") or False,
        until=given.get("until") or "",
        more=given.get("more") or "",
        policy=given.get("policy"),
        arguments=arguments,
    )
