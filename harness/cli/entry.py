"""The entry point: the command that was typed, its exit code, and errors in one line."""

import argparse
import atexit
import errno
import os
import shlex
import signal
import sys
import time
import traceback
from collections.abc import Sequence
from pathlib import Path
from types import FrameType

from harness import DISTRIBUTION, PACKAGE
from harness.cli.options import project_of
from harness.cli.parser import commands, parser
from harness.core.errors import ExitCode, GateError
from harness.machine import streams

# What pyproject.toml requires, by the names that Python imports.
REQUIRED = (
    *("cxxfilt", "elftools", "jinja2", "msgspec", "numpy", "packaging", "platformdirs", "prometheus_client", "shtab"),
    "tabulate",
)

WITHOUT_A_RUN = (ExitCode.CONFIGURATION, ExitCode.ENVIRONMENT, ExitCode.INTERNAL)
# A supervisor that sends SIGTERM again, or a person who presses Ctrl-C again, means the same end, which takes so long.
AGAIN_S = 10.0
ENDING = (signal.SIGINT, signal.SIGHUP, signal.SIGTERM)
# What the machine refuses is no bug of the gate, wherever it was not foreseen.
OF_THE_MACHINE = (
    *(errno.ENOSPC, errno.EDQUOT, errno.EROFS, errno.EFBIG, errno.EIO, errno.EACCES, errno.EPERM),
    *(errno.EMFILE, errno.ENFILE, errno.ENOMEM, errno.EAGAIN, errno.ELOOP, errno.ESTALE, errno.ENAMETOOLONG),
)


def program() -> int:
    """Run the command that was typed and return its exit code, which is a documented one."""
    output = streams.secure()
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


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command and return its exit code; errors are one line each on standard error."""
    arguments = list(sys.argv[1:] if argv is None else argv)
    try:
        code = _main(arguments)
    except SystemExit as left:  # of argparse
        _keep_attempt(arguments, int(left.code or 0))
        raise
    _keep_attempt(arguments, code)
    return code


def _keep_attempt(arguments: Sequence[str], code: int) -> None:
    """Keep that ``compat`` ended without a run: ``report last`` would show the run before it, which may be green."""
    if "compat" not in arguments or "--list" in arguments or code not in WITHOUT_A_RUN:
        return
    from harness.project import REPORTS
    from harness.store.run_folder import keep_attempt

    where = argparse.ArgumentParser(add_help=False, exit_on_error=False)
    where.add_argument("--out")
    where.add_argument("--project", default=".")
    try:
        named = where.parse_known_args(arguments)[0]
    except argparse.ArgumentError:  # nothing follows them
        named = argparse.Namespace(out=None, project=".")
    reports = Path(named.out) if named.out else Path(named.project) / REPORTS
    keep_attempt(reports, shlex.join(arguments), code)


def _main(arguments: Sequence[str]) -> int:
    parsed = parser(_called(sys.argv[0]), typed=arguments).parse_args(arguments)
    try:
        from harness.verdict.exit_codes import exit_code

        return exit_code(commands()[parsed.verb].call(parsed, project_of(parsed, arguments)))
    except KeyboardInterrupt:
        print("interrupted", file=sys.stderr)
        return ExitCode.INTERRUPTED
    except GateError as error:
        from harness.core.text import visible

        print(f"error: {visible(str(error))}", file=sys.stderr)
        return error.exit_code
    except Exception as error:
        if isinstance(error, ModuleNotFoundError) and error.name in REQUIRED:
            install = (
                "install the gate with its dependencies there (pip install .), or run python3 noxfile.py -s compat"
            )
            print(f"error: {sys.executable} has no {error.name}, which the gate needs: {install}", file=sys.stderr)
            return ExitCode.ENVIRONMENT
        from harness.core.text import visible
        from harness.machine.files import keep_bug_report, refusal

        if isinstance(error, OSError) and error.errno in OF_THE_MACHINE:
            where = visible(str(error.filename)) if error.filename else "this machine"
            print(f"error: {where}: {refusal(error)}; free or allow what is missing, then repeat", file=sys.stderr)
            return ExitCode.CONFIGURATION
        kept = keep_bug_report(traceback.format_exc())  # our own bug: say so, keep the traceback for the report
        report = str(kept) if kept is not None else f"{type(error).__name__}: {visible(str(error))}"
        print(f"error: this is a bug of the harness; please report it with {report}", file=sys.stderr)
        return ExitCode.INTERNAL


def _called(program: str) -> str:
    """Return what a user types to start this program, which lies at ``program``: the console script has a name."""
    name = program.rpartition("/")[2]
    return name if name.startswith(DISTRIBUTION) else f"python -m {PACKAGE}"


class _Interrupted(KeyboardInterrupt):
    """The end that a signal asks for.

    Where a KeyboardInterrupt itself leaves code that was compiled from text, as dataclasses do while they are imported,
    Python ends by SIGINT and not with the exit code, though it was caught (``exit_sigint`` in its ``Modules/main.c``).
    """


class _Signals:
    """What ends a command: SIGINT, SIGTERM and a terminal that was closed, once however often they come."""

    last: float | None = None
    code: int | None = None

    @classmethod
    def take(cls) -> None:
        """Let each raise a KeyboardInterrupt, and tell how a child has ended, whatever started this process ignores.

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
            raise _Interrupted
        if again:
            os._exit(cls.code)
