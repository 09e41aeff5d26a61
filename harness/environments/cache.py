"""What lies in the root of environments, and its removal, which leaves alone what a gate that runs now uses.

Whoever uses an environment shares its lock (``EnvironmentSlot.use``), and whoever uses anything shares the one of the
root; who removes has it alone. Locks stay where they are: a lock that is removed would be two for those who wait.
"""

import contextlib
import datetime as dt
import os
import re
import stat
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

from harness.core.cache import Cache, CacheCleaning, CacheEntry, CacheKind, CacheState
from harness.core.errors import SelectionError
from harness.core.text import first_few
from harness.environments import native
from harness.environments.builder import IN_USE, MARKER
from harness.machine import files

# Folders of what is kept beside environments.
NATIVE: Final = "native"
REGISTRIES: Final = "registries"
RELEASES: Final = "releases"
ANSWERS: Final = "answers"
BLOCK: Final = 512
NAMED: Final = 5
_ENVIRONMENT: Final = re.compile(r"torch-(?P<release>[^-+]+)(?:\+[^-]+)?-cp\d+-[0-9a-f]{8}")
_COMPILED: Final = re.compile(r".+-[0-9a-f]{12}|compiler-checks-[0-9a-f]{8}")
_LISTED: Final = re.compile(r"(torch-.+-)?[0-9a-f]{12}\.json")
_ANSWERING: Final = re.compile(r"torch-.+-[0-9a-f]{12}")
_OF_A_RELEASE: Final = re.compile(r"torch-(?P<release>[^-+]+)")
_OF_AN_ENVIRONMENT: Final = re.compile(rf"{_ENVIRONMENT.pattern}\.(lock|use|log)")
_LOCK_OF_OPERATORS: Final = re.compile(r"torch-.+-[0-9a-f]{12}\.lock")


@dataclass(frozen=True, kw_only=True, slots=True)
class Chosen:
    """What is to be removed: names of entries or of releases, and what was not used since a time; None: any age."""

    names: Sequence[str] = ()
    unused_since: dt.datetime | None = None


def read_cache(root: Path, now: dt.datetime, tick: Callable[[str], None]) -> Cache:
    """Return what lies below ``root``, each with its size: seconds for an environment; ``tick`` is given its name.

    Raises ``OSError``: something cannot be read.
    """
    entries = []
    for entry in _listed(root):
        tick(entry.name)
        size, freed = _sizes(root / entry.name)
        entries.append(replace(entry, size_bytes=size, freed_bytes=freed))
    return Cache(folder=str(root), now=now.isoformat(timespec="seconds"), entries=tuple(entries))


def clean(root: Path, chosen: Chosen, now: dt.datetime, tick: Callable[[str], None], *, dry_run: bool) -> CacheCleaning:
    """Remove what is chosen and not in use; ``tick`` is given names of what is being removed.

    A removal that is interrupted leaves nothing that would be used: what says that it is complete goes first.

    Raises:
        SelectionError: a name is none of an entry or a release that lies there.
        OSError, RunDirError: something cannot be read, or removed.
    """
    entries = _listed(root)
    _require_known(chosen.names, entries)
    removed, kept = list[CacheEntry](), list[CacheEntry]()
    for entry in (entry for entry in entries if _is_chosen(entry, chosen)):
        with _alone(root, entry) as is_alone:
            # between the look and the lock somebody may have used it
            tick(entry.name)
            size, freed = _sizes(root / entry.name)
            entry = replace(entry, size_bytes=size, freed_bytes=freed)  # noqa: PLW2901
            if not is_alone or not _is_chosen(replace(entry, used=_used(root / entry.name, entry.kind)), chosen):
                kept.append(replace(entry, state=CacheState.IN_USE))
                continue
            if not dry_run:
                _remove(root / entry.name, entry.kind, tick)
            removed.append(entry)
    if not dry_run:
        _remove_leftovers(root)
    time = now.isoformat(timespec="seconds")
    return CacheCleaning(folder=str(root), now=time, dry_run=dry_run, removed=tuple(removed), kept=tuple(kept))


def _listed(root: Path) -> list[CacheEntry]:
    """Return everything that is removed as a whole, without its size; links and what we did not make are left out."""
    found = [(CacheKind.ENVIRONMENT, path) for path in _in(root, _ENVIRONMENT) if path.is_dir()]
    found += [(CacheKind.COMPILED, path) for path in _in(root / NATIVE, _COMPILED) if path.is_dir()]
    found += [(CacheKind.OPERATORS, path) for path in _in(root / REGISTRIES, _LISTED)]
    found += [(CacheKind.RELEASES, path) for path in _in(root / RELEASES, _LISTED)]
    found += [(CacheKind.ANSWERS, path) for path in _in(root / ANSWERS, _ANSWERING) if path.is_dir()]
    entries = []
    for kind, path in found:
        name = path.relative_to(root).as_posix()
        release = (_ENVIRONMENT if kind is CacheKind.ENVIRONMENT else _OF_A_RELEASE).match(path.name)
        entry = CacheEntry(
            name=name,
            kind=kind,
            state=CacheState.READY,
            used=_used(path, kind),
            release=release["release"] if release else "",
        )
        entries.append(replace(entry, state=_state(root, entry)))
    return entries


