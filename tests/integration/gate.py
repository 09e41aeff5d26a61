"""Runs the gate as a user would: a process, its exit code, its output and its report."""

import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

from harness.domain.report import RunReport
from harness.domain.verdict import RowVerdict
from harness.environments.builder import ROOT_VARIABLE, default_environment_root
from harness.report.json.report import load_report
from tests.programs import cli

PROJECT = Path(__file__).resolve().parents[2]
ONE_DEFECT = PROJECT / "tests" / "programs" / "one_defect.py"
DEADLINE_S = 400
STARTS_NOTHING = {"gate", "golden", "report", "waivers"}
"""Verbs whose commands run in this process."""


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
    """Run ``python -m harness`` in the project, with its environments whichever project is named.

    Args:
        all_planted: whether a run plants all defects, as every run does; with one of them it is some seconds shorter.
    """
    if arguments[0] in STARTS_NOTHING:
        return cli.here(arguments)
    command = [sys.executable, *(("-m", "harness") if all_planted else (str(ONE_DEFECT),)), *arguments]
    env = {**os.environ, ROOT_VARIABLE: str(default_environment_root(PROJECT))}
    return subprocess.run(command, cwd=PROJECT, capture_output=True, text=True, timeout=timeout_s, check=False, env=env)


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
