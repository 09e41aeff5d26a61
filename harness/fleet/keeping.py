"""``fleet store``: what a fleet's folder keeps, and what of it may go."""

import time
from dataclasses import replace
from pathlib import Path

from harness.domain.text import counted
from harness.fleet.plan import CACHE, RUNS, STORE, PlannedFleet
from harness.fleet.results import FleetResults
from harness.report.text.fleet import render_kept
from harness.report.words.phrases import size
from harness.store.run_folder import REPORT, RunDir
from harness.system import files

DAY_S = 86400.0


def status(planned: PlannedFleet) -> str:
    """Return how much is kept, in words."""
    with FleetResults(planned.folder / STORE) as results:
        found = results.status()
    taken = {name: files.size_of(planned.folder / name) for name in (CACHE, RUNS)}
    return render_kept(replace(found, cache_bytes=taken[CACHE], runs_bytes=taken[RUNS]))


def collect(planned: PlannedFleet, days: int, *, remove: bool) -> str:
    """Return what was not used for so many days, in words; it is removed if wanted. What the plan needs stays.

    Raises:
        RunDirError: something cannot be removed.
    """
    keep = {unit.key for unit in planned.plan.units}
    with FleetResults(planned.folder / STORE) as results:
        count, freed = results.collect(days, keep=keep, remove=remove)
    old = [path for path in _finished(planned.folder / RUNS) if _age_s(path / REPORT) > days * DAY_S]
    cached = [path for path in (planned.folder / CACHE).rglob("*") if path.is_file() and _age_s(path) > days * DAY_S]
    freed += sum(files.size_of(path) for path in (*old, *cached))
    for path in (*old, *cached) if remove else ():
        files.remove(path)
    what = f"{counted(count, 'result')}, {counted(len(old), 'run')}, {counted(len(cached), 'fetched file')}"
    verb = "removed" if remove else "to go"
    return f"{verb}: {what} not used for {days} days, {size(freed)}\n" + ("" if remove else "remove with --yes\n")


def _finished(runs: Path) -> list[Path]:
    return sorted(path.parent for path in runs.glob(f"*/{REPORT}") if not RunDir(path.parent).is_running)


def _age_s(path: Path) -> float:
    return time.time() - path.stat().st_mtime
