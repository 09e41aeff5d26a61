"""Verb ``duel``: hold several models and time short blocks of calls on demand.

The controller writes one JSON line per order on standard input and reads one JSON line per answer on the
descriptor that was standard output (anything torch prints goes to standard error instead):

    {"order": "load", "model": NAME}                 -> {"load_s": s, "first_calls_s": [s, ...]}
    {"order": "block", "model": NAME, "calls": n}    -> {"per_call_s": s}
    {"order": "stop"}, or end of file                -> the worker leaves

An error of the model is answered as ``{"error": message}``.
"""

import json
import os
import sys
import time

from gate_worker import events, lifecycle, serving, switches, wire


def serve(request, run_dir, log):
    del run_dir
    answers = os.fdopen(lifecycle.Answers.descriptor, "w", buffering=1)
    log.mark("switches", switches.apply_process_wide(request))
    with switches.thread_context(request):
        fighter = Fighter(request, log)
        answers.write(json.dumps({"ready": True}) + "\n")
        for line in sys.stdin:
            order = json.loads(line)
            if order["order"] == "stop":
                break
            answers.write(json.dumps(fighter.obey(order)) + "\n")


class Fighter:
    """One side of the duel: its models, loaded on order."""

    def __init__(self, request, log):
        self._log = log
        self._runs = {run["artifact"]["model"]: run for run in request["runs"]}
        self._device = request["device"]
        self._served = {}

    def obey(self, order):
        try:
            return self.load(order["model"]) if order["order"] == "load" else self.block(**order)
        except Exception as failure:
            self._served.pop(order["model"], None)
            error = failure.__cause__ if isinstance(failure, events.PhaseFailed) else failure
            return {"error": ("%s: %s" % (type(error).__name__, error))[:2000]}

    def load(self, model):
        run = self._runs[model]
        served = serving.ServedModel(run, self._device)
        begin = time.perf_counter()
        serving.load(served, self._log)
        load_s = time.perf_counter() - begin
        (set_name, calls), first_calls = run["schedule"][0], []
        for index in range(calls):
            served.prepare()
            arguments = served.arguments(set_name)
            method = served.method(set_name)
            begin = time.perf_counter()
            with self._log.phase(wire.CALL, model=model, set=set_name, call=index):
                method(*arguments)
                served.synchronize()
            first_calls.append(time.perf_counter() - begin)
        self._served[model] = (served, method, arguments)
        return {"load_s": load_s, "first_calls_s": first_calls}

    def block(self, order, model, calls):
        """Time ``calls`` calls in a row on the same arguments, outputs dropped as soon as they come."""
        del order
        served, method, arguments = self._served[model]
        with self._log.phase(wire.BLOCK, model=model):
            served.prepare()
            served.synchronize()
            begin = time.perf_counter()
            for _ in range(calls):
                method(*arguments)
            served.synchronize()
            total_s = time.perf_counter() - begin
        return {"per_call_s": total_s / calls}
