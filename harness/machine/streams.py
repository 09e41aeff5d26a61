"""Standard streams that are closed, full or read by nobody: what they refuse ends no command."""

import errno
import io
import os
import select
import sys

READER_GONE = (errno.EPIPE, errno.EIO)  # EIO: the terminal was closed


class StandardStream(io.FileIO):
    """A standard stream that never fails: once unwritable, the rest is dropped; ``refusal``: errno, if not EPIPE."""

    refusal: int | None = None

    def write(self, data: object) -> int:
        """Write what can be written; a stream that another process has made non-blocking is waited for."""
        try:
            while (written := super().write(data)) is None:  # type: ignore[arg-type]
                select.select([], [self], [])
        except OSError as error:
            if error.errno not in READER_GONE:
                self.refusal = error.errno
            null = os.open(os.devnull, os.O_WRONLY)
            os.dup2(null, self.fileno())
            os.close(null)
            return memoryview(data).nbytes  # type: ignore[arg-type]
        return written


def secure() -> StandardStream:
    """Make both outputs never fail; return raw standard output. Closed ones become ``/dev/null``: no file gets 1, 2."""
    for number in range(3):
        try:
            os.fstat(number)
        except OSError:
            os.open(os.devnull, os.O_RDWR)  # gets the lowest free number, which is this one
            os.set_inheritable(number, True)
    output, errors = StandardStream(1, "w", closefd=False), StandardStream(2, "w", closefd=False)
    sys.stdout = _text(output, getattr(sys.stdout, "encoding", "utf-8"))
    sys.stderr = _text(errors, getattr(sys.stderr, "encoding", "utf-8"))
    return output


def _text(raw: StandardStream, encoding: str) -> io.TextIOWrapper:
    return io.TextIOWrapper(io.BufferedWriter(raw), encoding=encoding, errors="backslashreplace", line_buffering=True)
