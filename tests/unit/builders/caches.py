"""Caches to show, and what was removed of them."""

from collections.abc import Sequence
from dataclasses import replace

from harness.core.cache import Cache, CacheCleaning, CacheEntry, CacheKind, CacheState

NOW = "2027-03-31T12:00:00+00:00"
OLD = CacheEntry(
    name="torch-2.1.2-cp311-5473ecd4",
    kind=CacheKind.ENVIRONMENT,
    state=CacheState.READY,
    used="2027-01-30T12:00:00+00:00",
    release="2.1.2",
    size_bytes=4_930_000_000,
    freed_bytes=43_000_000,
)
NEW = replace(
    OLD,
    name="torch-2.6.0-cp311-344effa7",
    state=CacheState.IN_USE,
    used="2027-03-31T11:00:00+00:00",
    release="2.6.0",
    size_bytes=5_400_000_000,
    freed_bytes=5_400_000_000,
)
HALF = replace(OLD, name="torch-2.15.0-cp311-d26e2c34", state=CacheState.INCOMPLETE, used="2027-03-30T11:00:00+00:00")
WORKER = CacheEntry(
    name="native/torch-2.1.2+cu121-27af72c8cf58",
    kind=CacheKind.COMPILED,
    state=CacheState.READY,
    used="2027-01-30T12:00:00+00:00",
    release="2.1.2",
    size_bytes=610_000,
    freed_bytes=610_000,
)
FOLDER = "/home/me/.cache/torchscript-gate"
CACHE = Cache(folder=FOLDER, now=NOW, entries=(OLD, NEW, HALF, WORKER))
EMPTY = replace(CACHE, entries=())
CLEANED = CacheCleaning(folder=FOLDER, now=NOW, dry_run=False, removed=(OLD, WORKER), kept=(NEW,))
WOULD = replace(CLEANED, dry_run=True, removed=(WORKER,), kept=())


def named(names: Sequence[str]) -> Cache:
    """Return a cache whose folder and entries have these names."""
    return Cache(folder=names[0], now=NOW, entries=tuple(replace(OLD, name=name) for name in names))
