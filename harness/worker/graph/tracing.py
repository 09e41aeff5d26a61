"""Verb ``trace``: make one call node by node and record what goes into every node and what comes out of it.

``order["mode"]`` is ``"free"``, ``"forced"`` (every node gets the inputs of the trace ``order["beside"]``) or
``"patched"`` (the nodes at ``order["places"]`` answer what they have answered there).
"""

import os
import time

from gate_worker import wire
from gate_worker.graph import interpreter, trace_files, trace_observers
from gate_worker.run import serving
from gate_worker.settings import numeric_state, switches
from gate_worker.values import trees

# A phase of nodes lasts about so long, unless one node does: that is how a node that hangs is told from many nodes.
STRETCH_S = 0.5


def serve(request, run_dir, log):
    order = request["trace"]
    log.mark("switches", switches.apply_process_wide(request))
    log.mark("numerics", numeric_state.state(request))
    (run,) = request["runs"]
    name, wanted = run["artifact"]["model"], (order["input_set"], order["call"])
    with log.phase(wire.INPUTS, model=name):
        served = serving.ServedModel(run, request["device"])
        other = None
        if order["beside"] is not None:
            other = trace_files.TraceReader(os.path.join(order["beside"], wire.TRACE), request["device"])
        folder = os.path.join(run_dir, wire.TRACE)
        writer = trace_files.TraceWriter(folder, order["tensor_bytes"], order["total_bytes"])
    serving.load(served, log)
    with switches.thread_context(request):
        for set_name, call in calls_before(served.schedule, wanted):
            serving.call(served, log, set_name, call)
        served.prepare()
        answers = trees.TensorWriter(os.path.join(run_dir, wire.OUTPUTS))
        with Stretches(log, model=name, set=wanted[0], call=wanted[1]) as stretches:
            observer = observer_of(order, writer, stretches.beat, other)
            target = served.target(wanted[0])
            output = interpreter.Interpreter(observer).call(target[0], target[1], served.arguments(wanted[0]))
            answers.write(output, model=name, set=wanted[0], call=wanted[1])
    log.emit("ready", model=name, thread=0)


def observer_of(order, writer, beat, other):
    if order["mode"] == "forced":
        return trace_observers.Forced(writer, beat, other)
    if order["mode"] == "patched":
        return trace_observers.Patched(writer, beat, other, order["places"], order["unrun"])
    return trace_observers.Recorder(writer, beat, other)


def calls_before(schedule, wanted):
    """Yield (set, call) of the calls that come before the wanted one."""
    for set_name, calls in schedule:
        for call in range(calls):
            if (set_name, call) == wanted:
                return
            yield set_name, call


class Stretches:
    """Opens one phase ``nodes`` after another, so that a hang is placed between two nodes of the trace."""

    def __init__(self, log, **fields):
        self._log = log
        self._fields = fields

    def __enter__(self):
        self._begin()
        return self

    def __exit__(self, *error):
        return self._phase.__exit__(*error)

    def beat(self):
        if time.monotonic() > self._end:
            self._phase.__exit__(None, None, None)
            self._begin()

    def _begin(self):
        self._end = time.monotonic() + STRETCH_S
        self._phase = self._log.phase(wire.NODES, **self._fields)
        self._phase.__enter__()
