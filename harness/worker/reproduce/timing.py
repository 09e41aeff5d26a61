"""Measures a call against something else in the same process: seconds alone prove nothing on another machine.

A part of ``reproduce.py``.
"""

import statistics
import time

ROUNDS, BLOCK_S, MOST_S = 15, 0.02, 20.0
YARDSTICK_ELEMENTS, YARDSTICK_STEPS = 4096, 8


def timed(torch, case, report, program):
    """Return the ending of a case of latency, from the ratio of the call to the reference that tells them apart."""
    measured = {name: float("%.3g" % seconds) for name, seconds in measure(torch, case, report, program).items()}
    report.tell(measured=measured)
    return rated(measured, case.get("latency") or {})


def rated(measured, recorded):
    """Return the ending: between the recorded ratios nobody can tell, so the middle third is untestable."""
    shown = ", ".join("%s %s" % (name, duration(measured[name])) for name in sorted(measured))
    reference = recorded.get("reference")
    if reference is None:
        return {"what": "untestable", "text": "seconds of another machine tell nothing: %s" % shown}
    good, bad = recorded["good"], recorded["bad"]
    ratio = measured["call"] / measured[reference]
    text = "the call takes %.2f x the %s (recorded: good %.2f, bad %.2f; %s)" % (ratio, reference, good, bad, shown)
    if ratio <= good * (bad / good) ** (1 / 3):
        return {"what": "good", "text": text}
    return {"what": "latency" if ratio >= good * (bad / good) ** (2 / 3) else "untestable", "text": text}


def duration(seconds):
    return "%.3g ms" % (1e3 * seconds) if seconds >= 1e-4 else "%.3g us" % (1e6 * seconds)


def measure(torch, case, report, program):
    """Return the median seconds of the call, of the same call without the optimiser, and of a fixed piece of work."""
    request, plain = case["requests"][0], program.again()
    values = torch.full((YARDSTICK_ELEMENTS,), 1.5)

    def unoptimised():
        with torch.jit.optimized_execution(False):
            return calls(plain, request)

    def yardstick():
        for _ in range(YARDSTICK_STEPS):
            torch.add(torch.mul(values, 0.5), 0.75)

    variants = {
        "call": lambda: calls(program, request),
        "unoptimised call": unoptimised,
        "yardstick": lambda: block(yardstick),
    }
    names = list(variants)
    blocks = {name: [] for name in names}
    began = time.perf_counter()
    for index in range(-1, ROUNDS):
        if index > 2 and time.perf_counter() - began > MOST_S:
            break
        first = index % len(names)  # nobody is always the one that finds the caches of the same other
        for name in names[first:] + names[:first]:
            report.phase("a timed %s" % name)
            seconds = variants[name]()
            if index >= 0:  # the first one compiles
                blocks[name].append(seconds)
    return {name: statistics.median(seconds) for name, seconds in blocks.items()}


def calls(program, request):
    method, arguments = program.ready(request)
    program.settle()
    return block(lambda: program.call(method, arguments), program.start if program.has_state else None)


def block(once, before_each=None):
    """Return the median seconds of a call, of as many as a block takes; ``before_each`` is not timed."""
    seconds, began = [], time.perf_counter()
    while not seconds or time.perf_counter() - began < BLOCK_S:
        if before_each is not None:
            before_each()
        start = time.perf_counter()
        once()
        seconds.append(time.perf_counter() - start)
    return statistics.median(seconds)
