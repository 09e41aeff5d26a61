"""Reads what the clocks, the kernel and the allocator of the device know of this process."""

import ctypes
import os
import time
from uuid import UUID


def timed(action, arguments, calls, device, before_each=None):
    """Return the nanoseconds of each of ``calls`` calls in a row; every output is dropped as soon as it comes.

    ``before_each`` is done before each of them, untimed. On a device with events the times lie between events in the
    stream in use, with one wait at the end; on another one each call is waited for.
    """
    if device.has_events:
        return timed_by_events(action, arguments, calls, device, before_each)
    clock, times = time.perf_counter_ns, [0] * calls
    if device.is_cpu and before_each is None:  # back to back
        before = clock()
        for index in range(calls):
            action(*arguments)
            now = clock()
            times[index] = now - before
            before = now
        return times
    wait = None if device.is_cpu else device.synchronize
    for index in range(calls):
        if before_each is not None:
            before_each()
        if wait is not None:
            wait()
        begin = clock()
        action(*arguments)
        if wait is not None:
            wait()
        times[index] = clock() - begin
    return times


def timed_by_events(action, arguments, calls, device, before_each):
    if before_each is None:
        events = [device.event() for _ in range(calls + 1)]
        events[0].record()
        for event in events[1:]:
            action(*arguments)
            event.record()
        pairs = list(zip(events, events[1:]))
    else:
        pairs = []
        for _ in range(calls):
            before_each()
            pairs.append((device.event(), device.event()))
            pairs[-1][0].record()
            action(*arguments)
            pairs[-1][1].record()
    pairs[-1][1].synchronize()
    return [round(1e6 * begin.elapsed_time(end)) for begin, end in pairs]


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
        device.begin()
        if device.has_memory:
            device.module.reset_peak_memory_stats()
            self._allocated = device.module.memory_allocated()
        give_back_freed()
        self._resident = resident("VmRSS") if forget_peak() else None

    def risen(self):
        """Return (bytes of resident memory or None, bytes of the device's allocator or None)."""
        peak = None if self._resident is None else resident("VmHWM")
        return (
            None if peak is None else max(peak - self._resident, 0),
            max(self._device.module.max_memory_allocated() - self._allocated, 0) if self._device.has_memory else None,
        )


def give_back_freed():
    try:
        ctypes.CDLL(None).malloc_trim(0)
    except AttributeError:  # not glibc
        pass


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


def gpu_uuid(device):
    """Return the name by which ``nvidia-smi`` knows the GPU in use (``GPU-...``), None elsewhere or where unknown.

    The driver is asked: torch tells it from some release on, and counts GPUs in another order than ``nvidia-smi``.
    """
    if not device.is_nvidia:
        return None
    try:
        driver = ctypes.CDLL("libcuda.so.1")
        number, uuid = ctypes.c_int(), (ctypes.c_ubyte * 16)()
        failed = driver.cuDeviceGet(ctypes.byref(number), device.module.current_device())
        if failed or driver.cuDeviceGetUuid(uuid, number):
            return None
    except (AttributeError, OSError, RuntimeError):
        return None
    return "GPU-%s" % UUID(bytes=bytes(uuid))
