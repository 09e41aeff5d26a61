"""Verb ``serve``: the zygote. Imports torch, loads the operator libraries, runs no operator, forks a child per probe.

``fork`` after ``import torch`` and before any operator is safe on the CPU and costs milliseconds, where a fresh
import costs seconds. The controller writes ``{"run_dir": PATH}`` per line on standard input; the answers are
``{"run_dir", "pid"}`` when the child lives and ``{"run_dir", "status", "max_rss_bytes"}`` when it has ended, with
the raw wait status. Each child has a process group of its own and dies with the zygote. When it ends, what is left of
the group is killed, and what has moved to another (``orphans.py``). SIGTERM, which the controller's end sends too, ends
all children and what they leave, and then the zygote.

With ``"batch": true`` the child is a batch worker (``batch.py``). ``{"run_dir": PATH, "within": FOLDER}`` hands a
request to the one in that folder. Its answers are the same, without memory: the status is 0 where the request was done,
else that of the worker, which has ended. Where there is none any more, it is ``{"run_dir", "gone": true}``.
"""

import contextlib
import gc
import importlib
import json
import os
import selectors
import signal
import socket
import sys

import torch  # noqa: F401  imported for the children

# What a child will need, imported once here.
from gate_worker import (  # noqa: F401
    batch,
    export,
    fingerprint,
    libraries,
    lifecycle,
    orphans,
    wire,
)
from gate_worker.run import script  # noqa: F401


def serve(request, _run_dir, log):
    libraries.load(request.get("libraries") or (), log)
    wake(log)
    preload(request.get("preload") or (), log)
    Zygote(lifecycle.Answers.descriptor).run(log)


def wake(log):
    """Do once what every child would do; a torch that cannot is served all the same, its children start colder."""
    try:
        from gate_worker import warmup

        warmup.wake()
    except Exception as error:
        log.mark("not_woken", "%s: %s" % (type(error).__name__, error))


def preload(names, log):
    """Import modules of the worker once for all children; where one cannot be, its verb will say so."""
    for name in names:
        try:
            importlib.import_module("gate_worker." + name)
        except Exception as error:
            log.mark("not_preloaded:" + name, "%s: %s" % (type(error).__name__, error))


class BatchWorker:
    """One of the children, and the request that it is at."""

    def __init__(self, channel):
        self.channel = channel
        self.pid = 0
        self.at_work = None


