"""The entry point: the command that was typed, its exit code, and errors in one line."""

import errno
import sys
import traceback
from collections.abc import Sequence

from harness.cli.parser import command_module, parser
from harness.domain.text import visible
from harness.errors import ExitCode, GateError
from harness.system.files import keep_bug_report

# What pyproject.toml requires, by the names that Python imports.
REQUIRED = ("jinja2", "msgspec", "numpy", "packaging", "prometheus_client", "shtab", "tabulate")

# What the machine refuses is no bug of the gate, wherever it was not foreseen.
OF_THE_MACHINE = (
    *(errno.ENOSPC, errno.EDQUOT, errno.EROFS, errno.EFBIG, errno.EIO, errno.EACCES, errno.EPERM),
    *(errno.EMFILE, errno.ENFILE, errno.ENOMEM, errno.EAGAIN, errno.ELOOP, errno.ESTALE, errno.ENAMETOOLONG),
)


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command and return its exit code; errors are one line each on standard error."""
    arguments = list(sys.argv[1:] if argv is None else argv)
    parsed = parser(_called(sys.argv[0]), typed=arguments).parse_args(arguments)
    try:
        return int(command_module(parsed.verb).call(parsed, arguments))
    except KeyboardInterrupt:
        print("interrupted", file=sys.stderr)
        return ExitCode.INTERRUPTED
    except GateError as error:
        print(f"error: {visible(str(error))}", file=sys.stderr)
        return error.exit_code
    except Exception as error:
        if isinstance(error, ModuleNotFoundError) and error.name in REQUIRED:
            install = (
                "install the gate with its dependencies there (pip install .), or run python3 noxfile.py -s compat"
            )
            print(f"error: {sys.executable} has no {error.name}, which the gate needs: {install}", file=sys.stderr)
            return ExitCode.ENVIRONMENT
        if isinstance(error, OSError) and error.errno in OF_THE_MACHINE:
            where = visible(str(error.filename)) if error.filename else "the machine"
            print(f"error: {where}: {error.strerror}; free or allow what is missing, then repeat", file=sys.stderr)
            return ExitCode.CONFIGURATION
        kept = keep_bug_report(traceback.format_exc())  # our own bug: say so, keep the traceback for the report
        report = str(kept) if kept is not None else f"{type(error).__name__}: {visible(str(error))}"
        print(f"error: this is a bug of the harness; please report it with {report}", file=sys.stderr)
        return ExitCode.INTERNAL


def _called(program: str) -> str:
    """Return what a user types to start this program, which lies at ``program``: the console script has a name."""
    name = program.rpartition("/")[2]
    return name if name.startswith("torchscript-gate") else "python -m harness"
