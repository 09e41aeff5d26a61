"""What lies in a user's cache, and what a command has removed there."""

from dataclasses import dataclass
from enum import StrEnum


class CacheKind(StrEnum):
    """What an entry of the cache is."""

    ENVIRONMENT = "environment"
    COMPILED = "compiled"
    OPERATORS = "operators"
    RELEASES = "releases"
    ANSWERS = "answers"


class CacheState(StrEnum):
    """Whether an entry may be used, and whether somebody does."""

    READY = "ready"
    IN_USE = "in use"
    INCOMPLETE = "incomplete"


@dataclass(frozen=True, kw_only=True, slots=True)
class CacheEntry:
    """A thing that is used and removed as a whole.

    Attributes:
        name: its path below the cache's folder, by which a command names it.
        release: of torch; empty where it is of none.
        size_bytes: what it takes on the disk, blocks that it shares with uv's cache included.
        freed_bytes: what its removal frees: without what other folders share.
        used: when it was used last, in UTC: ``"2026-11-28T17:00:00+00:00"``.
    """

    name: str
    kind: CacheKind
    state: CacheState
    used: str
    release: str = ""
    size_bytes: int = 0
    freed_bytes: int = 0


@dataclass(frozen=True, kw_only=True, slots=True)
class Cache:
    """What lies in the folder of a cache; ``now``: the time of the look, as ``CacheEntry.used``."""

    folder: str
    now: str
    entries: tuple[CacheEntry, ...]


@dataclass(frozen=True, kw_only=True, slots=True)
class CacheCleaning:
    """What was removed, or would be in a ``dry_run``; ``kept`` was chosen too, and a gate that runs now uses it."""

    folder: str
    now: str
    dry_run: bool
    removed: tuple[CacheEntry, ...]
    kept: tuple[CacheEntry, ...]

    @property
    def freed_bytes(self) -> int:
        return sum(entry.freed_bytes for entry in self.removed)
