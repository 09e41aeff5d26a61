"""Keeps results for later calls and runs, and decides whether they are reused: ``ResultStore.reusable``.

Probes, rounds of the benchmark, explanations, fingerprints, operator registries, copies of given artifacts and answers
of the search for the first bad release are kept this way; ``--resume``, the matrix and the searches find them here.
"""

from collections.abc import Callable, Iterator
from enum import Enum
from pathlib import Path
from typing import Any, Generic, TypeVar

from harness.core.errors import RunDirError
from harness.store import codec

T = TypeVar("T")
NO_FILE = (FileNotFoundError, IsADirectoryError, NotADirectoryError)


class WhyNot(Enum):
    """Why a result is made anew in place of being reused."""

    FRESH = "a fresh one was asked for"
    SOURCE_UNKNOWN = "a change of the source that it depends on would not be seen"
    MISSING = "none is stored under its key: nothing was, or what it depends on has changed"
    DAMAGED = "it cannot be read, or another version wrote it"
    OTHER_REQUEST = "it answers another request, such as one with another schedule or with fewer runs"
    LACKED = "the machine lacked something when it was made: memory, room, a compiler"


class ResultStore(Generic[T]):
    """Results of one kind in a folder, each in a file under its key, written atomically.

    The key says everything that a result depends on: the request with the digest of the workers' source
    (``harness.probing.requests``), the environment and the gate's version (``harness.search.release``), the
    source of a model where the store outlives a run. So what another worker wrote is not found in the first place.

    Attributes:
        reused: keys of what was reused so far.
        strict: whether a damaged result is an error, and one of a machine that lacked something stays: a run that is
            resumed does not change what it has seen. Else both are made anew.

    Args:
        folder: made with the first result.
        suffix: of the file, after the key; a folder's name and a file's where each result has a folder.
        read: how the content of a result's file is found; other ones than files by themselves are not ``readable``.
    """

    def __init__(
        self,
        folder: Path,
        kind: type[T],
        *,
        suffix: str = ".json",
        strict: bool = False,
        encode: Callable[[Any], bytes] = codec.canonical,
        read: Callable[[Path], bytes] = Path.read_bytes,
    ) -> None:
        self._folder = folder
        self._kind = kind
        self._suffix = suffix
        self._encode = encode
        self._read = read
        self._made: set[str] = set()
        self.strict = strict
        self.reused: set[str] = set()

    def path(self, key: str) -> Path:
        return self._folder / f"{key}{self._suffix}"

    def save(self, key: str, result: T) -> Path:
        """Store ``result`` in place of the last under ``key``; return its file. Raises ``RunDirError``."""
        path = self.path(key)
        codec.write_atomically(path, self._encode(result), parents=True)
        self._made.add(key)
        return path

    def reusable(
        self,
        key: str,
        *,
        fresh: bool = False,
        source_known: bool = True,
        answers: Callable[[T], bool] | None = None,
        lacked: Callable[[T], bool] | None = None,
    ) -> T | WhyNot:
        """Return the result under ``key`` if it may be reused, else why not. This is decided nowhere else.

        What this store saved itself counts as fresh.

        Args:
            fresh: whether results from before are unwanted.
            source_known: whether the key names all source that the result depends on.
            answers: whether a result is one for this request, where the key does not say it all.
            lacked: whether the machine lacked something, and may give another result another day.

        Raises:
            RunDirError: it is damaged, and the store is strict.
        """
        made_here = key in self._made
        if fresh and not made_here:
            return WhyNot.FRESH
        if not source_known and not made_here:
            return WhyNot.SOURCE_UNKNOWN
        try:
            result = codec.read_json(self.path(key), self._kind, read=self._read)
        except RunDirError as error:
            if isinstance(error.__cause__, NO_FILE):
                return WhyNot.MISSING
            if self.strict:
                raise
            return WhyNot.DAMAGED
        if answers is not None and not answers(result):
            return WhyNot.OTHER_REQUEST
        if not self.strict and not made_here and lacked is not None and lacked(result):
            return WhyNot.LACKED
        self.reused.add(key)
        return result

    def readable(self, pattern: str) -> Iterator[T]:
        """Yield the results whose keys match, in the order of their files; unreadable ones are left out."""
        for path in sorted(self._folder.glob(f"{pattern}{self._suffix}")):
            try:
                yield codec.read_json(path, self._kind)
            except RunDirError:
                continue
