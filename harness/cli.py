"""One command: call one function of ``harness.commands``, render, exit code. Nothing else."""

import argparse
import os
import shutil
import signal
import sys
import traceback
from collections.abc import Callable, Sequence
from pathlib import Path

from harness.arguments import parser
from harness.commands import compat, golden
from harness.commands.asked_cell import asked_cell
from harness.commands.bisect import RESULT, Hunted, bisect
from harness.commands.doctor import doctor
from harness.commands.inspect import inspect
from harness.commands.matrix import FinishedMatrix, matrix
from harness.commands.mitigate import mitigate
from harness.commands.options import Options, known_models, settings_of, shown_path
from harness.commands.over import search_over
from harness.commands.pack import pack
from harness.commands.rerun import rerun
from harness.domain.checkup import Checkup
from harness.domain.first_bad import FirstBad
from harness.domain.inspection import Inspection
from harness.domain.plain_text import visible
from harness.errors import ConfigError, ExitCode, GateError
from harness.planning.schema import OPTIONS
from harness.planning.selection import select
from harness.policy import checkup as checkup_policy
from harness.policy import curing, divergence
from harness.policy import first_bad as first_bad_policy
from harness.policy.matrix import judge_matrix
from harness.policy.static_gate import exit_code
from harness.render.checkup_json import dump_checkup
from harness.render.checkup_text import render_checkup
from harness.render.console import render_console
from harness.render.cures import render_curing
from harness.render.divergence_text import render_bisection
from harness.render.first_bad import dump_first_bad, render_first_bad
from harness.render.heat_map import render_heat_map
from harness.render.jsonreport import dump_report
from harness.render.junit import render_junit
from harness.render.markdown import render_markdown
from harness.render.matrix_json import dump_matrix
from harness.render.matrix_markdown import render_matrix_markdown
from harness.render.model_list import render_models
from harness.render.packing import render_packing
from harness.render.page.html import render_html
from harness.render.sarif import render_sarif
from harness.render.static_json import dump_inspection
from harness.render.static_text import render_static
from harness.render.trace import render_trace
from harness.runtime import bug_report
from harness.runtime.progress import Progress
from harness.runtime.run_trace import read_trace


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
        print(f"error: {visible(str(error))}", file=sys.stderr)
        return error.exit_code
    except Exception:  # our own bug: say so, keep the traceback for the report
        path = bug_report.keep(traceback.format_exc())
        print(f"error: this is a bug of the harness; please report it with {path}", file=sys.stderr)
        return ExitCode.INTERNAL


def _options(parsed: argparse.Namespace, arguments: Sequence[str]) -> Options:
    given = vars(parsed)
    return Options(
        project=parsed.project.resolve(),
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
        arguments=arguments,
    )


def _compat(parsed: argparse.Namespace, arguments: Sequence[str]) -> int:
    options = _options(parsed, arguments)
    if parsed.list:
        _, settings = settings_of(options)
        known = known_models(options, settings)
        _say(render_models(select(known.models, options.expression), known.notes))
        return ExitCode.COMPATIBLE
    return _show(compat.compat(options, Progress()))


def _rerun(parsed: argparse.Namespace, arguments: Sequence[str]) -> int:
    return _show(rerun(_options(parsed, arguments), parsed.run, parsed.cell, Progress()))


def _report(parsed: argparse.Namespace, arguments: Sequence[str]) -> int:
    if parsed.matrix is not None and parsed.format != "html":
        raise ConfigError("--matrix is shown by --format html only", "leave one of them out")
    finished = compat.read_report(_options(parsed, arguments), parsed.run, parsed.matrix)
    _say(FORMATS[parsed.format](finished))
    return finished.report.judgement.exit_code


def _env(parsed: argparse.Namespace, arguments: Sequence[str]) -> int:
    for environment in compat.build(_options(parsed, arguments), parsed.releases, Progress()):
        print(f"{environment.name:16} {environment.interpreter}")
    return ExitCode.COMPATIBLE


def _doctor(parsed: argparse.Namespace, arguments: Sequence[str]) -> int:
    found = doctor(_options(parsed, arguments), parsed.named)
    _say(DOCTOR_FORMATS[parsed.format](found))
    return checkup_policy.exit_code(found)


def _bisect(parsed: argparse.Namespace, arguments: Sequence[str]) -> int:
    options, verb, progress = _options(parsed, arguments), str(parsed.verb), Progress()
    asked = asked_cell(options, verb, run=parsed.run, cell=parsed.cell_id, key=parsed.cell, model=parsed.model)
    if parsed.over is not None:
        found = search_over(
            parsed.over,
            options,
            progress,
            model=parsed.model,
            asked=asked,
            releases=parsed.named,
            build_limit=parsed.builds,
        )
        _say(FIRST_BAD_FORMATS[parsed.format](found))
        return first_bad_policy.exit_code(found)
    if parsed.named or parsed.builds is not None:
        raise ConfigError("--releases and --builds belong to --over", "such as bisect --over releases")
    hunted = bisect(options, progress, model=parsed.model, asked=asked)
    _say(BISECTION_FORMATS[parsed.format](hunted))
    return divergence.exit_code(hunted.found)


