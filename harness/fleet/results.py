"""What is known of a fleet: immutable JSON under keys of content, and an index in SQLite that can be made again.

The files are the truth: a file is written whole and never changed, and a result that has no file is not known. The
index answers what is known of thousands of keys at once, what it cost, and when it was last used. One process of a
machine writes at a time; machines that share no disk have a folder each, which are merged.
"""

import contextlib
import datetime as dt
import sqlite3
import statistics
from collections.abc import Collection, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any, Self, TypeVar

import msgspec

from harness.domain.fleet import Examination, Fault, FleetResult, StoreStatus
from harness.domain.report import RunReport
from harness.errors import RunDirError
from harness.fleet.planning import DEFAULT_COSTS, Costs
from harness.store import codec
from harness.store.exact import plain_of, value_of
from harness.system import clock

T = TypeVar("T")
VERSION = 1
"""Of the folder; another one is refused."""
MARK = "store.json"
INDEX = "index.sqlite3"
RESULTS, FRAMES, FAULTS = "results", "frames", "faults"
TABLE = """
CREATE TABLE IF NOT EXISTS results (
    key TEXT PRIMARY KEY, program TEXT, weights TEXT, old TEXT, new TEXT, examination TEXT,
    seconds REAL, bytes INTEGER, made TEXT, used TEXT
) WITHOUT ROWID
"""
WAIT_S = 60.0
# Asked of the index at once; SQLite's own limit on variables is far higher.
AT_ONCE = 500