def _in(folder: Path, named: re.Pattern[str]) -> list[Path]:
    """Return what has such a name in a folder: the root may be one in which somebody else keeps things too."""
    paths = sorted(folder.iterdir()) if folder.is_dir() and not folder.is_symlink() else []
    return [path for path in paths if named.fullmatch(path.name) and not path.is_symlink()]


def _used(path: Path, kind: CacheKind) -> str:
    """Return when an entry was used last: the time of the file that those who use it touch, else of what lies there."""
    marks = {
        CacheKind.ENVIRONMENT: (path.with_name(f"{path.name}.use"), path / MARKER),
        CacheKind.COMPILED: (path / native.LOCK,),
    }
    moment = 0.0
    for mark in (*marks.get(kind, ()), path):
        with contextlib.suppress(OSError):
            moment = mark.stat().st_mtime
            break
    return dt.datetime.fromtimestamp(moment, dt.UTC).isoformat(timespec="seconds")


def _state(root: Path, entry: CacheEntry) -> CacheState:
    if any(_is_locked(lock) for lock in _locks(root, entry)):
        return CacheState.IN_USE
    complete = entry.kind is not CacheKind.ENVIRONMENT or (root / entry.name / MARKER).is_file()
    return CacheState.READY if complete else CacheState.INCOMPLETE


def _locks(root: Path, entry: CacheEntry) -> tuple[Path, ...]:
    """Return the locks that must be free: of an environment its builder's and its users', of all else the root's."""
    if entry.kind is not CacheKind.ENVIRONMENT:
        return (root / IN_USE,)
    return (root / f"{entry.name}.lock", root / f"{entry.name}.use")


def _is_locked(path: Path) -> bool:
    if not path.exists():
        return False
    lock = files.lock_alone(path)
    if lock is not None:
        os.close(lock)
    return lock is None


@contextlib.contextmanager
def _alone(root: Path, entry: CacheEntry) -> Iterator[bool]:
    """Give whether nobody builds or uses it; nobody does until the block ends."""
    moment = dt.datetime.fromisoformat(entry.used).timestamp()
    with contextlib.ExitStack() as stack:
        for path in _locks(root, entry):
            is_new = not path.exists()
            lock = files.lock_alone(path)
            if lock is None:
                yield False
                return
            stack.callback(os.close, lock)
            if is_new:  # which is no use
                os.utime(path, (moment, moment))
        yield True


def _remove(path: Path, kind: CacheKind, tick: Callable[[str], None]) -> None:
    if kind is CacheKind.ENVIRONMENT:
        (path / MARKER).unlink(missing_ok=True)
        for child in sorted(path.iterdir()):
            tick(f"{path.name}/{child.name}")
            files.remove(child)
        path.with_name(f"{path.name}.log").unlink(missing_ok=True)
    files.remove(path)


def _remove_leftovers(root: Path) -> None:
    """Remove locks and logs of what is gone, unless a gate runs that may be about to make it again."""
    lock = files.lock_alone(root / IN_USE) if (root / IN_USE).exists() else None
    if lock is None:
        return
    try:
        for path in _in(root, _OF_AN_ENVIRONMENT):
            if not path.with_suffix("").exists():
                path.unlink()
        for path in _in(root / REGISTRIES, _LOCK_OF_OPERATORS):
            if not path.with_suffix(".json").exists():
                path.unlink()
    finally:
        os.close(lock)


def _is_chosen(entry: CacheEntry, chosen: Chosen) -> bool:
    named = not chosen.names or entry.name in chosen.names or (entry.release in chosen.names and bool(entry.release))
    return named and (chosen.unused_since is None or dt.datetime.fromisoformat(entry.used) < chosen.unused_since)


def _require_known(names: Sequence[str], entries: Sequence[CacheEntry]) -> None:
    known = dict.fromkeys(name for entry in entries for name in (entry.release, entry.name) if name)
    for name in names:
        if name not in known:
            there = f"there are {first_few(list(known), NAMED)}" if known else "nothing lies there"
            raise SelectionError(f"the cache has no {name}", f"{there}; cache status shows all")


def _sizes(path: Path) -> tuple[int, int]:
    """Return what a file or a folder takes on the disk, and what its removal frees: no block that others link to."""
    seen: dict[tuple[int, int], tuple[int, int]] = {}  # file -> its links here, its links everywhere
    size: dict[tuple[int, int], int] = {}
    for part in _parts(path):
        try:
            status = os.lstat(part)
        except FileNotFoundError:  # of somebody who works there
            continue
        key = status.st_dev, status.st_ino
        size[key] = status.st_blocks * BLOCK
        seen[key] = seen.get(key, (0, 0))[0] + 1, 1 if stat.S_ISDIR(status.st_mode) else status.st_nlink
    freed = sum(size[key] for key, (here, everywhere) in seen.items() if here >= everywhere)
    return sum(size.values()), freed


def _parts(path: Path) -> Iterator[str]:
    yield str(path)
    for folder, folders, names in os.walk(path):
        yield from (os.path.join(folder, name) for name in (*folders, *names))  # noqa: PTH118  tens of thousands