def _mitigate(parsed: argparse.Namespace, arguments: Sequence[str]) -> int:
    options, verb = _options(parsed, arguments), str(parsed.verb)
    asked = asked_cell(options, verb, run=parsed.run, cell=parsed.cell_id, key=parsed.cell, model=parsed.model)
    if asked is not None and parsed.sought is not None:
        raise ConfigError("--scenario beside a cell, which has its own", "leave it out")
    cured = mitigate(
        options, Progress(), model=parsed.model, asked=asked, scenario=parsed.sought or "alone", pairs=parsed.pairs
    )
    _say(render_curing(cured.found, directory=shown_path(cured.folder), width=_width()))
    return curing.exit_code(cured.found)


def _inspect(parsed: argparse.Namespace, arguments: Sequence[str]) -> int:
    found = inspect(_options(parsed, arguments), parsed.files, Progress())
    _say(INSPECTION_FORMATS[parsed.format](found))
    return exit_code(found)


def _pack(parsed: argparse.Namespace, arguments: Sequence[str]) -> int:
    packing = pack(_options(parsed, arguments), Path(parsed.into), Progress())
    _say(render_packing(packing, width=_width()))
    return ExitCode.COMPATIBLE if packing.complete else ExitCode.INCONCLUSIVE


def _matrix(parsed: argparse.Namespace, arguments: Sequence[str]) -> int:
    options = _options(parsed, arguments)
    finished = matrix(options, parsed.named, parsed.golden_in, Progress(), fresh=parsed.fresh)
    _say(MATRIX_FORMATS[parsed.format](finished))
    return judge_matrix(finished.matrix).exit_code


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
    return render_console(finished.report, width=_width(), colour=_colour(), directory=shown_path(finished.folder))


def _heat_map(finished: FinishedMatrix) -> str:
    return render_heat_map(finished.matrix, judge_matrix(finished.matrix), width=_width(), colour=_colour())


def _colour() -> bool:
    return sys.stdout.isatty() and "NO_COLOR" not in os.environ


def _width() -> int:
    return max(80, min(120, shutil.get_terminal_size((100, 24)).columns))


def _show(finished: compat.Finished) -> int:
    _say(_console(finished))
    return finished.report.judgement.exit_code


FORMATS: dict[str, Callable[[compat.Finished], str]] = {
    "console": _console,
    "html": lambda finished: render_html(
        finished.report, directory=shown_path(finished.folder), matrix=finished.matrix
    ),
    "json": lambda finished: dump_report(finished.report).decode(),
    "junit": lambda finished: render_junit(finished.report),
    "markdown": lambda finished: render_markdown(finished.report),
    "trace": lambda finished: render_trace(read_trace(finished.folder)),
}
INSPECTION_FORMATS: dict[str, Callable[[Inspection], str]] = {
    "json": dump_inspection,
    "sarif": render_sarif,
    "text": lambda found: render_static(found, width=_width()),
}
BISECTION_FORMATS: dict[str, Callable[[Hunted], str]] = {
    "console": lambda hunted: render_bisection(hunted.found, directory=shown_path(hunted.folder), width=_width()),
    "json": lambda hunted: (hunted.folder / RESULT).read_text(encoding="utf-8"),
}
DOCTOR_FORMATS: dict[str, Callable[[Checkup], str]] = {
    "console": lambda found: render_checkup(found, colour=_colour()),
    "json": dump_checkup,
}
FIRST_BAD_FORMATS: dict[str, Callable[[FirstBad], str]] = {
    "console": lambda found: render_first_bad(found, width=_width()),
    "json": dump_first_bad,
}
MATRIX_FORMATS: dict[str, Callable[[FinishedMatrix], str]] = {
    "console": _heat_map,
    "json": lambda finished: dump_matrix(finished.matrix, judge_matrix(finished.matrix)),
    "markdown": lambda finished: render_matrix_markdown(
        finished.matrix, judge_matrix(finished.matrix), directory=shown_path(finished.folder)
    ),
}
VERBS: dict[str, Callable[[argparse.Namespace, Sequence[str]], int]] = {
    "bisect": _bisect,
    "compat": _compat,
    "doctor": _doctor,
    "env": _env,
    "first-bad": _bisect,
    "golden": _golden,
    "inspect": _inspect,
    "matrix": _matrix,
    "mitigate": _mitigate,
    "pack": _pack,
    "report": _report,
    "rerun": _rerun,
}
