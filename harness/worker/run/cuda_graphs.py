"""Captures one call of a model as a graph, replays it, and measures how its answer and its time compare."""

import functools
import inspect
import math

import torch

from gate_worker import wire
from gate_worker.run.serving import leaves

TIMED_CALLS = 20


def capture(served, mode, warm_calls, log, thread):
    """Capture and replay in a stream and a memory pool of this thread; the mark ``graph:MODEL`` holds the numbers.

    Times are milliseconds of the device, between events in that stream; the difference is that of the worst element,
    beside the largest magnitude of the plain answer.
    """
    set_name = served.schedule[0][0]
    place = {"model": served.name, "thread": thread, "set": set_name}
    with log.phase(wire.CAPTURE, **place):
        graph = captured(served, mode, warm_calls, set_name)
    with log.phase(wire.REPLAY, **place), served.device.module.stream(graph.stream):
        expected = prepared_call(served, set_name)()
        served.prepare()  # the state and the random numbers of a first call
        graph.replay()
        served.synchronize()
        difference, scale = distance(expected, graph.answer)
        if math.isinf(difference):
            moved = ": the call bound %s to other memory" % ", ".join(graph.rebound) if graph.rebound else ""
            raise RuntimeError("the replay is not finite where the plain call is" + moved)
        again = prepared_call(served, set_name)
        log.mark(
            "graph:" + served.name,
            {
                "mode": graph.mode,
                "max_abs_difference": difference,
                "scale": scale,
                "rebound": graph.rebound,
                "call_ms": timed(again, served.device),
                "replay_ms": timed(graph.replay, served.device),
            },
        )


class Captured:
    """A captured call: how to ``replay`` it in its ``stream``, where its ``answer`` lies, and what it reads.

    ``mode`` is the one that it was captured in. ``rebound`` are the buffers that the call bound to other memory: a
    replay reads and writes what the capture had.
    """

    def __init__(self, graph, stream, call, answer, *, mode, rebound):
        self.replay = graph.replay
        self.stream = stream
        self.answer = answer
        self.mode = mode
        self.rebound = rebound
        self._call = call  # the graph reads its arguments whenever it is replayed


def captured(served, mode, warm_calls, set_name):
    """Capture one call in a stream and a memory pool of its own, after ``warm_calls`` in that stream."""
    why_not = served.device.why_no_graphs()
    if why_not:
        raise RuntimeError(why_not)
    module = served.device.module
    stream = module.Stream()
    stream.wait_stream(module.current_stream())
    with module.stream(stream):
        for _ in range(warm_calls):
            prepared_call(served, set_name)()
        call = prepared_call(served, set_name)
        served.synchronize()
    graph = served.device.graph()
    options = options_of(module.graph, mode)
    before = served.buffer_addresses()
    with module.graph(graph, stream=stream, **options):
        answer = call()
    rebound = [name for name, address in served.buffer_addresses().items() if before.get(name) != address]
    mode = options.get("capture_error_mode", "global")
    return Captured(graph, stream, call, answer, mode=mode, rebound=rebound)


def options_of(capture, mode):
    """Return how ``capture`` is told its mode: not at all before torch 2.1, which knows the global one alone."""
    return {"capture_error_mode": mode} if "capture_error_mode" in inspect.signature(capture).parameters else {}


def prepared_call(served, set_name):
    """Return a first call of ``served``, ready to be made: state reset, generators seeded, arguments of its own."""
    served.prepare()
    return functools.partial(served.method(set_name), *served.arguments(set_name))


def distance(expected, captured):
    """Return (largest absolute difference, largest finite magnitude expected) over all tensors of two answers.

    NaN beside NaN is no difference; NaN or infinity beside anything else is an infinite one.
    """
    one_side, other_side = ([tensor for _, tensor in leaves(answer, [])] for answer in (expected, captured))
    if [tensor.shape for tensor in one_side] != [tensor.shape for tensor in other_side]:
        raise RuntimeError("the replay has another structure than the plain call")
    largest = scale = 0.0
    for ours, other in zip(map(as_doubles, one_side), map(as_doubles, other_side)):
        if not ours.numel():
            continue
        apart = (ours - other).abs().masked_fill((ours == other) | (ours.isnan() & other.isnan()), 0.0)
        largest = max(largest, float(apart.masked_fill(apart.isnan(), math.inf).max()))
        scale = max(scale, float(ours.masked_fill(~ours.isfinite(), 0.0).abs().max()))
    return largest, scale


def as_doubles(tensor):
    if tensor.layout != torch.strided:
        tensor = tensor.to_dense()
    if tensor.is_complex():
        tensor = torch.view_as_real(tensor.resolve_conj())
    return tensor.cpu().double()


def timed(action, device):
    """Return the milliseconds of one ``action``, from many in a row, between events in the stream in use."""
    begin, end = device.event(), device.event()
    begin.record()
    for _ in range(TIMED_CALLS):
        action()
    end.record()
    end.synchronize()
    return begin.elapsed_time(end) / TIMED_CALLS
