"""Options that several verbs take: which sides, which models, which cell, and how they are run."""

import argparse
from typing import Any

RUNNING: dict[str, dict[str, Any]] = {
    "--device": {"choices": ("auto", "cpu", "cuda"), "help": "auto: the GPU, if there is one"},
    "--jobs": {"metavar": "N", "help": "probes at the same time"},
    "--profile": {"metavar": "NAME", "help": "serving profile, e.g. cpu_fusion"},
    "--new-profile": {"metavar": "NAME", "help": "serving profile of the new side only"},
    "--deadline": {
        "dest": "deadlines.floor_s",
        "metavar": "SECONDS",
        "help": "no load or call is a hang before (default: 60; of bisect and mitigate: 10)",
    },
}


def add_sides(verb: argparse.ArgumentParser) -> None:
    """Add the pair of releases."""
    verb.add_argument("--old", metavar="RELEASE", help="release that production runs, or the NAME of an --env")
    verb.add_argument("--new", metavar="RELEASE", help="release to move to, or the NAME of an --env")


def add_running(verb: argparse.ArgumentParser, *names: str) -> None:
    """Add those of the options that say how models are run."""
    for name in names:
        verb.add_argument(name, **RUNNING[name])


def add_models(verb: argparse.ArgumentParser) -> None:
    """Add what says which models, in which environments: the same for every command that runs models."""
    verb.add_argument(
        "--env",
        action="append",
        default=[],
        metavar="NAME=PYTHON",
        help="ready-made interpreter; NAME may be old or new",
    )
    verb.add_argument(
        "--artifacts",
        action="extend",
        nargs="+",
        default=[],
        metavar="FILES",
        help="TorchScript files, bundles, folders, patterns or a models.toml, in place of the fixtures",
    )
    verb.add_argument(
        "--artifact",
        dest="artifacts",
        action="append",
        default=[],
        metavar="FILE",
        help="one of these, such as ranker.pt; may be given again",
    )
    verb.add_argument(
        "--fixtures", metavar="DIR", help="folder, package or entry point of declarations (default: fixtures/zoo)"
    )
    verb.add_argument(
        "-k", dest="expression", metavar="EXPR", help="parts of names or tags: 'dlrm or (bert and not traced)'"
    )
    add_library(verb)
    verb.add_argument(
        "--set",
        dest="assignments",
        action="append",
        default=[],
        metavar="KEY=VALUE",
        help="a key of [tool.compat] for this run, e.g. latency.limit=0.05; may be given again",
    )


def add_library(verb: argparse.ArgumentParser) -> None:
    """Add operator libraries."""
    verb.add_argument(
        "--library",
        dest="libraries",
        action="append",
        default=[],
        metavar="[NAME=]LIB",
        help="operator library to load first: an .so or a module, in all environments or in that one",
    )


def add_policy(verb: argparse.ArgumentParser) -> None:
    """Add the file that says what is acceptable."""
    verb.add_argument("--policy", metavar="FILE", help="what is acceptable, in place of [tool.compat.policy]")


def add_baseline(verb: argparse.ArgumentParser) -> None:
    """Add the earlier run that this one is told beside."""
    told = "an earlier run, 'last', or a report.json: tell what is new, fixed or flaky since; decides nothing"
    verb.add_argument("--baseline", metavar="RUN", help=told)


def add_out(verb: argparse.ArgumentParser) -> None:
    """Add where runs are kept."""
    verb.add_argument("--out", metavar="DIR", help="where runs are kept (default: reports)")


def add_cell(verb: argparse.ArgumentParser) -> None:
    """Add what says which cell: one of a finished run, or that of a model."""
    told = "a finished run or 'last', in place of --model, --old, --new"
    verb.add_argument("run", nargs="?", metavar="RUN", help=told)
    verb.add_argument("cell_id", nargs="?", metavar="CELL_ID", help="one of its red cells, as its report prints it")
    verb.add_argument("--cell", metavar="CELL_ID", help="the same of the last run with a report, or of RUN")
    verb.add_argument("--model", metavar="NAME", help="which model; may be left out where there is only one")
