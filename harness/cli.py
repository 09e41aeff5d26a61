"""The command line: parse, call one function of ``harness.commands``, render, exit code. Nothing else."""

import argparse
import os
import shutil
import signal
import sys
import traceback
from collections.abc import Callable, Sequence
from pathlib import Path

from harness import __version__
from harness.commands import compat, golden
from harness.commands.inspect import inspect
from harness.commands.options import Options, declared_models, settings_of, shown_path
from harness.domain.inspection import Inspection
from harness.domain.plan import CAPTURE_MODES, DEFAULT_SCENARIOS, RUNTIMES, SCENARIOS
from harness.errors import ExitCode, GateError
from harness.planning.schema import OPTIONS
from harness.policy.static_gate import exit_code
from harness.render.console import render_console
from harness.render.jsonreport import dump_report
from harness.render.junit import render_junit
from harness.render.markdown import render_markdown
from harness.render.sarif import render_sarif
from harness.render.static_json import dump_inspection
from harness.render.static_text import render_static
from harness.runtime import bug_report
from harness.runtime.progress import Progress

EPILOG = """\
exit codes: 0 compatible, 1 incompatible, 2 configuration, 3 environment not provisioned,
            4 inconclusive or nothing tested, 5 our own bug,
            125 untestable (git bisect run), 130 interrupted
"""


