"""Captures one call of a model as a CUDA graph, replays it, and measures how its answer and its time compare."""

import torch

from gate_worker import wire

# Calls on the capturing stream before the capture: lazy initialization must not fall into it (torch's own advice).
WARM_CALLS = 3
TIMED_CALLS = 20


def capture(served, mode, log, thread):
    """Capture in a stream and a memory pool of this thread; the mark ``graph:MODEL`` holds the numbers.

    Times are milliseconds of the GPU, between events; the difference is that of the worst element, beside the largest
    magnitude of the plain answer.
    """
    set_name = served.schedule[0][0]
    place = {"model": served.name, "thread": thread, "set": set_name}
    with log.phase(wire.CAPTURE, **place):
        if served.device == "cpu":
            raise RuntimeError("a CUDA graph cannot be captured on the CPU")
        method, arguments = served.method(set_name), served.arguments(set_name)
        stream = torch.cuda.Stream()
        stream.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(stream):
            for _ in range(WARM_CALLS):
                served.prepare()
                method(*arguments)
        stream.synchronize()
        served.prepare()
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph, stream=stream, capture_error_mode=mode):
            captured = method(*arguments)
    with log.phase(wire.REPLAY, **place):
        served.prepare()
        expected = method(*served.arguments(set_name))
        graph.replay()
        torch.cuda.synchronize()
        difference, scale = distance(expected, captured)
        log.mark(
            "graph:" + served.name,
            {
                "mode": mode,
                "max_abs_difference": difference,
                "scale": scale,
                "call_ms": timed(lambda: method(*arguments)),
                "replay_ms": timed(graph.replay),
            },
        )


def distance(expected, captured):
    """Return (largest absolute difference, largest magnitude expected) over all floating tensors of two answers."""
    pairs = list(zip(tensors(expected), tensors(captured)))
    if not pairs:
        return 0.0, 0.0
    wide = [(one.double(), other.double()) for one, other in pairs if one.numel()]
    differences = [float((one - other).abs().max()) for one, other in wide]
    return max(differences, default=0.0), max((float(one.abs().max()) for one, _ in wide), default=0.0)


def tensors(value):
    """Return the tensors of an answer, in order."""
    if isinstance(value, torch.Tensor):
        return [value]
    if isinstance(value, dict):
        value = list(value.values())
    if isinstance(value, (list, tuple)):
        return [tensor for item in value for tensor in tensors(item)]
    return []


def timed(action):
    """Return the milliseconds of one ``action`` on the GPU."""
    begin, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
    begin.record()
    for _ in range(TIMED_CALLS):
        action()
    end.record()
    end.synchronize()
    return begin.elapsed_time(end) / TIMED_CALLS
