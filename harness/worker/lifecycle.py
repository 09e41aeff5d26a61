"""How a worker begins and ends: parent-death signal, stack dumps, verbs, and a hard exit after goodbye."""

import ctypes
import faulthandler
import importlib
import json
import os
import resource
import signal
import sys
import threading
import warnings

from gate_worker import confinement, events, limits, native_stacks, wire

PR_SET_PDEATHSIG = 1
PR_SET_PTRACER = 0x59616D61
PR_SET_PTRACER_ANY = ctypes.c_ulong(-1)
# Writing to a pipe that nobody reads, or past the limit of a file, is an error.
IGNORED_BY_PYTHON = (signal.SIGPIPE, signal.SIGXFSZ)
FATAL = (signal.SIGSEGV, signal.SIGABRT, signal.SIGBUS, signal.SIGILL, signal.SIGFPE)

# Verbs that run code of the user before they load anything, which may need its home, and confine themselves then.
LATER_CONFINED = ("adopt",)


def take_signals_back():
    """Undo what whoever started the gate ignores or blocks (``nohup``, ``&``, a supervisor): no probe depends on it."""
    for number in signal.valid_signals():
        if signal.getsignal(number) is signal.SIG_IGN and number not in IGNORED_BY_PYTHON:
            signal.signal(number, signal.default_int_handler if number == signal.SIGINT else signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_SETMASK, ())


def die_with_parent(parent_pid, number=signal.SIGKILL):
    """Ask the kernel to send this process a signal when the thread that started it ends; leave if that has happened.

    Processes that a model starts do not inherit this: whoever started this one ends them (``orphans.py``).
    """
    libc = ctypes.CDLL(None)
    libc.prctl(PR_SET_PDEATHSIG, number)
    libc.prctl(PR_SET_PTRACER, PR_SET_PTRACER_ANY, 0, 0, 0)
    if os.getppid() != parent_pid:
        os.write(2, b"the parent of this worker is not the process that gave the order\n")
        os._exit(wire.EXIT_ORPHANED)


class Answers:
    """Where answers to the controller go: ``descriptor``, once standard output has been put aside."""

    descriptor = -1


def put_answers_aside():
    """Keep standard output for answers; whatever else is printed goes to standard error.

    Done before torch is imported. The copy is not inherited by programs that are started from here.
    """
    Answers.descriptor = os.dup(1)
    os.dup2(2, 1)


def arm_stack_dumps(path, library):
    """Dump all threads to the file ``path`` on SIGUSR1 (also while C code holds the GIL) and on a fatal signal.

    With a ``library`` native frames follow Python's, and come by themselves on SIGUSR2.
    """
    if library:
        native_stacks.arm(library, path)
    stacks = open(path, "a")
    faulthandler.enable(file=stacks, all_threads=True)
    faulthandler.register(signal.SIGUSR1, file=stacks, all_threads=True)
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))


def fork(run_dir, library, work):
    """Return the number of a process that is forked here, does ``work`` and leaves; what ``work`` raises goes up there.

    Its stacks go into a file of its own: several such processes may crash at once.
    """
    parent = os.getpid()
    with warnings.catch_warnings():  # of Python 3.12 on: what becomes of forked threads is the question here
        warnings.simplefilter("ignore", DeprecationWarning)
        pid = os.fork()
    if pid:
        return pid
    die_with_parent(parent)
    arm_stack_dumps(os.path.join(run_dir, "%s.%d" % (wire.STACKS, os.getpid())), library)
    work()
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(wire.EXIT_STEPS_DONE)


def join(pid):
    """Wait until a forked process has done its work; where it ends before, this one ends by the same signal or code."""
    _, status = os.waitpid(pid, 0)
    if os.WIFSIGNALED(status):
        number = os.WTERMSIG(status)
        ctypes.CDLL(None).signal(
            number, None
        )  # its stacks have been dumped there; Python allows this in one thread only
        signal.pthread_kill(threading.get_ident(), number)
    if os.WEXITSTATUS(status) != wire.EXIT_STEPS_DONE:
        os._exit(os.WEXITSTATUS(status))


def exit_with_teardown(wait_s):
    """End the process as ``sys.exit`` does in the main thread; never returns.

    It waits for ``wait_s`` when the interpreter is gone, so that other threads get a CPU before the process is, too.

    Not by raising SystemExit: below a worker's main thread there may be a zygote, which must not go on. Fatal signals
    end it at once, without a dump: while one is written, the main thread would get as far as exit status 0.
    """
    faulthandler.disable()
    for number in FATAL:
        signal.signal(number, signal.SIG_DFL)
    libc = ctypes.CDLL(None)
    sleep = ctypes.cast(libc.sleep, ctypes.c_void_p)  # in C: no Python runs by then
    libc.__cxa_atexit(sleep, ctypes.c_void_p(wait_s), None)
    ctypes.pythonapi.Py_Exit(0)


def print_into(run_dir):
    """Let the files of ``run_dir`` have what is printed from here on."""
    redirect(1, os.path.join(run_dir, wire.STDOUT), os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    redirect(2, os.path.join(run_dir, wire.STDERR), os.O_WRONLY | os.O_CREAT | os.O_APPEND)


def redirect(descriptor, path, flags):
    opened = os.open(path, flags, 0o644)
    os.dup2(opened, descriptor)
    os.close(opened)


def work_in(run_dir):
    """Do the one request that lies in ``run_dir`` and leave without interpreter teardown.

    Teardown of a process with torch in it aborts now and then after correct results, so it is skipped.
    """
    do(run_dir, lambda wanted: limits.apply(wanted, os.path.abspath(run_dir)))
    os._exit(0)


def do(run_dir, limit):
    """Do the request that lies in ``run_dir``, say goodbye there and return it; ``limit`` applies its limits.

    It runs in a folder of its own, so that a bare file name of an artifact names none of the evidence.
    """
    run_dir = os.path.abspath(run_dir)
    work = os.path.join(run_dir, wire.WORK)
    os.makedirs(work, exist_ok=True)
    os.chdir(work)
    # What imports torch._inductor, as the converter of 2.6 does, makes this folder, by default where nobody may write.
    os.environ[wire.INDUCTOR_FOLDER] = os.path.join(work, "inductor")
    with open(os.path.join(run_dir, wire.REQUEST), encoding="utf-8") as stream:
        request = json.load(stream)
    log = events.EventLog(os.path.join(run_dir, wire.EVENTS))
    log.hello()
    arm_stack_dumps(os.path.join(run_dir, wire.STACKS), request.get("stack_dumper"))
    if request.get("limits"):
        refused = limit(request["limits"])
        if refused:
            log.mark("limits", refused)
    verb = request["verb"]
    if request["protocol"] != wire.PROTOCOL or verb not in wire.VERBS:
        log.refuse("cannot serve %r" % verb)
        os._exit(2)
    try:
        with log.phase(wire.IMPORT):
            module = importlib.import_module("gate_worker." + wire.VERBS[verb])
            if verb not in LATER_CONFINED:
                confinement.enter(request, run_dir, log)
        getattr(module, verb)(request, run_dir, log)
    except events.PhaseFailed:
        pass
    log.emit("bye")
    log.close()
    sys.stdout.flush()
    sys.stderr.flush()
    return request
