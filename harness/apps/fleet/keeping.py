"""``fleet store``: what a fleet's folder keeps, and what of it may go."""

import time
from dataclasses import replace
from pathlib import Path

from harness.apps.fleet.plan import CACHE, RUNS, STORE, UNPACKED, PlannedFleet
from harness.apps.fleet.results import FleetResults
from harness.apps.fleet.stores.sources import cached_in
from harness.core.text import counted
from harness.machine import files
from harness.report.documents.fleet import kept_document
from harness.report.formats import on_terminal
from harness.report.words.phrases import size
from harness.store import codec
from harness.store.run_folder import REPORT, RunDir

DAY_S = 86400.0


def status(planned: PlannedFleet) -> str:
    results = FleetResults(planned.folder / STORE)
    kept = results.status()
    sizes = {name: files.size_of(planned.folder / name) for name in (CACHE, RUNS)}
    document = kept_document(replace(kept, cache_bytes=sizes[CACHE], runs_bytes=sizes[RUNS]))
    return on_terminal(document, width=100)


def collect(planned: PlannedFleet, days: int, *, remove: bool) -> str:
    """Return what was not used for so many days, in words; it is removed if wanted.

    What the plan needs stays, and so does whatever is not the fleet's own: what lies behind a link, or is called
    otherwise than what is kept here. Raises ``RunDirError``: something cannot be removed.
    """
    keep = {unit.key for unit in planned.plan.units}
    links = [name for name in (STORE, RUNS, CACHE) if (planned.folder / name).is_symlink()]
    count, freed = 0, 0
    if STORE not in links:
        results = FleetResults(planned.folder / STORE)
        count, freed = results.collect(days, keep=keep, remove=remove)
    runs = [] if RUNS in links else _finished(planned.folder / RUNS)
    old = [path for path in runs if _is_older(path / REPORT, days)]
    cache = planned.folder / CACHE
    fetched = [] if CACHE in links else [*cached_in(cache), *_own(cache / UNPACKED)]
    cached = [path for path in fetched if _is_older(path, days)]
    freed += sum(files.size_of(path) for path in (*old, *cached))
    for path in (*old, *cached) if remove else ():
        files.remove(path)
    if remove and cache.is_dir() and CACHE not in links:
        codec.remove_drafts(cache)
    what = f"{counted(count, 'result')}, {counted(len(old), 'run')}, {counted(len(cached), 'fetched file')}"
    verb = "removed" if remove else "to go"
    untouched = "".join(f"{planned.folder / name} is a link: what lies there is not touched\n" for name in links)
    return f"{verb}: {what} not used for {days} days, {size(freed)}\n{untouched}" + (
        "" if remove else "remove with --yes\n"
    )


def _own(folder: Path) -> list[Path]:
    return [] if folder.is_symlink() else cached_in(folder)


def _finished(runs: Path) -> list[Path]:
    folders = (path.parent for path in runs.glob(f"*/{REPORT}") if not path.parent.is_symlink())
    return sorted(path for path in folders if not RunDir(path).is_running)


def _is_older(path: Path, days: int) -> bool:
    try:
        return time.time() - path.lstat().st_mtime > days * DAY_S
    except FileNotFoundError:  # somebody else has removed it
        return False
