"""What may be typed: the parser of the command line, and nothing else."""

import argparse
from pathlib import Path
from typing import Any

from harness import __version__
from harness.domain.plan import CAPTURE_MODES, DEFAULT_SCENARIOS, RUNTIMES, SCENARIOS
from harness.render import epilogs

REPORT_FORMATS = ("console", "html", "json", "junit", "markdown", "trace")
INSPECTION_FORMATS = ("json", "sarif", "text")
FIRST_BAD_FORMATS = ("console", "json")
MATRIX_FORMATS = ("console", "json", "markdown")
DOCTOR_FORMATS = ("console", "json")
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
EXPLAIN_S = "120"


def parser() -> argparse.ArgumentParser:
    """Return the parser of ``python -m harness``."""
    top = argparse.ArgumentParser(
        prog="python -m harness",
        description="Will my TorchScript models survive the next torch upgrade?",
        epilog=epilogs.HARNESS,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    top.add_argument("--version", action="version", version=f"torchscript-upgrade-gate {__version__}")
    top.add_argument("--project", type=Path, default=Path.cwd(), help="folder with pyproject.toml (default: here)")
    verbs = top.add_subparsers(dest="verb", required=True, metavar="COMMAND")
    _add_compat(verbs.add_parser("compat", help="judge the upgrade from one release to another"))
    build = verbs.add_parser("env", help="build environments, one per torch release")
    build.add_argument("releases", nargs="*", metavar="RELEASE", help="default: the configured pair")
    _add_doctor(verbs.add_parser("doctor", help="say whether this machine can run the gate; installs nothing"))
    report = verbs.add_parser("report", help="render a finished run again")
    report.add_argument("run", metavar="RUN", help="a run's folder or name, or 'last'")
    report.add_argument(
        "--format", choices=REPORT_FORMATS, default="console", help="html: the page; trace: for ui.perfetto.dev"
    )
    report.add_argument("--matrix", metavar="FILE", help="a matrix.json to show on the HTML page")
    rerun = verbs.add_parser("rerun", help="repeat one cell of a run")
    rerun.add_argument("run", metavar="RUN")
    rerun.add_argument("cell", metavar="CELL_ID", help="as the report prints it")
    rerun.add_argument("--latency", choices=("quick", "thorough"), help="another budget for a latency cell")
    bisect = verbs.add_parser("bisect", help="find whose doing a red cell is, and what cures it", epilog=epilogs.BISECT)
    bisect.formatter_class = argparse.RawDescriptionHelpFormatter
    _add_bisect(bisect)
    _add_mitigate(verbs.add_parser("mitigate", help="find the settings that cure a red cell, and their price"))
    _add_inspect(verbs.add_parser("inspect", help="say what files are and which release will load them; runs nothing"))
    _add_pack(verbs.add_parser("pack", help="write a golden bundle per model, for another team to judge by"))
    _add_matrix(verbs.add_parser("matrix", help="load what every release exports in every other one"))
    first_bad = verbs.add_parser("first-bad", help="find the first torch release that breaks a model")
    first_bad.epilog, first_bad.formatter_class = epilogs.FIRST_BAD, argparse.RawDescriptionHelpFormatter
    _add_bisect(first_bad, over="releases")
    _add_golden(verbs.add_parser("golden", help="propose, accept and list golden records"))
    for verb in (report, rerun):
        verb.add_argument("--out", metavar="DIR", help="where runs are kept (default: reports)")
    return top


def _add_compat(verb: argparse.ArgumentParser) -> None:
    _add_sides(verb)
    _add_models(verb)
    verb.add_argument("--list", action="store_true", help="list the models and stop")
    _add_running(verb, "--device", "--jobs")
    verb.add_argument("--init-threads", metavar="N", help="threads of the concurrent initialization")
    verb.add_argument(
        "--scenario",
        action="append",
        default=[],
        choices=(*SCENARIOS, "all"),
        help=f"may be given again; default: {', '.join(DEFAULT_SCENARIOS)}",
    )
    verb.add_argument("--init-rounds", metavar="N", help="repeat each initialization N times: bounds a rare hang")
    verb.add_argument("--runtime", choices=RUNTIMES, help="who initializes: the C++ worker or the Python one")
    verb.add_argument("--capture-mode", choices=CAPTURE_MODES, help="of CUDA graphs (default: thread_local)")
    _add_running(verb, "--profile", "--new-profile", "--deadline")
    verb.add_argument("--latency", choices=("off", "quick", "thorough"), help="how much the duel may spend")
    verb.add_argument(
        "--golden", nargs="?", const="golden", metavar="DIR", help="golden records in place of the old environment"
    )
    verb.add_argument("--allow-same-torch", action="store_true", default=None, help="show the noise; never green")
    verb.add_argument(
        "--rollback", action="store_const", const="probe", help="probe the way back as well, not only read it"
    )
    verb.add_argument(
        "--explain",
        nargs="?",
        const=EXPLAIN_S,
        metavar="SECONDS",
        help=f"search for the cause of red cells, the gravest first, within SECONDS in all ({EXPLAIN_S}); 0: none",
    )
    verb.add_argument("--resume", metavar="RUN", help="go on with an interrupted run ('last' is the newest)")
    verb.add_argument("--out", metavar="DIR", help="where runs are kept (default: reports)")


def _add_doctor(verb: argparse.ArgumentParser) -> None:
    verb.add_argument("named", nargs="*", metavar="RELEASE", help="releases, or NAMEs of --env (default: the pair)")
    _add_sides(verb)
    verb.add_argument("--env", action="append", default=[], metavar="NAME=PYTHON", help="ready-made interpreter")
    _add_running(verb, "--device", "--jobs")
    verb.add_argument("--runtime", choices=RUNTIMES, help="who initializes: the C++ worker or the Python one")
    verb.add_argument("--format", choices=DOCTOR_FORMATS, default="console")


def _add_sides(verb: argparse.ArgumentParser) -> None:
    verb.add_argument("--old", metavar="RELEASE", help="release that production runs, or the NAME of an --env")
    verb.add_argument("--new", metavar="RELEASE", help="release to move to, or the NAME of an --env")


def _add_running(verb: argparse.ArgumentParser, *names: str) -> None:
    """Add those of the options that say how models are run."""
    for name in names:
        verb.add_argument(name, **RUNNING[name])


def _add_models(verb: argparse.ArgumentParser) -> None:
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
    _add_library(verb)
    verb.add_argument(
        "--set",
        dest="assignments",
        action="append",
        default=[],
        metavar="KEY=VALUE",
        help="a key of [tool.compat] for this run, e.g. latency.limit=0.05; may be given again",
    )


def _add_library(verb: argparse.ArgumentParser) -> None:
    verb.add_argument(
        "--library",
        dest="libraries",
        action="append",
        default=[],
        metavar="[NAME=]LIB",
        help="operator library to load first: an .so or a module, in all environments or in that one",
    )


def _add_cell(verb: argparse.ArgumentParser) -> None:
    """Add what says which cell: one of a finished run, or that of a model."""
    told = "a finished run or 'last', in place of --model, --old, --new"
    verb.add_argument("run", nargs="?", metavar="RUN", help=told)
    verb.add_argument("cell_id", nargs="?", metavar="CELL_ID", help="one of its red cells, as its report prints it")
    verb.add_argument("--cell", metavar="CELL_ID", help="the same of the last run with a report, or of RUN")
    verb.add_argument("--model", metavar="NAME", help="which model; may be left out where there is only one")


def _add_bisect(verb: argparse.ArgumentParser, over: str | None = None) -> None:
    """Add the options of ``bisect``; ``first-bad`` is the same, over releases unless it is told otherwise."""
    _add_cell(verb)
    _add_sides(verb)
    verb.add_argument(
        "--over",
        metavar="WHAT",
        default=over,
        help="search since when it is bad: over 'releases' of torch, over 'dependencies' (all that differs beside "
        "torch), or over the versions of one of these, such as numpy",
    )
    verb.add_argument(
        "--releases",
        dest="named",
        nargs="+",
        default=[],
        metavar="RELEASE",
        help="of --over: releases to choose from, or NAMEs of --env (default: all that the package index has in "
        "between); versions, where it is over one dependency",
    )
    verb.add_argument(
        "--builds", type=int, metavar="N", help="of --over: environments to build between (default: what halving needs)"
    )
    _add_models(verb)
    _add_running(verb, "--device", "--jobs", "--profile", "--new-profile", "--deadline")
    verb.add_argument("--latency", choices=("off", "quick", "thorough"), help="hunt what is slower, too (default: off)")
    verb.add_argument(
        "--resume", metavar="RUN", help="go on with an interrupted bisect; with --over, repeat the command instead"
    )
    verb.add_argument("--format", choices=FIRST_BAD_FORMATS, default="console")
    verb.add_argument(
        "--out",
        metavar="DIR",
        help="where runs are kept (default: reports), and what later searches --over go on with (default: "
        "reports/matrix)",
    )


def _add_mitigate(verb: argparse.ArgumentParser) -> None:
    verb.formatter_class = argparse.RawDescriptionHelpFormatter
    verb.epilog = epilogs.MITIGATE
    _add_cell(verb)
    verb.add_argument(
        "--scenario", dest="sought", choices=SCENARIOS, help="which of its cells is to be cured (default: alone)"
    )
    verb.add_argument("--pairs", action="store_true", help="try pairs of settings also where one setting cures")
    _add_sides(verb)
    _add_models(verb)
    _add_running(verb, "--device", "--jobs", "--profile", "--new-profile", "--deadline")
    verb.add_argument("--latency", choices=("off", "quick", "thorough"), help="how much a price may cost")
    verb.add_argument("--resume", metavar="RUN", help="go on with an interrupted search")
    verb.add_argument("--out", metavar="DIR", help="where runs are kept (default: reports)")


def _add_inspect(verb: argparse.ArgumentParser) -> None:
    verb.add_argument("files", nargs="+", metavar="FILES", help="artifacts, patterns, or folders of them")
    verb.add_argument("--old", metavar="RELEASE", help="predict loading in this release, or the NAME of an --env")
    verb.add_argument("--new", metavar="RELEASE", help="and in this one; without both only the facts are listed")
    verb.add_argument("--env", action="append", default=[], metavar="NAME=PYTHON", help="ready-made interpreter")
    _add_library(verb)
    verb.add_argument("--format", choices=INSPECTION_FORMATS, default="text")


def _add_pack(verb: argparse.ArgumentParser) -> None:
    verb.add_argument("--old", metavar="RELEASE", help="release that answers, or the NAME of an --env")
    _add_models(verb)
    verb.add_argument("--into", metavar="DIR", default="bundles", help="where the bundles go (default: bundles)")
    _add_running(verb, "--device", "--jobs", "--profile")
    verb.add_argument("--out", metavar="DIR", help="where runs are kept (default: reports)")


def _add_matrix(verb: argparse.ArgumentParser) -> None:
    verb.add_argument(
        "--releases",
        dest="named",
        nargs="+",
        default=[],
        metavar="RELEASE",
        help="releases, or the NAMEs of --env, in this order (default: the configured ones)",
    )
    verb.add_argument(
        "--golden-in",
        metavar="RELEASE",
        help="whose answers given artifacts are compared with (default: --old of the configuration)",
    )
    _add_models(verb)
    _add_running(verb, "--device", "--jobs", "--profile", "--deadline")
    verb.add_argument("--fresh", action="store_true", help="ask again what earlier runs with the same --out found")
    verb.add_argument("--format", choices=MATRIX_FORMATS, default="console")
    verb.add_argument("--out", metavar="DIR", help="results that later runs go on with (default: reports/matrix)")


def _add_golden(verb: argparse.ArgumentParser) -> None:
    actions = verb.add_subparsers(dest="action", required=True, metavar="ACTION")
    actions.add_parser("status", help="list accepted records and waiting proposals")
    propose = actions.add_parser("propose", help="propose the golden outputs of a run as records")
    propose.add_argument("run", metavar="RUN")
    propose.add_argument("-k", dest="expression", metavar="EXPR")
    propose.add_argument("--out", metavar="DIR", help="where runs are kept (default: reports)")
    accept = actions.add_parser("accept", help="accept proposals")
    accept.add_argument("models", nargs="+", metavar="MODEL", help="names, or 'all'")
    accept.add_argument("--reason", required=True, help="why these outputs are right; kept in golden/index.json")
