"""What is known of a fleet: immutable JSON under keys of content.

A file is written whole and never changed, and a result that has no file is not known. None is believed that was edited,
cut, or lies under another key than that of its content: such a file is no result. That finds accidents; who may write
the folder can write any verdict. When a result was last used is its file's time of modification. Machines that share no
disk have a folder each, which are merged.
"""

import contextlib
import datetime as dt
import hashlib
import os
import statistics
import time
from collections import Counter, defaultdict
from collections.abc import Collection, Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import msgspec

from harness.apps.fleet.units import DEFAULT_COSTS, Costs, key_of
from harness.core.errors import RunDirError
from harness.core.fleet import Examination, Fault, FleetResult, StoreStatus
from harness.core.report import RunReport
from harness.machine.files import is_within, plain_bytes
from harness.store import codec
from harness.store.exact import plain_of, value_of
from harness.store.json import from_json

VERSION = 2
"""Of the folder; another one is refused."""
MARK = "store.json"
RESULTS, FRAMES, FAULTS = "results", "frames", "faults"
SET_ASIDE = "set-aside"
WRITABLE = "free space, or make the folder writable"
DAY_S = 86400.0


class _Sealed(msgspec.Struct):
    """A result or a frame as its file has it: its bytes, and a digest of these and of what it is kept under."""

    seal: str
    value: msgspec.Raw


class _Head(msgspec.Struct):
    """What of a result is needed to know and to count it."""

    key: str
    content: dict[str, str]
    frame: str
    examination: Examination = Examination.FULL
    seconds: float = 0.0


class KeptResults:
    """Results, the frames of the runs that made them, and faults, as they lie in a folder; nothing is written there."""

    def __init__(self, folder: Path) -> None:
        """Take the folder; one that is not there holds nothing. Raises ``RunDirError``: it is of another version."""
        self.folder = folder
        self._frames: dict[str, RunReport | None] = {}
        mark = folder / MARK
        if not os.path.lexists(mark):
            return
        version = codec.read_json(mark, dict[str, int]).get("version", 0)
        if version != VERSION:
            raise RunDirError(
                f"{folder} is of another version of the gate ({version}; this one writes {VERSION})",
                "plan into another folder (fleet plan --into): results are made anew there",
            )

    def path(self, key: str) -> Path:
        """Return the file of the first result under ``key``; ones with more rounds of timing lie beside it."""
        return self.folder / RESULTS / key[:2] / f"{key}.json"

    def _of(self, key: str) -> list[Path]:
        first = self.path(key)
        return [*sorted(first.parent.glob(f"{key}.rounds-*.json"), reverse=True), first]

    def read(self, key: str) -> FleetResult | None:
        return next((result for path in self._of(key) if (result := self.usable(path, key)) is not None), None)

    def holds(self, key: str) -> bool:
        """Whether there is a result under ``key`` that can be used; ten times as fast as to read it."""
        return any(self._whole(path, key) for path in self._of(key))

    def known(self, keys: Collection[str]) -> set[str]:
        return {key for key in set(keys) if self.holds(key)}

    def usable(self, path: Path, key: str) -> FleetResult | None:
        """Return the result in a file, if it is whole, unchanged, and of the content that ``key`` means."""
        value = self._whole(path, key)
        try:
            return value_of(from_json(value, dict[str, Any]), FleetResult) if value else None
        except ValueError:  # of a type that has changed since
            return None

    def _whole(self, path: Path, key: str) -> bytes:
        """Return the bytes of the result in a file; none where it is not whole, or not of what ``key`` means."""
        value = _unsealed(path, key)
        try:
            head = from_json(value, _Head)
        except ValueError:
            return b""
        is_it = head.key == key == key_of(head.content) and self.frame(head.frame) is not None
        return value if is_it else b""

    def frame(self, digest: str) -> RunReport | None:
        """Return the report of a run without its models; None where it is not there, or another one."""
        if self._frames.get(digest) is None:
            try:
                value = _unsealed(self.folder / FRAMES / f"{digest}.json", digest)
                self._frames[digest] = value_of(from_json(value, dict[str, Any]), RunReport)
            except ValueError:
                return None
        return self._frames[digest]

    def fault(self, key: str) -> Fault | None:
        try:
            fault = codec.read_json(self.folder / FAULTS / f"{key}.json", Fault)
        except RunDirError:
            return None
        return fault if fault.key == key else None

    def files(self) -> Iterator[tuple[Path, str]]:
        for path in sorted((self.folder / RESULTS).glob("*/*.json")):
            yield path, path.name.partition(".")[0]

    def keys(self) -> set[str]:
        return {key for _, key in self.files()}

    def faults(self) -> Iterator[Fault]:
        for path in sorted((self.folder / FAULTS).glob("*.json")):
            fault = self.fault(path.stem)
            if fault is not None:
                yield fault


