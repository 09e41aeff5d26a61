"""What a worker prints: of each stream a file keeps the head and the tail, however long it prints."""

import ctypes
import os
import stat
from collections.abc import Callable
from pathlib import Path
from typing import Self

from harness.worker import wire

HEAD_BYTES = TAIL_BYTES = 1 << 20
# Before that much more is there, no space is given back.
SLACK_BYTES = 4 << 20
KEEP_SIZE, PUNCH_HOLE = 1, 2  # of fallocate, FALLOC_FL_...
ALIGNED_BYTES = 1 << 16


class PrintedFile:
    """The file of one stream, to which a process appends; the disk space of its middle is given back meanwhile.

    Where a file system cannot do that (``FALLOC_FL_PUNCH_HOLE``), the file is cut once nobody appends any more.

    Args:
        descriptor: of the file, open for reading and writing; whoever appends to it has O_APPEND set.
    """

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor
        self._freed_to = HEAD_BYTES
        self.left_out_bytes = 0

    @property
    def printed_bytes(self) -> int:
        """How much was printed so far."""
        return os.fstat(self._descriptor).st_size

    def trim(self) -> None:
        end = (self.printed_bytes - TAIL_BYTES) // ALIGNED_BYTES * ALIGNED_BYTES
        if end - self._freed_to > SLACK_BYTES:
            begin, length = ctypes.c_int64(self._freed_to), ctypes.c_int64(end - self._freed_to)
            ctypes.CDLL(None).fallocate(self._descriptor, PUNCH_HOLE | KEEP_SIZE, begin, length)
            self._freed_to = end

    def finish(self) -> None:
        """Leave head, a line that says how much is left out, and tail; for when nobody appends any more."""
        size = self.printed_bytes
        if size <= HEAD_BYTES + TAIL_BYTES:
            return
        self.left_out_bytes = size - HEAD_BYTES - TAIL_BYTES
        tail = os.pread(self._descriptor, TAIL_BYTES, size - TAIL_BYTES)
        note = f"\n[the gate left out {self.left_out_bytes} bytes here, and keeps the first and the last 1 MiB]\n"
        os.ftruncate(self._descriptor, HEAD_BYTES)
        os.pwrite(self._descriptor, note.encode() + tail, HEAD_BYTES)


class Printed:
    """Both streams of the worker in ``run_dir``; leaving its ``with`` block finishes them. Never raises."""

    def __init__(self, run_dir: Path) -> None:
        self._run_dir = run_dir
        self._files: dict[str, tuple[int, PrintedFile]] = {}

    def trim(self) -> None:
        self._each(PrintedFile.trim)

    def finish(self) -> tuple[str, ...]:
        """Leave head and tail, and say so of each stream that was longer."""
        self._each(PrintedFile.finish)
        notes = []
        for name, (descriptor, file) in self._files.items():
            os.close(descriptor)
            if file.left_out_bytes:
                megabytes = (file.left_out_bytes + HEAD_BYTES + TAIL_BYTES) / 1e6
                notes.append(f"it printed {megabytes:.0f} MB to {name}; the first and the last 1 MiB are kept")
        self._files = {}
        return tuple(notes)

    def _each(self, action: Callable[[PrintedFile], None]) -> None:
        for name in (wire.STDOUT, wire.STDERR):
            try:
                if name not in self._files:
                    self._files[name] = _opened(self._run_dir / name)
                action(self._files[name][1])
            except OSError:  # not there yet, no file of ours, or a full disk: then its tail is lost
                continue

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.finish()


def _opened(path: Path) -> tuple[int, PrintedFile]:
    """Return a stream's file, no link. Raises ``OSError``: it is not there, or not a file of its own."""
    descriptor = os.open(path, os.O_RDWR | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    status = os.fstat(descriptor)
    if not stat.S_ISREG(status.st_mode) or status.st_nlink != 1:
        os.close(descriptor)
        raise OSError(f"{path} is no file of its own")
    return descriptor, PrintedFile(descriptor)
