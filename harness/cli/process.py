"""A command as a process: its standard streams, its signals and its working directory, whatever they are."""

import atexit
import errno
import io
import os
import select
import signal
import sys
import time
from pathlib import Path
from types import FrameType

from harness.cli.entry import main
from harness.errors import ExitCode

# A supervisor that sends SIGTERM again, or a person who presses Ctrl-C again, means the same end, which takes so long.
AGAIN_S = 10.0
ENDING = (signal.SIGINT, signal.SIGHUP, signal.SIGTERM)
READER_GONE = (errno.EPIPE, errno.EIO)  # EIO: the terminal was closed


def program() -> int:
    """Run the command that was typed and return its exit code, which is a documented one."""
    output = _secure_streams()
    _Signals.take()
    try:
        Path.cwd()
    except OSError:
        print("error: the working directory was deleted; change to a folder that is there", file=sys.stderr)
        return ExitCode.CONFIGURATION
    try:
        code = main()
        sys.stdout.flush()
    except KeyboardInterrupt:
        print("interrupted", file=sys.stderr)
        code = ExitCode.INTERRUPTED
    except SystemExit as left:  # of argparse: --help, --version, wrong usage
        code = int(left.code or 0)
        sys.stdout.flush()
    if output.refusal is not None:
        why = os.strerror(output.refusal)
        print(
            f"error: standard output cannot be written: {why}; free space, or write elsewhere; "
            "a run that has ended is shown again by: report last",
            file=sys.stderr,
        )
        code = ExitCode.CONFIGURATION
    _Signals.leave_with(code)
    return code


class _Stream(io.FileIO):
    """A standard stream that never fails: once it cannot be written, the rest of it is dropped.

    Attributes:
        refusal: errno, where that is not because nobody reads it any more.
    """

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


def _secure_streams() -> _Stream:
    """Make standard output and error ones that never fail, and return the raw standard output.

    Closed ones become ``/dev/null``, so that no file that is opened later gets their numbers.
    """
    for number in range(3):
        try:
            os.fstat(number)
        except OSError:
            os.open(os.devnull, os.O_RDWR)  # gets the lowest free number, which is this one
            os.set_inheritable(number, True)
    output, errors = _Stream(1, "w", closefd=False), _Stream(2, "w", closefd=False)
    sys.stdout = _text(output, getattr(sys.stdout, "encoding", "utf-8"))
    sys.stderr = _text(errors, getattr(sys.stderr, "encoding", "utf-8"))
    return output


def _text(raw: _Stream, encoding: str) -> io.TextIOWrapper:
    return io.TextIOWrapper(io.BufferedWriter(raw), encoding=encoding, errors="backslashreplace", line_buffering=True)


class _Signals:
    """What ends a command: SIGINT, SIGTERM and a terminal that was closed, once however often they come."""

    last: float | None = None
    code: int | None = None

    @classmethod
    def take(cls) -> None:
        """Let each raise KeyboardInterrupt, and tell how a child has ended, whatever started this process ignores.

        SIGINT stays ignored behind ``&`` and SIGHUP behind ``nohup``, as everywhere.
        """
        for number in ENDING:
            if number == signal.SIGTERM or signal.getsignal(number) is not signal.SIG_IGN:
                signal.signal(number, cls._interrupt)
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)  # ignored, every child would seem to end with 0
        signal.pthread_sigmask(signal.SIG_SETMASK, ())

    @classmethod
    def leave_with(cls, code: int) -> None:
        """Let no signal change ``code`` any more; one that repeats later, where threads do not end, leaves with it."""
        cls.code = code
        atexit.register(cls._ignore)  # threads have ended then, and Python is about to take its handlers back

    @classmethod
    def _ignore(cls) -> None:
        for number in ENDING:
            signal.signal(number, signal.SIG_IGN)

    @classmethod
    def _interrupt(cls, _number: int, _frame: FrameType | None) -> None:
        now = time.monotonic()
        if cls.last is not None and now - cls.last < AGAIN_S:
            return
        again, cls.last = cls.last is not None, now
        if cls.code is None:
            raise KeyboardInterrupt
        if again:
            os._exit(cls.code)
