"""Several threads that call one model at once, as the callers of a server do."""

import os
import threading
import time

from gate_worker import native_stacks, wire
from gate_worker.settings import switches


class ConcurrentCallers:
    """``threads`` callers of ``served``, each with arguments of its own, for about ``seconds``.

    Args:
        cores: where the callers run, also where their process is pinned to fewer; empty leaves them where it is.
    """

    def __init__(self, served, set_name, request, log, *, threads, seconds, cores):
        self._served = served
        self._set = set_name
        self._request = request
        self._log = log
        self._seconds = seconds
        self._cores = cores
        self._began = self._cpu_began = 0.0
        self._barrier = threading.Barrier(threads, action=self._begin)
        self._answers = []  # (when the last answer of a thread came, how many it got)
        self._errors = []

    def run(self):
        """Return (seconds from the start to the last answer, CPU seconds, answers); raise a thread's first error."""
        self._served.prepare()
        threads = [
            threading.Thread(target=self._act, args=(index,), name="caller-%d" % index)
            for index in range(self._barrier.parties)
        ]
        try:
            for thread in threads:
                thread.start()
        except RuntimeError as error:
            self._fail(error)
        for thread in threads:
            if thread.ident is not None:
                thread.join()
        if self._errors:
            raise self._errors[0]
        ends, counts = zip(*self._answers)
        return max(ends) - self._began, time.process_time() - self._cpu_began, sum(counts)

    def _begin(self):
        self._cpu_began = time.process_time()
        self._began = time.perf_counter()

    def _act(self, thread):
        try:
            native_stacks.guard_thread()
            if self._cores:
                os.sched_setaffinity(0, self._cores)
            switches.size_thread_pool(self._request, thread, self._log)
            place = {"model": self._served.name, "thread": thread, "set": self._set}
            with switches.thread_context(self._request), self._log.phase(wire.SERVE, **place):
                self._call()
        except BaseException as error:
            self._fail(error)

    def _call(self):
        method, arguments = self._served.method(self._set), self._served.arguments(self._set)
        method(*arguments)  # what every thread does once falls before the start
        self._served.synchronize()
        self._barrier.wait()
        limit, now, count = self._began + self._seconds, 0.0, 0
        while now < limit:
            method(*arguments)
            self._served.synchronize()
            count += 1
            now = time.perf_counter()
        self._answers.append((now, count))

    def _fail(self, error):
        self._errors.append(error)
        self._barrier.abort()


def why_not_on(cores):
    """Return why no thread can run on ``cores``, or an empty string. Leaves the calling thread where it is."""
    if not cores:
        return ""
    try:
        before = os.sched_getaffinity(0)
        os.sched_setaffinity(0, cores)
        os.sched_setaffinity(0, before)
    except OSError as error:
        return "its callers cannot run on cores %s: %s" % (", ".join(map(str, cores)), error.strerror)
    return ""
