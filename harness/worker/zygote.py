"""Verb ``serve``: the zygote. Imports torch, loads the operator libraries, runs no operator, forks a child per probe.

``fork`` after ``import torch`` and before any operator is safe on the CPU and costs milliseconds, where a fresh
import costs seconds. The controller writes ``{"run_dir": PATH}`` per line on standard input; the answers are
``{"run_dir", "pid"}`` when the child lives and ``{"run_dir", "status", "max_rss_bytes"}`` when it has ended, with
the raw wait status. Each child has a process group of its own and dies with the zygote. What is left of the group
when its leader ends is killed; a process that a model put into a session of its own escapes that.
"""

import gc
import json
import os
import selectors
import signal
import sys

import torch  # noqa: F401  imported for the children

# What a child will need, imported once here.
from gate_worker import (  # noqa: F401
    export,
    fingerprint,
    libraries,
    lifecycle,
    wire,
)
from gate_worker.run import script  # noqa: F401


def serve(request, run_dir, log):
    del run_dir
    libraries.load(request.get("libraries") or (), log)
    wake(log)
    Zygote(lifecycle.Answers.descriptor).run(log)


def wake(log):
    """Do once what every child would do; a torch that cannot is served all the same, its children start colder."""
    try:
        from gate_worker import warmup

        warmup.wake()
    except Exception as error:
        log.mark("not_woken", "%s: %s" % (type(error).__name__, error))


class Zygote:
    """A single-threaded loop over orders and dead children."""

    def __init__(self, answers):
        self._answers = answers
        self._children = {}
        self._wake_read, self._wake_write = os.pipe()
        os.set_blocking(self._wake_read, False)
        os.set_blocking(self._wake_write, False)

    def run(self, log):
        signal.signal(signal.SIGCHLD, lambda *_: None)
        signal.set_wakeup_fd(self._wake_write, warn_on_full_buffer=False)
        gc.freeze()
        selector = selectors.DefaultSelector()
        selector.register(0, selectors.EVENT_READ)
        selector.register(self._wake_read, selectors.EVENT_READ)
        log.emit("serving")
        self._answer({"ready": True})
        pending = b""
        while True:
            for key, _ in selector.select():
                if key.fd == self._wake_read:
                    self._drain()
                    self._reap()
                    continue
                chunk = os.read(0, 65536)
                if not chunk:
                    return
                *lines, pending = (pending + chunk).split(b"\n")
                for line in lines:
                    self._fork(json.loads(line.decode("utf-8"))["run_dir"])

    def _fork(self, run_dir):
        parent = os.getpid()
        pid = os.fork()
        if pid == 0:
            self._be_child(run_dir, parent)
        try:
            os.setpgid(pid, pid)
        except OSError:
            pass  # the child has done it, or is gone already
        self._children[pid] = run_dir
        self._answer({"run_dir": run_dir, "pid": pid})

    def _be_child(self, run_dir, parent):
        """Never returns: a child that leaves this function by any door must not go on as a second zygote."""
        try:
            os.setpgid(0, 0)
            lifecycle.die_with_parent(parent)
            signal.set_wakeup_fd(-1)
            signal.signal(signal.SIGCHLD, signal.SIG_DFL)
            for descriptor in (self._answers, self._wake_read, self._wake_write):
                os.close(descriptor)
            redirect(0, os.devnull, os.O_RDONLY)
            redirect(1, os.path.join(run_dir, wire.STDOUT), os.O_WRONLY | os.O_CREAT | os.O_APPEND)
            redirect(2, os.path.join(run_dir, wire.STDERR), os.O_WRONLY | os.O_CREAT | os.O_APPEND)
            lifecycle.work_in(run_dir)
        except BaseException:
            sys.excepthook(*sys.exc_info())
        finally:
            sys.stderr.flush()
            os._exit(wire.EXIT_BROKEN)

    def _reap(self):
        while self._children:
            ended = os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT)
            if ended is None:
                return
            try:  # before it is reaped: a zombie still holds its number, so this group is nobody else's
                os.killpg(ended.si_pid, signal.SIGKILL)
            except (ProcessLookupError, PermissionError):
                pass
            pid, status, usage = os.wait4(ended.si_pid, 0)
            run_dir = self._children.pop(pid, None)
            if run_dir is None:
                continue  # something that was started while torch was imported
            self._answer({"run_dir": run_dir, "status": status, "max_rss_bytes": usage.ru_maxrss * 1024})

    def _drain(self):
        try:
            while os.read(self._wake_read, 4096):
                pass
        except BlockingIOError:
            pass

    def _answer(self, message):
        os.write(self._answers, (json.dumps(message) + "\n").encode("utf-8"))


def redirect(descriptor, path, flags):
    opened = os.open(path, flags, 0o644)
    os.dup2(opened, descriptor)
    os.close(opened)