class Zygote:
    """A single-threaded loop over orders, answers of batch workers, and dead children."""

    def __init__(self, answers):
        self._answers = answers
        self._children = {}
        self._spared = set()
        self._is_ending = False
        self._batches = {}
        self._selector = selectors.DefaultSelector()
        self._wake_read, self._wake_write = os.pipe()
        os.set_blocking(self._wake_read, False)
        os.set_blocking(self._wake_write, False)

    def run(self, log):
        signal.signal(signal.SIGCHLD, lambda *_: None)
        signal.set_wakeup_fd(self._wake_write, warn_on_full_buffer=False)
        self._spared = orphans.children()  # started while torch was imported
        orphans.adopt()
        signal.signal(signal.SIGTERM, self._begin_ending)
        lifecycle.die_with_parent(os.getppid(), signal.SIGTERM)
        gc.freeze()
        self._selector.register(0, selectors.EVENT_READ)
        self._selector.register(self._wake_read, selectors.EVENT_READ)
        log.emit("serving")
        self._answer({"ready": True})
        try:
            self._obey()
        finally:
            self._end()

    def _obey(self):
        pending = b""
        while True:
            for key, _ in self._selector.select():
                if self._is_ending:
                    return
                if key.fd == self._wake_read:
                    self._drain()
                    self._reap()
                    continue
                if key.data is not None:
                    self._hear(key.data)
                    continue
                chunk = os.read(0, 65536)
                if not chunk:
                    return
                *lines, pending = (pending + chunk).split(b"\n")
                for line in lines:
                    self._take(json.loads(line.decode("utf-8")))

    def _begin_ending(self, *_):
        self._is_ending = True

    def _end(self):
        """Kill all children and what they leave; nobody is told."""
        for pid in self._children:
            orphans.kill_group(pid)
        orphans.end()

    def _take(self, order):
        if "within" in order:
            self._hand_over(order["run_dir"], self._batches.get(order["within"]))
        elif order.get("batch"):
            ours, theirs = socket.socketpair()
            worker = self._batches[order["run_dir"]] = BatchWorker(ours)
            with theirs:
                worker.pid = self._fork(order["run_dir"], theirs)
            ours.setblocking(False)
            self._selector.register(ours, selectors.EVENT_READ, worker)
        else:
            self._fork(order["run_dir"])

    def _hand_over(self, run_dir, worker):
        if worker is None:
            self._answer({"run_dir": run_dir, "gone": True})
            return
        worker.at_work = run_dir
        self._answer({"run_dir": run_dir, "pid": worker.pid})
        with contextlib.suppress(OSError):  # it has ended; so has the request when it is reaped
            worker.channel.sendall(json.dumps(run_dir).encode("utf-8") + b"\n")

    def _hear(self, worker):
        """Pass on that a batch worker has done its request; not that it is gone, which is told when it is reaped."""
        try:
            done = worker.channel.recv(1)
        except BlockingIOError:
            return
        except OSError:
            done = b""
        if not done:
            self._stop_hearing(worker)
        elif worker.at_work is not None:
            self._answer({"run_dir": worker.at_work, "status": 0})
            worker.at_work = None

    def _stop_hearing(self, worker):
        with contextlib.suppress(KeyError, ValueError):  # it is not heard any more
            self._selector.unregister(worker.channel)

    def _fork(self, run_dir, channel=None):
        parent = os.getpid()
        pid = os.fork()
        if pid == 0:
            self._be_child(run_dir, parent, channel)
        with contextlib.suppress(OSError):  # the child has done it, or is gone already
            os.setpgid(pid, pid)
        self._children[pid] = run_dir
        self._answer({"run_dir": run_dir, "pid": pid})
        return pid

    def _be_child(self, run_dir, parent, channel):
        """Never returns: a child that leaves this function by any door must not go on as a second zygote."""
        try:
            os.setpgid(0, 0)
            lifecycle.die_with_parent(parent)
            signal.set_wakeup_fd(-1)
            signal.signal(signal.SIGCHLD, signal.SIG_DFL)
            signal.signal(signal.SIGTERM, signal.SIG_DFL)
            orphans.adopt()
            for descriptor in (self._answers, self._wake_read, self._wake_write):
                os.close(descriptor)
            for worker in self._batches.values():
                worker.channel.close()
            lifecycle.redirect(0, os.devnull, os.O_RDONLY)
            if channel is not None:
                batch.serve(run_dir, channel)
                os._exit(0)
            lifecycle.print_into(run_dir)
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
            orphans.kill_group(ended.si_pid)  # before it is reaped: a zombie keeps its number from others
            pid, status, usage = os.wait4(ended.si_pid, 0)
            run_dir = self._children.pop(pid, None)
            if run_dir is None:
                self._spared.discard(pid)
                continue  # something that was started while torch was imported, or an orphan
            orphans.end(self._spared.union(self._children))
            worker = self._batches.pop(run_dir, None)
            if worker is not None:
                self._hear(worker)  # it may have done its request and ended since
                self._stop_hearing(worker)
                worker.channel.close()
                if worker.at_work is not None:
                    self._answer({"run_dir": worker.at_work, "status": status})
            self._answer({"run_dir": run_dir, "status": status, "max_rss_bytes": usage.ru_maxrss * 1024})

    def _drain(self):
        with contextlib.suppress(BlockingIOError):
            while os.read(self._wake_read, 4096):
                pass

    def _answer(self, message):
        os.write(self._answers, (json.dumps(message) + "\n").encode("utf-8"))
