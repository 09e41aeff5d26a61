"""The run whose items pytest collects: one that is finished, or one that is made now."""

import contextlib
import io
import shlex
import traceback
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from harness.cli.options import project_of
from harness.cli.parser import parser
from harness.core.errors import ConfigError, GateError, SelectionError
from harness.core.text import visible
from harness.machine.files import keep_bug_report
from harness.machine.progress import Progress
from harness.plugin.items import report_in
from harness.project import Project
from harness.store.run_folder import LAST, PLAN, REPORT, find_run

MAY_BE_NAMED = "name a run, TorchScript files, a folder of them or a models.toml"


def split(words: str) -> list[str]:
    try:
        return shlex.split(words)
    except ValueError as error:
        raise pytest.UsageError(f"--torchscript-compat-options: {error}") from None


def options_from(words: Sequence[str], project: Path) -> Project:
    typed = ["--project", str(project), "compat", *words]
    errors = io.StringIO()
    try:
        with contextlib.redirect_stderr(errors), contextlib.redirect_stdout(errors):
            parsed = parser("torchscript-gate").parse_args(typed)
    except SystemExit:
        _, wrong, line = errors.getvalue().strip().rpartition("error: ")
        what = line if wrong else f"expected those of a run, got {shlex.join(words)}"  # such as -h
        raise ConfigError(f"options of compat: {what}", "see torchscript-gate compat -h") from None
    return project_of(parsed, typed)


def folder_of(what: str, words: Sequence[str], *, project: Path, make: Callable[[Project], Path] | None) -> Path:
    """Return the folder of the run that ``what`` names, or of one of the artifacts that it names, made now.

    ``what``: see ``--torchscript-compat``; ``make`` is None where no run may be made. Raises ``UsageError``: it is
    neither, an option is wrong, or the run could not be made.
    """
    try:
        folder = _finished(what, options_from(words, project).reports)
        if folder is None and make is None:
            raise ConfigError(
                f"{what} is no finished run, and its items are known only after a run",
                "leave out --collect-only, or name a run",
            )
        if folder is None and make is not None:
            folder = make(options_from([*words, "--artifacts", what], project))
        assert folder is not None
        report_in(folder)
    except GateError as error:
        raise pytest.UsageError(f"--torchscript-compat: {visible(str(error))}") from None
    except Exception:  # noqa: BLE001  our own bug: as the command line says it
        path = keep_bug_report(traceback.format_exc())
        raise pytest.UsageError(f"this is a bug of the gate; please report it with {path}") from None
    return folder


def _finished(what: str, reports: Path) -> Path | None:
    """Return a finished run's folder; None: ``what`` means artifacts. Raises ``SelectionError``: it is nothing."""
    if not what:
        raise SelectionError("it is empty, as where a variable is not set", MAY_BE_NAMED)
    path = Path(what).parent if Path(what).name == REPORT else Path(what)
    for candidate in (path, reports / what):
        if any((candidate / name).is_file() for name in (REPORT, PLAN)):
            return candidate.absolute()
    if what == LAST:
        return find_run(reports, what, with_report=True)
    if not Path(what).exists() and not any(character in what for character in "*?["):
        raise SelectionError(
            f"{what} is neither a finished run, here or in {reports}, nor a file",
            MAY_BE_NAMED,
        )
    return None


def made(options: Project, *, say: bool) -> Path:
    """Return the folder of a run made now; ``say``: progress goes to stderr. Raises ``GateError``."""
    from harness.apps.upgrade.execute import compat  # noqa: PLC0415  finished runs need nothing of it

    return compat(replace(options, progress=Progress(enabled=say))).folder
