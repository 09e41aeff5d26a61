"""Verb ``run``: read the inputs of every artifact, then do the script: load and call, alone or in many threads."""

import os
import traceback

from gate_worker import events, wire
from gate_worker.run import script, serving
from gate_worker.settings import numeric_state, switches
from gate_worker.values import trees

# What was loaded lives until the process leaves without teardown: destroying it costs milliseconds per model.
_kept_alive = []


def serve(request, run_dir, log):
    try:
        run(request, run_dir, log)
    except BaseException as error:  # outside of every phase, so ours
        log.refuse("the request cannot be done: %s" % error, traceback.format_exc())
        os._exit(wire.EXIT_BROKEN)


def run(request, run_dir, log):
    log.mark("switches", switches.apply_process_wide(request))
    log.mark("numerics", numeric_state.state(request))
    writer = trees.TensorWriter(os.path.join(run_dir, wire.OUTPUTS))
    models = {}
    _kept_alive.append(models)
    for run in request["runs"]:
        name = run["artifact"]["model"]
        try:
            with log.phase(wire.INPUTS, model=name):
                models[name] = serving.ServedModel(run, request["device"], request["switches"])
        except events.PhaseFailed:
            pass
    script.perform(request, models, writer, log)
