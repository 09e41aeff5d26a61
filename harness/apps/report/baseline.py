"""Compares a run with earlier ones: where their reports come from and are kept, and what has changed since."""

import os
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

from harness.checks.startup.rates import more_often
from harness.core.errors import ConfigError, RunDirError, SelectionError
from harness.core.outcome import Status
from harness.core.report import BaselineReport, CellTrend, Explained, RunReport
from harness.project import Project
from harness.report.json.report import dump_report, load_report
from harness.search.explained_cells import with_later
from harness.store.explanations import kept
from harness.store.run_folder import LAST, REPORT, RunDir, find_run, runs_in
from harness.verdict.causes import with_causes
from harness.verdict.regate import with_broken
from harness.verdict.since import since

KEPT, BASELINE = "baseline-report.json", "baseline"
READ = 12
"""Folders of earlier runs that are looked into, the newest: reports may be large."""


class Like(NamedTuple):
    """What the run is of that a baseline stands beside.

    ``old``, ``new``: names of its sides, empty where only the run will tell; ``run``: its name, which
    begins with its time; empty where it has not begun.
    """

    old: str
    new: str
    is_golden: bool
    models: frozenset[str] = frozenset()
    run: str = ""

    def fits(self, other: "Like") -> bool:
        """Whether ``other`` is a baseline of this: before it, of the same pair and kind, with half of its models."""
        alike = other.is_golden == self.is_golden and self.old in ("", other.old) and self.new in ("", other.new)
        is_before = not self.run or other.run < self.run
        return alike and is_before and 2 * len(self.models & other.models) >= len(self.models)


def like_of(report: RunReport) -> Like:
    models = frozenset(row.model for row in report.judgement.rows)
    return Like(report.old.name, report.new.name, report.old.golden, models, report.run)


def read_baseline(project: Project, name: str, like: Like) -> RunReport:
    """Return the report of another run, with what searches have found about it since.

    ``last`` is the newest finished one that fits; where there is none, the newest of all.
    """
    path = (_newest(project.reports, like) if name == LAST else None) or _report_file(project, name)
    try:
        data = path.read_bytes()
    except OSError as error:
        raise ConfigError(f"--baseline {name}: {path}: {error.strerror}", f"name a run, or its {REPORT}") from error
    try:
        report = load_report(data, file=str(path))
    except RunDirError as error:
        hint = "copy the report.json of a finished run there again, or leave --baseline out"
        raise RunDirError(f"--baseline: {error.message}", hint) from error
    if report.judgement.interrupted:
        raise RunDirError(f"--baseline: {report.run} was interrupted", "name a finished run")
    if path.name != REPORT:
        return report
    found = with_later(report.explained, kept(path.parent))
    return replace(report, explained=found, folder=str(path.parent.absolute()))


def keep_baseline(run_dir: RunDir, before: RunReport) -> None:
    """Store the other run's report in the folder of this one: ``--resume`` needs it, and the other may be deleted."""
    run_dir.write(KEPT, dump_report(replace(before, baseline=None, timelines=())))


def beside_kept(report: RunReport, folder: Path) -> RunReport:
    """Return the report with what has changed since the run whose report is kept in ``folder``; as it is without."""
    path = folder / KEPT
    if not path.is_file():
        return report
    return beside(report, load_report(path.read_bytes(), file=str(path)))


def beside(report: RunReport, before: RunReport) -> RunReport:
    """Return the report with what has changed since ``before``, and the fixes that it has verified and this one lacks.

    Its decision and exit code stay what they are, but for a model that works in neither release and did before.
    """
    found = since(before, report, more_often)
    report = with_broken(replace(report, baseline=found))
    known = tuple(_verified(before, report, found))
    return with_causes(replace(report, explained=with_later(report.explained, known))) if known else report


def _verified(before: RunReport, report: RunReport, found: BaselineReport) -> Iterator[Explained]:
    """Yield what fixes a red cell by the other run: of the same artifact, which failed alike in the same pair."""
    sides = [
        [side.fingerprint.torch if side.fingerprint else "" for side in (run.old, run.new)] for run in (before, report)
    ]
    if before.run == report.run or sides[0] != sides[1]:
        return
    digests = {model.model: model.artifact_digest for model in before.models}
    same = {
        model.model
        for model in report.models
        if model.artifact_digest and digests.get(model.model) == model.artifact_digest
    }
    open_ = {cell.cell for cell in report.judgement.cells if cell.status is Status.FAIL and cell.model in same}
    open_ -= {item.cell for item in found.changes if item.change is not CellTrend.UNCHANGED}
    open_ -= {item.cell for item in report.explained if item.fixes and item.by != BASELINE}
    for told in sorted(before.explained, key=lambda told: all(fix.price is None for fix in told.fixes)):
        archive = Path(before.folder, told.patched)
        there = bool(told.patched) and archive.is_file()
        fixes = tuple(replace(fix, run=fix.run or before.run) for fix in told.fixes if there or not fix.rewrites)
        if told.cell not in open_ or not fixes:
            continue
        open_.remove(told.cell)
        patched = os.path.relpath(archive, report.folder or ".") if there else ""
        yield replace(told, by=BASELINE, fixes=fixes, lines=(), paths=(), operators=(), seconds=0.0, patched=patched)


def _newest(reports: Path, like: Like) -> Path | None:
    for path in [folder / REPORT for folder in reversed(runs_in(reports)) if (folder / REPORT).is_file()][:READ]:
        try:
            known = load_report(path.read_bytes(), file=str(path))
        except (OSError, RunDirError):
            continue
        if not (known.judgement.interrupted or known.judgement.of_cell) and like.fits(like_of(known)):
            return path
    return None


def _report_file(project: Project, name: str) -> Path:
    given = Path(name)
    for path in (given, given / REPORT):
        if path.is_file():
            return path
    try:
        folder = find_run(project.reports, name, with_report=True)
    except SelectionError as error:
        raise SelectionError(f"--baseline: {error.message}", error.hint) from None
    if not (folder / REPORT).is_file():
        raise RunDirError(f"--baseline: {folder} has no {REPORT}: the run was interrupted", "name a finished run")
    return folder / REPORT
