"""The cache as a document: what lies there, how much it takes and when it was used last, or what was removed."""

import datetime as dt
from collections.abc import Sequence

from harness.core.cache import Cache, CacheCleaning, CacheEntry, CacheKind, CacheState
from harness.core.text import counted
from harness.report.document import OPEN, QUIET, Cell, Document, Fact, Part, Row, Table, Verdict
from harness.report.words.phrases import size

KINDS = {
    CacheKind.ENVIRONMENT: "environment",
    CacheKind.COMPILED: "compiled",
    CacheKind.OPERATORS: "operators",
    CacheKind.RELEASES: "releases of the index",
    CacheKind.ANSWERS: "answers of earlier runs",
}
STATES = {
    CacheState.READY: Cell(""),
    CacheState.IN_USE: Cell("in use", tone=QUIET),
    CacheState.INCOMPLETE: Cell("incomplete", tone=OPEN),
}


def cache_document(cache: Cache) -> Document:
    """Return a table of what lies in the cache, the largest first."""
    total, freed = sum(entry.size_bytes for entry in cache.entries), sum(entry.freed_bytes for entry in cache.entries)
    means = f"{counted(len(cache.entries), 'entry', 'entries')} in {cache.folder}"
    means += f", {size(total)}; without what uv's cache shares, {size(freed)}" if cache.entries else ""
    rows = [(entry, STATES[entry.state]) for entry in cache.entries]
    return Document(title="Cache", verdict=Verdict(means=means), parts=_parts(rows, cache.now))


def cleaning_document(cleaning: CacheCleaning) -> Document:
    """Return a table of what was removed, and one of what was left because it is in use."""
    would = "would be removed" if cleaning.dry_run else "removed"
    frees = "would free" if cleaning.dry_run else "freed"
    means = f"{counted(len(cleaning.removed), 'entry', 'entries')} {would} from {cleaning.folder}"
    means += f", which {frees} {size(cleaning.freed_bytes)}" if cleaning.removed else ""
    means += f"; {len(cleaning.kept)} left, in use" if cleaning.kept else ""
    rows = [(entry, Cell(would)) for entry in cleaning.removed]
    rows += [(entry, Cell("left, in use", tone=QUIET)) for entry in cleaning.kept]
    return Document(title="Cache", verdict=Verdict(means=means), parts=_parts(rows, cleaning.now))


def _parts(entries: Sequence[tuple[CacheEntry, Cell]], now: str) -> tuple[Part, ...]:
    """Return a table of entries, the largest first, each with what is said of it."""
    if not entries:
        return ()
    table = Table(
        heads=("name", "what", "size", "frees", "last used", ""),
        rows=tuple(
            _row(entry, what, now) for entry, what in sorted(entries, key=lambda row: (-row[0].size_bytes, row[0].name))
        ),
        numbers=(2, 3),
        noun="entry",
    )
    shared = Fact("", "frees: without what other folders link to, such as uv's cache (uv cache prune)")
    links = any(entry.freed_bytes < entry.size_bytes for entry, _ in entries)
    return (Part(title="Cache", blocks=(table, shared) if links else (table,)),)


def _row(entry: CacheEntry, what: Cell, now: str) -> Row:
    sizes = size(entry.size_bytes), size(entry.freed_bytes)
    return Row(cells=(entry.name, KINDS[entry.kind], *sizes, ago(entry.used, now), what))


def ago(used: str, now: str) -> str:
    """Return how long before ``now`` something was used: ``today``, ``3 days ago``; both are times of one zone."""
    days = (dt.datetime.fromisoformat(now) - dt.datetime.fromisoformat(used)).days
    return "today" if days < 1 else f"{counted(days, 'day')} ago"
