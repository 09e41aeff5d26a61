"""Verb ``run``: load artifacts and call them, alone or in N threads from a barrier, and record every output."""

import os
import threading

from gate_worker import events, serving, switches, tensors, wire

# What was loaded lives until the process leaves without teardown: destroying it costs milliseconds per model.
_kept_alive = []


def serve(request, run_dir, log):
    log.mark("switches", switches.apply_process_wide(request))
    writer = tensors.TensorWriter(os.path.join(run_dir, wire.OUTPUTS))
    models = []
    _kept_alive.append(models)
    for run in request["runs"]:
        try:
            with log.phase(wire.INPUTS, model=run["artifact"]["model"]):
                models.append(serving.ServedModel(run, request["device"]))
        except events.PhaseFailed:
            pass
    if request["threads"] == 1:
        with switches.thread_context(request):
            for served in models:
                initialize(served, writer, log, thread=0)
    else:
        start_together(request, models, writer, log)


def start_together(request, models, writer, log):
    """Start N threads from a barrier, as a server does; thread i takes models i, i + N, i + 2N, ..."""
    count = min(request["threads"], len(models)) or 1
    barrier = threading.Barrier(count)

    def work(thread):
        with switches.thread_context(request):
            with log.phase(wire.BARRIER, thread=thread):
                barrier.wait()
            for served in models[thread::count]:
                initialize(served, writer, log, thread)

    threads = [threading.Thread(target=work, args=(index,), name="init-%d" % index) for index in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def initialize(served, writer, log, thread):
    """Load, first call, warm-up: every call of the schedule, its output written as it comes."""
    try:
        serving.load(served, log, thread)
        for set_name, calls in served.schedule:
            for index in range(calls):
                output = serving.call(served, log, set_name, index, thread)
                with log.phase(wire.RECORD, model=served.name, thread=thread):
                    writer.write(output, model=served.name, set=set_name, call=index)
        log.emit("ready", model=served.name, thread=thread)
    except events.PhaseFailed:
        pass
