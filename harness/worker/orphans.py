"""What a process leaves behind when it ends is found, whatever session or group it has moved to, and ended with it.

The kernel gives orphans to the nearest process above them that asks for them. Here each probe asks, for as long as it
lives, and whoever has started it (a zygote, or this file as a program) gets what is left and kills it.

``orphans.py ASKER_PID REPORT_FD VARIABLES COMMAND...`` runs a command in a session of its own with these environment
variables (JSON) and its own number as the last argument, and ends as it does. ``REPORT_FD`` gets the number of the
command in a line, and errno after it where that cannot be executed. With whoever asked for it, it ends the command.
"""

import ctypes
import json
import os
import resource
import signal
import sys
import time

PR_SET_PDEATHSIG, PR_SET_CHILD_SUBREAPER = 1, 36
NOT_EXECUTED = 127
# For how long processes are killed that start others as fast: their CPU time is limited, and they are found again.
PATIENCE_S = 2.0
PAUSE_S = 0.002


def adopt():
    """Have orphans below this process become its children."""
    ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)


def children():
    """Return the numbers of the children of this process, which alone reaps them: what is read holds."""
    numbers = set()
    try:
        for thread in os.listdir("/proc/self/task"):
            with open("/proc/self/task/%s/children" % thread) as stream:
                numbers.update(map(int, stream.read().split()))
    except OSError:  # a kernel without these files
        return _with_this_parent()
    return numbers


def _with_this_parent():
    own, numbers = os.getpid(), set()
    for name in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open("/proc/%s/stat" % name, "rb") as stream:
                parent = int(stream.read().rpartition(b")")[2].split()[1])
        except (OSError, IndexError):  # gone meanwhile
            continue
        if parent == own:
            numbers.add(int(name))
    return numbers


def end(spared=()):
    """Kill the children of this process that are not ``spared``, and what these leave, until there are none."""
    limit = time.monotonic() + PATIENCE_S
    while True:
        left = children().difference(spared)
        if not left or time.monotonic() > limit:
            return
        for pid in left:
            try:
                os.kill(pid, signal.SIGKILL)
                os.waitpid(pid, os.WNOHANG)
            except (ProcessLookupError, ChildProcessError, PermissionError):
                pass
        time.sleep(PAUSE_S)


def kill_group(leader):
    try:
        os.killpg(leader, signal.SIGKILL)
    except (ProcessLookupError, PermissionError):
        pass  # nobody is left in it


def run(asker, report, variables, command):
    """Run ``command``, end what it leaves, and end as it has ended."""
    adopt()
    this = os.getpid()
    pid = os.fork()
    if pid == 0:
        try:
            os.setsid()
            os.set_inheritable(report, False)
            os.write(report, b"%d\n" % os.getpid())
            for number in (signal.SIGPIPE, signal.SIGXFSZ):  # which Python ignores
                signal.signal(number, signal.SIG_DFL)
            os.execvpe(command[0], command + [str(this)], variables)  # noqa: S606
        except OSError as error:
            os.write(report, b"%d" % error.errno)
        finally:
            os._exit(NOT_EXECUTED)

    def stop(*_):
        os.kill(pid, signal.SIGKILL)

    signal.signal(signal.SIGTERM, stop)
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGTERM)
    if os.getppid() != asker:
        stop()
    os.close(report)
    for descriptor in (0, 1):  # whoever reads answers sees their end with the command's
        os.dup2(os.open(os.devnull, os.O_RDWR), descriptor)
    os.waitid(os.P_PID, pid, os.WEXITED | os.WNOWAIT)
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    kill_group(pid)
    end(spared=(pid,))
    _, status = os.waitpid(pid, 0)
    if os.WIFSIGNALED(status):
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        number = os.WTERMSIG(status)
        if number != signal.SIGKILL:
            signal.signal(number, signal.SIG_DFL)
        os.kill(this, number)
    os._exit(os.WEXITSTATUS(status))


if __name__ == "__main__":
    run(int(sys.argv[1]), int(sys.argv[2]), json.loads(sys.argv[3]), sys.argv[4:])
