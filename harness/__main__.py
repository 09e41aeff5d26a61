"""The gate as ``python -m`` of this package starts it, and the console script ``torchscript-gate``."""

import os
import signal
import sys

if sys.version_info < (3, 11):  # noqa: UP036  so that it is said, where an older one would trip over a line
    print(f"error: the gate needs Python 3.11 or later, and this is {sys.version.split()[0]}", file=sys.stderr)
    sys.exit(2)


def main() -> int:
    for number in (signal.SIGINT, signal.SIGHUP, signal.SIGTERM):
        if number == signal.SIGTERM or signal.getsignal(number) is not signal.SIG_IGN:
            signal.signal(number, _leave)
    _leave_working_directory_out()
    from harness.cli.entry import program  # noqa: PLC0415  what is imported may be interrupted

    return program()


def _leave(*_: object) -> None:
    """End at once: no command has begun."""
    try:
        os.write(2, b"interrupted\n")
    finally:
        os._exit(130)


def _leave_working_directory_out() -> None:
    """Take it off the path, where ``-m`` puts it first: what lies there is nobody's to import, unless it is harness.

    By its path, ``python DIR/harness``, the package itself lies there, and the folder around it takes its place.
    """
    try:
        here = os.path.realpath(".")
    except FileNotFoundError:  # deleted: the command says so
        return
    first = os.path.realpath(sys.path[0] or ".")
    root = os.path.realpath(os.path.join(__file__, "..", ".."))  # noqa: PTH118  nothing more is imported yet
    if not __package__:
        sys.path[: not sys.flags.safe_path] = [root]
    elif not sys.flags.safe_path and first == here and first != root:
        del sys.path[0]


if __name__ == "__main__":
    sys.exit(main())
