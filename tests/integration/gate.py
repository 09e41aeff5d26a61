"""Runs the gate as a user would, in this process: its exit code, its output and its report."""

import contextlib
import subprocess
from dataclasses import dataclass
from pathlib import Path

from harness.core.report import RunReport
from harness.core.verdict import RowVerdict
from harness.report.json.report import load_report
from tests.programs import cli, one_defect

PROJECT = Path(__file__).resolve().parents[2]
DEADLINE_S = 1800  # as a C++ build may take: only a run that hangs takes as long


@dataclass(frozen=True)
class Run:
    """What the user sees, and the report behind it."""

    code: int
    out: str
    err: str
    folder: Path
    report: RunReport

    def row(self, model: str) -> RowVerdict:
        return next(row for row in self.report.judgement.rows if row.model == model)

    def kinds(self, model: str) -> set[str]:
        return {finding.kind for cell in self.row(model).cells for finding in cell.findings}


def harness(
    *arguments: str, timeout_s: float = DEADLINE_S, all_planted: bool = True
) -> "subprocess.CompletedProcess[str]":
    """Run a command of the harness in the project, with its environments whichever project is named.

    Args:
        all_planted: whether a run plants all defects, as every run does; with one of them it is some seconds shorter.
    """
    with contextlib.nullcontext() if all_planted else one_defect.planted():
        return cli.here(arguments, within_s=timeout_s)


def compat(reports: Path, *arguments: str, timeout_s: float = DEADLINE_S, all_planted: bool = True) -> Run:
    """Run the main job, told in full, with its reports under ``reports``; it must have left a report."""
    done = harness(
        "compat", "--out", str(reports), "--verbose", *arguments, timeout_s=timeout_s, all_planted=all_planted
    )
    return finished(done, reports)


def finished(done: "subprocess.CompletedProcess[str]", reports: Path) -> Run:
    """Return a finished run with its newest report."""
    found = sorted(reports.glob("*/report.json"))
    assert found, f"no report; exit code {done.returncode}\n{done.stdout}\n{done.stderr}"
    path = found[-1]
    report = load_report(path.read_bytes(), file=str(path))
    return Run(done.returncode, done.stdout, done.stderr, path.parent, report)
