"""Runs a command, and ends it and whatever it has started with the process that asked for it.

``PYTHON -I -S supervisor.py ASKER_PID REPORT_FD COMMAND...``: ``start`` of ``processes.py`` types that, in a session of
its own. A parent-death signal alone would end the command and leave its children: a compiler's, an installer's. It ends
as the command does. ``REPORT_FD`` is closed once the command runs, and gets errno first where it cannot.
"""

import ctypes
import os
import resource
import signal
import sys
from typing import NoReturn

PR_SET_PDEATHSIG = 1
NOT_EXECUTED = 127
IGNORED_BY_PYTHON = (signal.SIGPIPE, signal.SIGXFSZ)


def supervise(asker: int, report: int, command: list[str]) -> NoReturn:
    libc = ctypes.CDLL(None)

    def end_with_asker(*_: object) -> None:
        if os.getppid() != asker:
            os.killpg(0, signal.SIGKILL)

    signal.signal(signal.SIGTERM, end_with_asker)  # from anybody else it is meant for the command, which ends this too
    libc.prctl(PR_SET_PDEATHSIG, signal.SIGTERM)
    end_with_asker()
    os.set_inheritable(report, False)
    this = os.getpid()
    pid = os.fork()
    if pid == 0:
        try:
            libc.prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
            if os.getppid() == this:
                for number in IGNORED_BY_PYTHON:
                    signal.signal(number, signal.SIG_DFL)
                os.execvp(command[0], command)  # noqa: S606
        except OSError as error:
            os.write(report, b"%d" % (error.errno or 0))
        finally:
            os._exit(NOT_EXECUTED)
    os.close(report)
    code = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
    if code < 0:
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        if -code != signal.SIGKILL:
            signal.signal(-code, signal.SIG_DFL)
        os.kill(this, -code)
    os._exit(code)


if __name__ == "__main__":
    supervise(int(sys.argv[1]), int(sys.argv[2]), sys.argv[3:])
