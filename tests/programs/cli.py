"""Runs of ``python -m harness``: as processes, watched from outside and interrupted; or in the process of a test."""

import _thread
import contextlib
import faulthandler
import io
import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from unittest import mock

from harness.cli import main
from harness.environments.builder import ROOT_VARIABLE, default_environment_root
from harness.store import probe_files
from tests.programs import stub

ROOT = Path(__file__).parents[2]
HARNESS = ("-m", "harness")
RUN_DEADLINE_S = 600.0
UNDONE_S = 60.0
"""What an interrupted run may take to end what it has started."""


@dataclass(frozen=True)
class Line:
    """A command line for one project folder: which environments, which models."""

    project: Path
    old: str
    new: str
    models: Sequence[str] = ("--fixtures", str(stub.MODELS))
    program: Sequence[str] = HARNESS

    @property
    def reports(self) -> Path:
        """Where the runs lie."""
        return self.project / "reports"

    def command(self, *more: str) -> list[str]:
        """Return the command that starts a run."""
        return [sys.executable, *self.program, *self.words(*more)]

    def words(self, *more: str) -> list[str]:
        """Return what is typed behind the program."""
        return [
            *("--project", str(self.project), "compat"),
            *("--env", f"old={self.old}", "--env", f"new={self.new}", "--old", "old", "--new", "new"),
            *("--latency", "off", "--jobs", "2", *self.models, *more),
        ]

    def start(self, *more: str) -> "subprocess.Popen[str]":
        """Start a run and return at once."""
        self.project.mkdir(exist_ok=True)
        return started(self.command(*more))

    def run(self, *more: str) -> "subprocess.CompletedProcess[str]":
        """Run to the end; in this process, unless the program is one of its own."""
        if self.program != HARNESS:
            return finish(self.start(*more))
        self.project.mkdir(exist_ok=True)
        return here(self.words(*more))

    def results(self) -> dict[Path, bytes]:
        """Return the stored results of all runs, by the folders of their probes."""
        return {folder: data for run in self.reports.glob("*") for folder, data in stored_results(run).items()}

    def report(self) -> dict[str, Any]:
        """Return the report of the only run."""
        (path,) = self.reports.glob("*/report.json")
        return read_report(path.parent)

    def judgement(self) -> object:
        """Return what the only run concluded, without what differs from run to run: times and folders."""
        return judgement_of(self.report())

    def wait_for_results(self, count: int, process: "subprocess.Popen[str]") -> None:
        """Wait until ``count`` probes have finished."""
        limit = time.monotonic() + RUN_DEADLINE_S
        while len(self.results()) < count:
            assert process.poll() is None, process.communicate()
            assert time.monotonic() < limit
            time.sleep(0.01)


def read_report(run: Path) -> dict[str, Any]:
    """Return the report of a run."""
    report: dict[str, Any] = json.loads((run / "report.json").read_bytes())
    return report


def judgement_of(report: dict[str, Any]) -> object:
    """Return what a report concludes, without what differs from run to run: times and folders."""
    judgement = report["judgement"]
    rows = [
        (row["model"], row["status"], [(cell["cell"], cell["status"], _kinds(cell)) for cell in row["cells"]])
        for row in judgement["rows"]
    ]
    return judgement["decision"], rows


def stored_results(run: Path) -> dict[Path, bytes]:
    """Return the stored results of a run, by the folders of their probes. One that is made again has other times."""
    found = {}
    for folder in probe_files.folders(run / "probes"):
        with contextlib.suppress(FileNotFoundError):
            found[folder] = probe_files.read_result(folder / probe_files.RESULT)
    return found


def started(command: Sequence[str], environment: Mapping[str, str] | None = None) -> "subprocess.Popen[str]":
    """Start a command of the harness in a session of its own and return at once.

    Args:
        environment: None is this process's, with the place where this project keeps what it has compiled.
    """
    return subprocess.Popen(
        command,
        cwd=ROOT,
        env={**os.environ, ROOT_VARIABLE: str(default_environment_root(ROOT))} if environment is None else environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )


def here(words: Sequence[str], within_s: float = RUN_DEADLINE_S) -> "subprocess.CompletedProcess[str]":
    """Run a command of the harness in this process: what a start of Python costs, not every test need pay.

    One that does not end in time is interrupted, as by Ctrl-C, and ends with 130; if that has no effect, the process ends
    and says where each thread was.
    """
    out, err = io.StringIO(), io.StringIO()
    set_here = {ROOT_VARIABLE: str(default_environment_root(ROOT)), "COLUMNS": "80"}
    with (
        mock.patch.dict(os.environ, set_here),
        contextlib.chdir(ROOT),
        contextlib.redirect_stdout(out),
        contextlib.redirect_stderr(err),
    ):
        assert sys.__stderr__ is not None
        faulthandler.dump_traceback_later(within_s + UNDONE_S, exit=True, file=sys.__stderr__)
        overdue = threading.Timer(within_s, _thread.interrupt_main)
        overdue.start()
        try:
            code = main(words)
        except SystemExit as ended:  # argparse's
            code = int(ended.code or 0)
        finally:
            overdue.cancel()
            faulthandler.cancel_dump_traceback_later()
    return subprocess.CompletedProcess(words, code, out.getvalue(), err.getvalue())


def _kinds(cell: dict[str, Any]) -> list[str]:
    return [finding["kind"] for finding in cell.get("findings", ())]


def finish(process: "subprocess.Popen[str]", within_s: float = RUN_DEADLINE_S) -> "subprocess.CompletedProcess[str]":
    """Return what a started run said; one that does not end in time is killed and fails the test."""
    try:
        out, err = process.communicate(timeout=within_s)
    except subprocess.TimeoutExpired:
        process.kill()
        out, err = process.communicate(timeout=30)
        raise AssertionError(f"the run did not end within {within_s:.0f} s\n{out}\n{err}") from None
    return subprocess.CompletedProcess(process.args, process.returncode, out, err)


def cut(line: Line, number: signal.Signals, after_results: int, *more: str) -> "subprocess.CompletedProcess[str]":
    """Start a run, send it a signal once it has stored some results, and return how it ended."""
    process = line.start(*more)
    line.wait_for_results(after_results, process)
    os.kill(process.pid, number)
    return finish(process, within_s=60.0)
