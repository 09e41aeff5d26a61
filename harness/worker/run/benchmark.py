"""Verb ``benchmark``: hold several models and measure them on order.

Orders come as JSON lines on standard input, and answers go to the descriptor that was standard output:
``docs/formats/wire.md`` describes them.
"""

import gc
import json
import os
import sys
import threading
import time

from gate_worker import device, events, libraries, lifecycle, native_stacks, settings, warmup, wire
from gate_worker.run import kinds, measurements, script, serving

MOST_TIMES = 20000
EXTRAS = ("shape", "together", "replay")
ORDERS = ("load", "block", "drop", *EXTRAS)
# Replays happen in the thread that captures, and nothing else works beside it.
CAPTURE_MODE = "thread_local"
WARM_CALLS = 3


def benchmark(request, run_dir, log):
    del run_dir
    answers = os.fdopen(lifecycle.Answers.descriptor, "w", buffering=1)
    libraries.load(request.get("libraries") or (), log)
    log.mark("switches", settings.apply_process_wide(request))
    with settings.thread_context(request):
        log.mark("first_operators", warmup.run_operators(request["device"]))
        gc.collect()
        gc.freeze()  # torch's own objects: looking through them when a model goes would take longer than many a model
        process = BenchmarkProcess(request, log)
        answers.write(json.dumps({"ready": True, "gpu_uuid": measurements.gpu_uuid(device.of(request))}) + "\n")
        for line in sys.stdin:
            order = json.loads(line)
            if order["order"] == "stop":
                break
            answers.write(json.dumps(process.obey(**order)) + "\n")


class BenchmarkProcess:
    def __init__(self, request, log):
        self._request = request
        self._log = log
        self._runs = {run["artifact"]["model"]: run for run in request["runs"]}
        self._device = device.of(request)
        self._served = {}

    def obey(self, order, model, **details):
        try:
            if order not in ORDERS:
                raise ValueError("no order is called '%s'" % order)
            return getattr(self, order)(model, **details)
        except Exception as failure:
            if order in EXTRAS and model in self._served:
                return {"error": words_of(failure), "spoilt": not self._answers(model)}
            self._served.pop(model, None)
            return {"error": words_of(failure)}

    def load(self, model, calls=16, call_s=0.25):
        run = self._runs[model]
        served = kinds.served(run, self._device, self._request)
        set_name, least = run["schedule"][0]
        peak = measurements.Peak(self._device)
        begin = time.perf_counter()
        serving.load(served, self._log)
        load_s = time.perf_counter() - begin
        calls_s = []
        while len(calls_s) < least or (len(calls_s) < calls and sum(calls_s) < call_s):
            calls_s.append(self._call(served, set_name, len(calls_s)))
        peak_rss_bytes, device_bytes = peak.risen()
        self._served[model] = (served, served.method(set_name), served.arguments(set_name))
        return {
            "load_s": load_s,
            "calls_s": calls_s,
            "peak_rss_bytes": peak_rss_bytes,
            "device_bytes": device_bytes,
        }

    def _call(self, served, set_name, index):
        served.prepare()
        arguments, method = served.arguments(set_name), served.method(set_name)
        served.synchronize()
        with self._log.phase(wire.CALL, model=served.name, set=set_name, call=index):
            begin = time.perf_counter()
            method(*arguments)
            served.synchronize()
            return time.perf_counter() - begin

    def block(self, model, calls):
        served, method, arguments = self._served[model]
        with self._log.phase(wire.BLOCK, model=model):
            served.prepare()
            served.synchronize()
            before_each = served.prepare if self._has_state(model) else None
            queued_ns, begin_ns = measurements.queued_ns(), time.perf_counter_ns()
            times_ns = measurements.timed(method, arguments, calls, self._device, before_each)
            wall_ns, wait_ns = time.perf_counter_ns() - begin_ns, measurements.queued_ns() - queued_ns
        waits = {"wait_ns": wait_ns, "wall_ns": wall_ns}
        return {"times_ns": thinned(times_ns), **waits, "rss_bytes": script.resident_bytes()}

    def _has_state(self, model):
        return bool(self._runs[model]["artifact"]["reset"])

    def shape(self, model, calls=8, **place):
        served, set_name = self._served[model][0], place["set"]
        return {"calls_s": [self._call(served, set_name, index) for index in range(calls)]}

    def together(self, model, threads, seconds, cores=()):
        if self._has_state(model):
            return {"skipped": "it has a state, which callers would share"}
        why_not = why_not_on(cores)
        if why_not:
            return {"skipped": why_not}
        served, set_name = self._served[model][0], self._runs[model]["schedule"][0][0]
        numbers = {"threads": threads, "seconds": seconds, "cores": cores}
        wall_s, cpu_s, answers = ConcurrentCallers(served, set_name, self._request, self._log, **numbers).run()
        return {"request_s": wall_s / answers, "request_cpu_s": cpu_s / answers, "calls": answers}

    def replay(self, model, calls):
        why_not = self._device.why_no_graphs()
        if why_not:
            return {"skipped": why_not, "spoilt": False}
        from gate_worker.run import cuda_graphs as graphs

        served, set_name = self._served[model][0], self._runs[model]["schedule"][0][0]
        try:
            with self._log.phase(wire.CAPTURE, model=model, set=set_name):
                captured = graphs.captured(served, CAPTURE_MODE, WARM_CALLS, set_name)
        except events.PhaseFailed as failure:
            return {"skipped": words_of(failure), "spoilt": not self._answers(model)}
        with self._log.phase(wire.REPLAY, model=model, set=set_name), self._device.module.stream(captured.stream):
            captured.replay()
            times_ns = measurements.timed(captured.replay, (), calls, self._device)
        return {"times_ns": thinned(times_ns)}

    def _answers(self, model):
        """Return whether a plain call still works: what failed may have left generators or the context unusable."""
        try:
            self._served[model][0].answer(self._runs[model]["schedule"][0][0])
        except Exception:
            return False
        return True

    def drop(self, model):
        served = self._served.pop(model, (None,))[0]
        if served is not None:
            served.drop()
        del served
        gc.collect()
        return {"dropped": True}


def words_of(failure):
    error = failure.__cause__ if isinstance(failure, events.PhaseFailed) else failure
    return ("%s: %s" % (type(error).__name__, error))[:2000]


def thinned(times_ns):
    """Return every k-th time, so that there are not more than ``MOST_TIMES``."""
    return times_ns[:: -(-len(times_ns) // MOST_TIMES)] if len(times_ns) > MOST_TIMES else times_ns


class ConcurrentCallers:
    """``threads`` callers of ``served``, each with arguments of its own, for about ``seconds``.

    ``cores``: where the callers run, also where their process is pinned to fewer; empty leaves them where it is.
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
            settings.read_back_pool(self._request["pools"]["intra_op"], thread, self._log)
            place = {"model": self._served.name, "thread": thread, "set": self._set}
            with settings.thread_context(self._request), self._log.phase(wire.SERVE, **place):
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