def parser() -> argparse.ArgumentParser:
    """Return the parser of ``python -m harness``."""
    top = argparse.ArgumentParser(
        prog="python -m harness",
        description="Will my TorchScript models survive the next torch upgrade?",
        epilog=EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    top.add_argument("--version", action="version", version=f"torchscript-upgrade-gate {__version__}")
    top.add_argument("--project", type=Path, default=Path.cwd(), help="folder with pyproject.toml (default: here)")
    verbs = top.add_subparsers(dest="verb", required=True, metavar="COMMAND")
    _add_compat(verbs.add_parser("compat", help="judge the upgrade from one release to another"))
    build = verbs.add_parser("env", help="build environments, one per torch release")
    build.add_argument("releases", nargs="*", metavar="RELEASE", help="default: the configured pair")
    report = verbs.add_parser("report", help="render a finished run again")
    report.add_argument("run", metavar="RUN", help="a run's folder or name, or 'last'")
    report.add_argument("--format", choices=sorted(FORMATS), default="console")
    rerun = verbs.add_parser("rerun", help="repeat one cell of a run")
    rerun.add_argument("run", metavar="RUN")
    rerun.add_argument("cell", metavar="CELL_ID", help="as the report prints it")
    rerun.add_argument("--latency", choices=("quick", "thorough"), help="another budget for a latency cell")
    _add_inspect(verbs.add_parser("inspect", help="say what files are and which release will load them; runs nothing"))
    _add_golden(verbs.add_parser("golden", help="propose, accept and list golden records"))
    for verb in (report, rerun):
        verb.add_argument("--out", metavar="DIR", help="where runs are kept (default: reports)")
    return top


def _add_compat(verb: argparse.ArgumentParser) -> None:
    verb.add_argument("--old", metavar="RELEASE", help="release that production runs, or the NAME of an --env")
    verb.add_argument("--new", metavar="RELEASE", help="release to move to, or the NAME of an --env")
    verb.add_argument(
        "--env",
        action="append",
        default=[],
        metavar="NAME=PYTHON",
        help="ready-made interpreter; NAME may be old or new",
    )
    verb.add_argument(
        "-k", dest="expression", metavar="EXPR", help="parts of names or tags: 'dlrm or (bert and not traced)'"
    )
    verb.add_argument(
        "--set",
        dest="assignments",
        action="append",
        default=[],
        metavar="KEY=VALUE",
        help="a key of [tool.compat] for this run, e.g. latency.limit=0.05; may be given again",
    )
    verb.add_argument("--list", action="store_true", help="list the models and stop")
    verb.add_argument("--device", choices=("auto", "cpu", "cuda"))
    verb.add_argument("--jobs", metavar="N", help="probes at the same time")
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
    verb.add_argument("--profile", metavar="NAME", help="serving profile, e.g. cpu_fusion")
    verb.add_argument("--new-profile", metavar="NAME", help="serving profile of the new side only")
    verb.add_argument(
        "--deadline", dest="deadlines.floor_s", metavar="SECONDS", help="no load or call is a hang before (default: 60)"
    )
    verb.add_argument("--latency", choices=("off", "quick", "thorough"), help="how much the duel may spend")
    verb.add_argument("--fixtures", metavar="DIR", help="folder of model declarations (default: fixtures/zoo)")
    verb.add_argument(
        "--golden", nargs="?", const="golden", metavar="DIR", help="golden records in place of the old environment"
    )
    verb.add_argument("--allow-same-torch", action="store_true", default=None, help="show the noise; never green")
    verb.add_argument("--resume", metavar="RUN", help="go on with an interrupted run ('last' is the newest)")
    verb.add_argument("--out", metavar="DIR", help="where runs are kept (default: reports)")


def _add_inspect(verb: argparse.ArgumentParser) -> None:
    verb.add_argument("files", nargs="+", metavar="FILES", help="artifacts, patterns, or folders of them")
    verb.add_argument("--old", metavar="RELEASE", help="predict loading in this release, or the NAME of an --env")
    verb.add_argument("--new", metavar="RELEASE", help="and in this one; without both only the facts are listed")
    verb.add_argument("--env", action="append", default=[], metavar="NAME=PYTHON", help="ready-made interpreter")
    verb.add_argument("--format", choices=sorted(INSPECTION_FORMATS), default="text")


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


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command and return its exit code; errors are one line each on standard error."""
    arguments = list(sys.argv[1:] if argv is None else argv)
    parsed = parser().parse_args(arguments)
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        return VERBS[parsed.verb](parsed, arguments)
    except KeyboardInterrupt:
        print("interrupted", file=sys.stderr)
        return ExitCode.INTERRUPTED
    except GateError as error:
        print(f"error: {error}", file=sys.stderr)
        return error.exit_code
    except Exception:  # our own bug: say so, keep the traceback for the report
        path = bug_report.keep(traceback.format_exc())
        print(f"error: this is a bug of the harness; please report it with {path}", file=sys.stderr)
        return ExitCode.INTERNAL


def _options(parsed: argparse.Namespace, arguments: Sequence[str]) -> Options:
    given = vars(parsed)
    return Options(
        project=parsed.project.resolve(),
        overrides={name: given[name] for name in OPTIONS if given.get(name) is not None},
        assignments=given.get("assignments") or (),
        environments=given.get("env") or (),
        expression=given.get("expression"),
        scenarios=given.get("scenario") or (),
        golden=given.get("golden"),
        out=given.get("out"),
        resume=given.get("resume"),
        arguments=arguments,
    )


def _compat(parsed: argparse.Namespace, arguments: Sequence[str]) -> int:
    options = _options(parsed, arguments)
    if parsed.list:
        _, settings = settings_of(options)
        for model in declared_models(options, settings):
            print(f"{model.name:34} {model.how:7} {' '.join(model.tags):44} {model.where}")
        return ExitCode.COMPATIBLE
    return _show(compat.compat(options, Progress()))


def _rerun(parsed: argparse.Namespace, arguments: Sequence[str]) -> int:
    return _show(compat.rerun(_options(parsed, arguments), parsed.run, parsed.cell, Progress()))


def _report(parsed: argparse.Namespace, arguments: Sequence[str]) -> int:
    finished = compat.read_report(_options(parsed, arguments), parsed.run)
    _say(FORMATS[parsed.format](finished))
    return finished.report.judgement.exit_code


def _env(parsed: argparse.Namespace, arguments: Sequence[str]) -> int:
    for environment in compat.build(_options(parsed, arguments), parsed.releases, Progress()):
        print(f"{environment.name:16} {environment.interpreter}")
    return ExitCode.COMPATIBLE


def _inspect(parsed: argparse.Namespace, arguments: Sequence[str]) -> int:
    found = inspect(_options(parsed, arguments), parsed.files, Progress())
    _say(INSPECTION_FORMATS[parsed.format](found))
    return exit_code(found)


def _say(text: str) -> None:
    """Write to standard output; a reader that stops reading, or knows ASCII only, does not change the exit code."""
    encoding = sys.stdout.encoding or "utf-8"
    try:
        sys.stdout.write(text.encode(encoding, "backslashreplace").decode(encoding))
        sys.stdout.flush()
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _golden(parsed: argparse.Namespace, arguments: Sequence[str]) -> int:
    options = _options(parsed, arguments)
    if parsed.action == "propose":
        for folder in golden.propose(options, parsed.run):
            print(f"proposed {folder}")
    elif parsed.action == "accept":
        for model in golden.accept(options, parsed.models, parsed.reason):
            print(f"accepted {model}")
    else:
        print(golden.status(options))
    return ExitCode.COMPATIBLE


def _console(finished: compat.Finished) -> str:
    colour = sys.stdout.isatty() and "NO_COLOR" not in os.environ
    return render_console(finished.report, width=_width(), colour=colour, directory=shown_path(finished.folder))


def _width() -> int:
    return max(80, min(120, shutil.get_terminal_size((100, 24)).columns))


def _show(finished: compat.Finished) -> int:
    _say(_console(finished))
    return finished.report.judgement.exit_code


FORMATS: dict[str, Callable[[compat.Finished], str]] = {
    "console": _console,
    "json": lambda finished: dump_report(finished.report).decode(),
    "junit": lambda finished: render_junit(finished.report),
    "markdown": lambda finished: render_markdown(finished.report),
}
INSPECTION_FORMATS: dict[str, Callable[[Inspection], str]] = {
    "json": dump_inspection,
    "sarif": render_sarif,
    "text": lambda found: render_static(found, width=_width()),
}
VERBS: dict[str, Callable[[argparse.Namespace, Sequence[str]], int]] = {
    "compat": _compat,
    "env": _env,
    "golden": _golden,
    "inspect": _inspect,
    "report": _report,
    "rerun": _rerun,
}