class FleetResults:
    """Results, the frames of the runs that made them, and faults, in one folder."""

    def __init__(self, folder: Path) -> None:
        """Open the folder, made if need be.

        Raises:
            RunDirError: it cannot be written, or is of another version.
        """
        self.folder = folder
        self._frames: dict[str, RunReport | None] = {}
        mark = folder / MARK
        if mark.exists():
            found = codec.read_json(mark, dict[str, int]).get("version", 0)
            if found != VERSION:
                raise RunDirError(
                    f"{folder} is of another version of the gate ({found}; this one writes {VERSION})",
                    "name another folder with --into: results are made anew there",
                )
        else:
            codec.write_atomically(mark, codec.pretty({"version": VERSION}), parents=True)
        self._index = self._opened()

    def _opened(self) -> sqlite3.Connection:
        path = self.folder / INDEX
        try:
            try:
                return _connected(path)
            except sqlite3.OperationalError:  # locked, or no place for it: nothing is wrong with what is in it
                raise
            except sqlite3.DatabaseError:  # it is not the truth: it is made again
                for name in (INDEX, f"{INDEX}-wal", f"{INDEX}-shm"):
                    (self.folder / name).unlink(missing_ok=True)
                return _connected(path)
        except sqlite3.Error as error:
            raise RunDirError(
                f"{path} cannot be used: {error}",
                "end whoever else uses it, free space, or name another folder with --into",
            ) from error

    def close(self) -> None:
        """Close the index."""
        self._index.close()

    def __enter__(self) -> Self:
        """Return the open results; they are closed with the block."""
        return self

    def __exit__(self, *_exception: object) -> None:
        """Close the index."""
        self.close()

    def path(self, key: str) -> Path:
        """Return the file of the first result under ``key``; ones with more rounds of timing lie beside it."""
        return self.folder / RESULTS / key[:2] / f"{key}.json"

    def _timed_more(self, key: str) -> list[Path]:
        """Return the files of the results under ``key`` with more rounds, the one with most of them first."""
        return sorted(self.path(key).parent.glob(f"{key}.rounds-*.json"), reverse=True)

    def known(self, keys: Collection[str]) -> set[str]:
        """Return which of the keys have a result; these count as used today."""
        wanted = sorted(set(keys))
        listed: set[str] = set()
        for begin in range(0, len(wanted), AT_ONCE):
            part = wanted[begin : begin + AT_ONCE]
            asked = f"SELECT key FROM results WHERE key IN ({','.join('?' * len(part))})"  # noqa: S608  marks alone
            listed.update(key for (key,) in self._index.execute(asked, part))
        there = {key for key in wanted if self.path(key).is_file() or self._timed_more(key)}
        for key in sorted(there - listed):  # kept by a process that was ended before it could say so
            result = self.read(key)
            if result is None:
                there.discard(key)
            else:
                self._list(result)
        gone = listed - there
        with self._index:
            self._index.executemany("DELETE FROM results WHERE key = ?", [(key,) for key in sorted(gone)])
            self._index.executemany(
                "UPDATE results SET used = ? WHERE key = ?", [(clock.today().isoformat(), key) for key in sorted(there)]
            )
        return there

    def save(self, result: FleetResult, frame: RunReport, *, replaces: bool = False) -> None:
        """Keep a result and the frame that it belongs to; one that is kept already stays as it is.

        Args:
            replaces: it has more rounds of timing than what is kept, and is read instead.

        Raises:
            RunDirError: the folder cannot be written.
        """
        path = self.path(result.key)
        if replaces:
            timed = result.facts.latency
            rounds = len(timed.samples) if timed is not None else 0
            path = path.with_name(f"{result.key}.rounds-{rounds:06}-{codec.digest(result.row)[:8]}.json")
        if path.is_file():
            return
        place = self.folder / FRAMES / f"{result.frame}.json"
        if not place.is_file():
            codec.write_atomically(place, _bytes_of(frame), parents=True)
        codec.write_atomically(path, _bytes_of(result), parents=True)
        self._list(result)
        (self.folder / FAULTS / f"{result.key}.json").unlink(missing_ok=True)

    def _list(self, result: FleetResult) -> None:
        said, today = result.content, clock.today().isoformat()
        row = (
            result.key,
            *(said.get(name, "") for name in ("program", "weights", "old", "new")),
            result.examination.value,
            result.seconds,
            sum(
                path.stat().st_size for path in (*self._timed_more(result.key), self.path(result.key)) if path.is_file()
            ),
            today,
            today,
        )
        with self._index:
            self._index.execute("INSERT OR REPLACE INTO results VALUES (?,?,?,?,?,?,?,?,?,?)", row)

    def read(self, key: str) -> FleetResult | None:
        """Return the result under ``key``; None where there is none that can be used: one that is damaged goes."""
        for path in (*self._timed_more(key), self.path(key)):
            result = self._usable(path, key)
            if result is not None:
                return result
            path.unlink(missing_ok=True)
        return None

    def _usable(self, path: Path, key: str) -> FleetResult | None:
        try:
            result = _read(path, FleetResult)
        except RunDirError:
            return None
        return result if result.key == key and self.frame(result.frame) is not None else None

    def frame(self, digest: str) -> RunReport | None:
        """Return the report of a run without its models; None where it is not there or damaged."""
        if self._frames.get(digest) is None:
            try:
                self._frames[digest] = _read(self.folder / FRAMES / f"{digest}.json", RunReport)
            except RunDirError:
                return None
        return self._frames[digest]

    def costs(self) -> Costs:
        """Return what a unit takes by what was kept: the median of each examination, else the default."""
        seconds, measured = dict(DEFAULT_COSTS.seconds), 0
        for examination in Examination:
            query = "SELECT seconds FROM results WHERE examination = ? AND seconds > 0"
            found = [value for (value,) in self._index.execute(query, (examination.value,))]
            if found:
                seconds[examination], measured = round(statistics.median(found), 1), measured + len(found)
        return Costs(seconds, measured)

    def add_fault(self, fault: Fault) -> Fault:
        """Keep why a unit has no result; return it with how often that was so by now."""
        before = self.fault(fault.key)
        fault = replace(fault, tries=1 + (before.tries if before is not None else 0))
        codec.write_atomically(self.folder / FAULTS / f"{fault.key}.json", codec.canonical(fault), parents=True)
        return fault

    def fault(self, key: str) -> Fault | None:
        """Return why a unit has no result; None where nothing is known."""
        try:
            return codec.read_json(self.folder / FAULTS / f"{key}.json", Fault)
        except RunDirError:
            return None

    @staticmethod
    def keys_in(folder: Path) -> set[str]:
        """Return the keys of the results that lie in a folder, without its index."""
        return {_key_of(path) for path in (folder / RESULTS).glob("*/*.json")}

    def absorb(self, other: Path) -> int:
        """Copy what another folder knows and this one does not; return how many results that were.

        Raises:
            RunDirError: it is no folder of results, or of another version.
        """
        if not (other / MARK).is_file():
            raise RunDirError(
                f"{other} holds no results of a fleet", f"name a folder in which {MARK} lies, or the one above"
            )
        with FleetResults(other) as theirs:
            mine = {path.name for path in self._files()}
            added = set()
            for path in theirs._files():
                key = _key_of(path)
                result = theirs._usable(path, key) if path.name not in mine else None
                frame = theirs.frame(result.frame) if result is not None else None
                if result is not None and frame is not None:
                    self.save(result, frame, replaces=path != theirs.path(key))
                    added.add(key)
            for path in sorted((other / FAULTS).glob("*.json")):
                fault = theirs.fault(path.stem)
                if fault is not None and not self.path(fault.key).is_file() and self.fault(fault.key) is None:
                    codec.write_atomically(self.folder / FAULTS / path.name, codec.canonical(fault), parents=True)
        return len(added)

    def _files(self) -> Iterator[Path]:
        yield from sorted((self.folder / RESULTS).glob("*/*.json"))

    def status(self) -> StoreStatus:
        """Return how much is kept."""
        self.known(self._unlisted())
        count, size, programs, oldest = self._index.execute(
            "SELECT COUNT(*), COALESCE(SUM(bytes), 0), COUNT(DISTINCT program), COALESCE(MIN(used), '') FROM results"
        ).fetchone()
        pairs = self._index.execute("SELECT old, new, COUNT(*) FROM results GROUP BY old, new ORDER BY old, new")
        return StoreStatus(
            folder=str(self.folder),
            results=count,
            bytes=size,
            programs=programs,
            faults=len(list((self.folder / FAULTS).glob("*.json"))),
            by_pair={f"{old} -> {new}": number for old, new, number in pairs},
            oldest_used=oldest,
        )

    def _unlisted(self) -> Collection[str]:
        return self.keys_in(self.folder) - {key for (key,) in self._index.execute("SELECT key FROM results")}

    def collect(self, days: int, *, keep: Collection[str], remove: bool) -> tuple[int, int]:
        """Return how many results, and bytes, were not used for so many days; these are removed if wanted.

        Args:
            keep: keys that stay whatever their age.
        """
        last = clock.today().toordinal() - days
        old = [
            (key, size)
            for key, size, used in self._index.execute("SELECT key, bytes, used FROM results")
            if key not in keep and _ordinal(used) < last
        ]
        if remove:
            with self._index:
                self._index.executemany("DELETE FROM results WHERE key = ?", [(key,) for key, _ in old])
            for key, _ in old:
                for path in (*self._timed_more(key), self.path(key)):
                    path.unlink(missing_ok=True)
            self._remove_idle_frames()
        return len(old), sum(size for _, size in old)

    def _remove_idle_frames(self) -> None:
        kept = (self._usable(path, _key_of(path)) for path in self._files())
        used = {result.frame for result in kept if result is not None}
        for path in (self.folder / FRAMES).glob("*.json"):
            if path.stem not in used:
                path.unlink(missing_ok=True)


def _key_of(path: Path) -> str:
    return path.name.partition(".")[0]


def _bytes_of(value: FleetResult | RunReport) -> bytes:
    return codec.canonical(plain_of(msgspec.to_builtins(value)))


def _read(path: Path, type_: type[T]) -> T:
    """Return what ``_bytes_of`` has written.

    Raises:
        RunDirError: it is not there, damaged, or of another shape.
    """
    try:
        return value_of(codec.read_json(path, dict[str, Any]), type_)
    except msgspec.ValidationError as error:
        raise RunDirError(f"{path} is damaged or from another version: {error}", "run again") from error


def _ordinal(text: str) -> int:
    with contextlib.suppress(ValueError):
        return dt.date.fromisoformat(text).toordinal()
    return 0


def _connected(path: Path) -> sqlite3.Connection:
    connection = sqlite3.connect(path, timeout=WAIT_S)
    try:
        connection.execute("PRAGMA journal_mode=WAL")
        connection.execute("PRAGMA synchronous=NORMAL")
        if connection.execute("PRAGMA quick_check").fetchone() != ("ok",):
            raise sqlite3.DatabaseError("damaged")
        with connection:
            connection.execute(TABLE)
    except sqlite3.DatabaseError:
        connection.close()
        raise
    return connection
