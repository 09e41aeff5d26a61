"""Follows the diary of a worker while it grows."""

from pathlib import Path
from typing import BinaryIO

from harness.runtime.event_reader import Diary

# An artifact that writes into the diary can make it as large as its limit of files.
LONGEST_LINE_BYTES = 16 << 20
MOST_DIARY_BYTES = 256 << 20


class EventTail:
    """Feeds a diary with the complete lines that a worker has appended since the last look."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._offset = 0
        self.diary = Diary()

    def refresh(self) -> Diary:
        """Read what is new and return the diary."""
        try:
            with self._path.open("rb") as stream:
                while self._offset < MOST_DIARY_BYTES and self._take(stream):
                    pass
        except FileNotFoundError:
            pass
        return self.diary

    def _take(self, stream: BinaryIO) -> bool:
        """Feed the next piece of the file; False if there is no more of it yet."""
        stream.seek(self._offset)
        chunk = stream.read(LONGEST_LINE_BYTES)
        complete = chunk.rfind(b"\n") + 1
        if complete == 0 and len(chunk) == LONGEST_LINE_BYTES:
            complete = len(chunk)  # no line of ours
        self._offset += complete
        self.diary.feed(chunk[:complete].decode("utf-8", "replace").splitlines())
        return complete > 0 and len(chunk) == LONGEST_LINE_BYTES
