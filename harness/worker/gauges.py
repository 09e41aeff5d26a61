"""Reads what the clocks, the kernel and the allocator of the device know of this process."""

import ctypes
import os
import time

import torch


def timed(action, arguments, calls, device):
    """Return the nanoseconds of each of ``calls`` calls in a row; every output is dropped as soon as it comes.

    On a GPU between events in the stream in use, with one wait at the end.
    """
    if device != "cpu":
        return timed_by_events(action, arguments, calls)
    clock, times = time.perf_counter_ns, [0] * calls
    before = clock()
    for index in range(calls):
        action(*arguments)
        now = clock()
        times[index] = now - before
        before = now
    return times


def timed_by_events(action, arguments, calls):
    events = [torch.cuda.Event(enable_timing=True) for _ in range(calls + 1)]
    events[0].record()
    for event in events[1:]:
        action(*arguments)
        event.record()
    events[-1].synchronize()
    return [round(1e6 * before.elapsed_time(after)) for before, after in zip(events, events[1:])]


def queued_ns():
    """Return for how long the calling thread was ready and had no core, since its start; 0 where nobody counts."""
    try:
        with open("/proc/thread-self/schedstat") as stream:
            return int(stream.read().split()[1])
    except (OSError, IndexError):
        return 0


class Peak:
    """How far memory rises above what is in use now, from here on: of the process, and of the device's allocator.

    Freed memory is given back to the kernel first: what an earlier model has left would be used again unseen.
    """

    def __init__(self, device):
        self._device = device
        try:
            ctypes.CDLL(None).malloc_trim(0)
        except AttributeError:  # not glibc
            pass
        self._resident = resident("VmRSS") if forget_peak() else None
        if device != "cpu":
            torch.cuda.init()
            torch.cuda.synchronize()  # the context: it belongs to the process, not to its first model
            torch.cuda.reset_peak_memory_stats()
            self._allocated = torch.cuda.memory_allocated()

    def risen(self):
        """Return (bytes of resident memory or None, bytes of the GPU's allocator or None)."""
        peak = None if self._resident is None else resident("VmHWM")
        return (
            None if peak is None else max(peak - self._resident, 0),
            None if self._device == "cpu" else max(torch.cuda.max_memory_allocated() - self._allocated, 0),
        )


def forget_peak():
    """Have the kernel count the peak of resident memory anew; False where it refuses."""
    try:
        descriptor = os.open("/proc/self/clear_refs", os.O_WRONLY)
    except OSError:
        return False
    try:
        os.write(descriptor, b"5")
        return True
    except OSError:
        return False
    finally:
        os.close(descriptor)


def resident(name):
    """Return ``VmRSS`` or ``VmHWM`` of this process in bytes, None where the kernel does not tell."""
    try:
        with open("/proc/self/status") as stream:
            for line in stream:
                if line.startswith(name + ":"):
                    return 1024 * int(line.split()[1])
    except OSError:
        pass
    return None