class FleetResults(KeptResults):
    """The same in a folder of one's own: results are added, and what cannot be used is removed."""

    def __init__(self, folder: Path) -> None:
        """Open the folder, made if need be. Raises ``RunDirError``: it cannot be written, or is of another version."""
        super().__init__(folder)
        if not os.path.lexists(folder / MARK):
            self._write(folder / MARK, codec.pretty({"version": VERSION}))
        elif not os.access(folder, os.W_OK):  # told before a run that could keep nothing
            raise RunDirError(f"{folder} cannot be written", WRITABLE)

    def _write(self, path: Path, data: bytes) -> None:
        _set_aside(path)
        codec.write_atomically(path, data, parents=True, synced=True, hint=WRITABLE)

    def _remove(self, path: Path) -> None:
        if is_within(path, self.folder) and not (path.is_dir() and not path.is_symlink()):
            path.unlink(missing_ok=True)

    def read(self, key: str) -> FleetResult | None:
        """Return the result under ``key``; None where there is none, and a file that is none goes."""
        for path in self._of(key):
            result = self.usable(path, key)
            if result is not None:
                return result
            self._remove(path)
        return None

    def known(self, keys: Collection[str]) -> set[str]:
        """Return which of the keys have a result; these count as used now."""
        known = super().known(keys)
        for path in (path for key in known for path in self._of(key)):
            with contextlib.suppress(OSError):
                os.utime(path, follow_symlinks=False)
        return known

    def save(self, result: FleetResult, frame: RunReport, *, replaces: bool = False) -> None:
        """Keep a result and the frame that it belongs to; one that is kept already stays as it is.

        ``replaces``: it has more rounds of timing than what is kept, and is read instead. Raises ``RunDirError``: the
        folder cannot be written.
        """
        path = self.path(result.key)
        if replaces:
            timed = result.facts.latency
            rounds = len(timed.samples) if timed is not None else 0
            path = path.with_name(f"{result.key}.rounds-{rounds:06}-{codec.digest(result.row)[:8]}.json")
        if self._whole(path, result.key):
            return
        if self.frame(result.frame) is None:
            self._write(self.folder / FRAMES / f"{result.frame}.json", _sealed(frame, result.frame))
        self._write(path, _sealed(result, result.key))
        self._remove(self.folder / FAULTS / f"{result.key}.json")

    def costs(self) -> Costs:
        """Return what a unit takes by what was kept: the median of each examination, else the default."""
        seconds: dict[Examination, list[float]] = defaultdict(list)
        for head in self._heads().values():
            if head.seconds > 0:
                seconds[head.examination].append(head.seconds)
        medians = {examination: round(statistics.median(values), 1) for examination, values in seconds.items()}
        return Costs({**DEFAULT_COSTS.seconds, **medians}, sum(map(len, seconds.values())))

    def _heads(self) -> dict[str, _Head]:
        heads = {}
        for path, key in self.files():
            value = self._whole(path, key) if key not in heads else b""
            if value:
                heads[key] = from_json(value, _Head)
        return heads

    def add_fault(self, fault: Fault) -> Fault:
        """Keep why a unit has no result; return it with how often that was so by now."""
        before = self.fault(fault.key)
        fault = replace(fault, tries=1 + (before.tries if before is not None else 0))
        self._write(self.folder / FAULTS / f"{fault.key}.json", codec.canonical(fault))
        return fault

    def absorb(self, other: Path) -> int:
        """Copy what another folder knows and this one does not; return how many results. Raises ``RunDirError``."""
        if not (other / MARK).is_file():
            raise RunDirError(
                f"{other} holds no results of a fleet", f"name a folder in which {MARK} lies, or the one above"
            )
        theirs = KeptResults(other)
        added = set()
        for path, key in theirs.files():
            is_mine = bool(self._whole(self.path(key).with_name(path.name), key))
            result = theirs.usable(path, key) if not is_mine else None
            frame = theirs.frame(result.frame) if result is not None else None
            if result is not None and frame is not None:
                self.save(result, frame, replaces=path != theirs.path(key))
                added.add(key)
        for fault in theirs.faults():
            if not self.holds(fault.key) and self.fault(fault.key) is None:
                self._write(self.folder / FAULTS / f"{fault.key}.json", codec.canonical(fault))
        return len(added)

    def status(self) -> StoreStatus:
        contents: list[Mapping[str, str]] = [head.content for head in self._heads().values()]
        files = [path.lstat() for path, _ in self.files()]
        oldest = min((status.st_mtime for status in files), default=None)
        pairs = Counter((content.get("old", ""), content.get("new", "")) for content in contents)
        return StoreStatus(
            folder=str(self.folder),
            results=len(contents),
            bytes=sum(status.st_size for status in files),
            programs=len({content.get("program") for content in contents}),
            faults=len(list((self.folder / FAULTS).glob("*.json"))),
            by_pair={f"{old} -> {new}": number for (old, new), number in sorted(pairs.items())},
            oldest_used=dt.datetime.fromtimestamp(oldest, dt.UTC).date().isoformat() if oldest is not None else "",
        )

    def collect(self, days: int, *, keep: Collection[str], remove: bool) -> tuple[int, int]:
        """Return how many results and bytes were not used for so many days, ``keep`` aside; remove them if wanted."""
        groups: dict[str, list[os.stat_result]] = defaultdict(list)
        for path, key in self.files():
            groups[key].append(path.lstat())
        last = time.time() - days * DAY_S
        old = {key for key, files in groups.items() if max(status.st_mtime for status in files) < last} - {*keep}
        if remove:
            for key in old:
                for path in self._of(key):
                    self._remove(path)
            self._remove_idle_frames()
        return len(old), sum(status.st_size for key in old for status in groups[key])

    def _remove_idle_frames(self) -> None:
        kept = (self.usable(path, key) for path, key in self.files())
        used = {result.frame for result in kept if result is not None}
        for path in (self.folder / FRAMES).glob("*.json"):
            if path.stem not in used:
                self._remove(path)


def _set_aside(path: Path) -> None:
    """Give what is no file, in a file's place, another name: nobody knows whose it is, so it is not removed."""
    if os.path.lexists(path) and not path.is_file():
        with contextlib.suppress(OSError):
            path.rename(path.with_name(f"{path.name}.{SET_ASIDE}"))


def _sealed(value: FleetResult | RunReport, kept_under: str) -> bytes:
    data = codec.canonical(plain_of(msgspec.to_builtins(value)))
    return b'{"seal":"%s","value":%s}' % (seal_of(data, kept_under).encode(), data)


def _unsealed(path: Path, kept_under: str) -> bytes:
    """Return the bytes of a value in a file; none where it is not there, not whole, or kept under something else."""
    try:
        sealed = from_json(plain_bytes(path), _Sealed)
    except (OSError, ValueError):
        return b""
    value = bytes(sealed.value)
    return value if sealed.seal == seal_of(value, kept_under) else b""


def seal_of(value: bytes, kept_under: str) -> str:
    """Return the digest of a value's bytes and of the key, or the digest, that it is kept under."""
    return hashlib.sha256(kept_under.encode() + b"\0" + value).hexdigest()
