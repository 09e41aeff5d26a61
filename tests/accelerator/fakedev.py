"""``torch.fakedev``: a fake accelerator for tests, with the names of ``torch.cuda``. Importing this registers it.

Kernels run on the CPU, in one thread for each stream; device memory faults where the host touches it. Results are those
of the CPU. It is an accelerator for its errors: of order, of place, of time. It is no GPU, and no speed of it means
anything. The library ``libfakedev.so`` stands beside this file, as ``tests.accelerator.build`` leaves both; it can also
be loaded alone, from C++.

Read once, when the device is first used:

    FAKEDEV_DEVICES        how many there are: 2
    FAKEDEV_MEMORY_MB      memory of each: 4096
    FAKEDEV_LATENCY_US     every kernel waits so long before it begins: 0
    FAKEDEV_LOST_FILE      in every process the device is gone as soon as there is such a file
    FAKEDEV_HANDLES        stream: each thread opens the library of convolutions for every stream that it uses, as
                           hipBLASLt's is opened since torch 2.13; else once, as cuDNN's
    CUDA_MODULE_LOADING    LAZY: a kernel is loaded at its first launch, when the device has done all it has to do, and
                           until then whoever calls the device waits; else with the device
    FAKEDEV_FAULT          KIND:N,KIND:N; at the N-th (from 1; 1 where it is left out) of what KIND counts, once; with
                           N+ at all later ones, too, so that it is met by every model of a process:

        late_error:N           kernel N fails; the next call says so, and every one after that
        hang:N                 kernel N never ends, and its stream with it
        lost:N                 the device is gone when kernel N is launched: that call and all later ones fail
        out_of_memory:N        allocation N fails
        unsynchronized_copy:N  blocking copy N to the host returns before anything has arrived

``set_fault`` sets them anew. Numbers are counted over all devices and streams of the process. Until a copy has arrived,
its destination holds NaN (1 where there is none), and freed memory is overwritten, so that who does not wait sees it.

Captures follow CUDA's rules. Of what another thread does, only the allocation of memory that no cache has, the release
of cached memory, synchronization of a device or of an event, the query of an event, and the first convolution of a
thread, which opens the library of its kernels, end one of mode ``global``. ``torch.ops.fakedev.spin_until(flag)`` is a
kernel that ends when a later one has written to ``flag``, as kernels of collectives wait for each other.

What it has not: pinned memory, autocast, quantized and sparse tensors, and what ``torch.accelerator`` tells of memory.
"""

import ctypes
import gc
import os
import sys

import torch

# Of the C functions: the types of their arguments. They return 0, or -1 where they have left a message.
_INT, _LONG, _HANDLE = ctypes.c_int, ctypes.c_int64, ctypes.c_void_p
_OUT, _OUT_MS = ctypes.POINTER(ctypes.c_int64), ctypes.POINTER(ctypes.c_double)
_FUNCTIONS = {
    "device_count": (_OUT,),
    "set_device": (_INT,),
    "set_faults": (ctypes.c_char_p,),
    "synchronize": (_INT,),
    "sleep": (_LONG,),
    "pool_stream": (_INT, _OUT),
    "current_stream": (_INT, _OUT),
    "set_stream": (_INT, _LONG),
    "stream_idle": (_INT, _LONG, _OUT),
    "stream_capturing": (_INT, _LONG, _OUT),
    "stream_synchronize": (_INT, _LONG),
    "event_record": (_HANDLE, _INT, _LONG),
    "event_wait": (_HANDLE, _INT, _LONG),
    "event_done": (_HANDLE, _OUT),
    "event_synchronize": (_HANDLE,),
    "event_elapsed": (_HANDLE, _HANDLE, _OUT_MS),
    "memory": (_INT, _OUT),
    "reset_peak": (_INT,),
    "empty_cache": (),
    "graph_reset": (_HANDLE,),
    "graph_begin": (_HANDLE, _INT),
    "graph_end": (_HANDLE,),
    "graph_replay": (_HANDLE,),
}
_MODES = ("global", "thread_local", "relaxed")

LIBRARY = os.path.join(os.path.dirname(os.path.abspath(__file__)), "libfakedev.so")
_library = ctypes.CDLL(LIBRARY)
for _name, _types in _FUNCTIONS.items():
    getattr(_library, "fakedev_" + _name).argtypes = _types
_library.fakedev_message.restype = ctypes.c_char_p
for _name in ("event", "graph"):
    getattr(_library, "fakedev_%s_new" % _name).restype = _HANDLE
    getattr(_library, "fakedev_%s_delete" % _name).argtypes = (_HANDLE,)


def _call(name, *arguments):
    if getattr(_library, "fakedev_" + name)(*arguments):
        raise RuntimeError(_library.fakedev_message().decode())


def _asked(name, *arguments):
    answer = ctypes.c_int64()
    _call(name, *arguments, ctypes.byref(answer))
    return answer.value


def _index(device):
    if device is None:
        return current_device()
    if isinstance(device, int):
        return device
    device = torch.device(device)
    if device.type != "fakedev":
        raise ValueError("expected a fakedev device, but got %s" % device)
    return current_device() if device.index is None else device.index


# devices


def init():
    """Nothing: a device is opened when it is first used."""


def is_available():
    return device_count() > 0


def is_initialized():
    return True


def device_count():
    return _asked("device_count")


def current_device():
    return _library.fakedev_current_device()


def set_device(device):
    _call("set_device", _index(device))


def get_device_name(device=None):
    return "fake accelerator %d (threads of this process)" % _index(device)


def synchronize(device=None):
    """Wait for all streams of the device."""
    _call("synchronize", _index(device))


class device:
    """Context: the current device of this thread."""

    def __init__(self, device):
        self._index = _index(device)

    def __enter__(self):
        self._before = current_device()
        set_device(self._index)

    def __exit__(self, *error):
        set_device(self._before)


def set_fault(text):
    """Have faults happen from here on, in the words of FAKEDEV_FAULT; an empty text: none."""
    _call("set_faults", text.encode())


def sleep(seconds):
    """Launch a kernel that takes so long and does nothing else."""
    _call("sleep", int(1e6 * seconds))


# streams and events


class Stream(torch.Stream):
    """One of the 32 streams of a device; the next one is the first one again."""

    def __new__(cls, device=None, priority=0):
        index = _index(device)
        return cls._of(index, _asked("pool_stream", index))

    @classmethod
    def _of(cls, index, number):
        kind = _library.fakedev_device_type()
        return super().__new__(cls, stream_id=number, device_index=index, device_type=kind)

    @property
    def _place(self):
        return self.device_index, self.stream_id

    def synchronize(self):
        _call("stream_synchronize", *self._place)

    def query(self):
        return bool(_asked("stream_idle", *self._place))

    def is_capturing(self):
        return bool(_asked("stream_capturing", *self._place))

    def wait_event(self, event):
        event.wait(self)

    def wait_stream(self, other):
        self.wait_event(other.record_event())

    def record_event(self, event=None):
        event = Event() if event is None else event
        event.record(self)
        return event

    def __eq__(self, other):
        return isinstance(other, Stream) and self._place == other._place

    def __hash__(self):
        return hash(self._place)

    def __repr__(self):
        return "<torch.fakedev.Stream device=fakedev:%d stream=%d>" % self._place


def current_stream(device=None):
    index = _index(device)
    return Stream._of(index, _asked("current_stream", index))


def default_stream(device=None):
    return Stream._of(_index(device), 0)


def set_stream(stream):
    if stream is not None:
        set_device(stream.device_index)
        _call("set_stream", *stream._place)


class StreamContext:
    """Context: the current stream of this thread, and its device; None changes nothing."""

    def __init__(self, stream):
        self._stream = stream

    def __enter__(self):
        if self._stream is not None:
            self._device = current_device()
            self._before = current_stream(self._stream.device_index)
            set_stream(self._stream)

    def __exit__(self, *error):
        if self._stream is not None:
            set_stream(self._before)
            set_device(self._device)


def stream(stream):
    return StreamContext(stream)


class Event:
    """A point in a stream."""

    def __init__(self, enable_timing=False, blocking=False, interprocess=False):
        self._handle = _library.fakedev_event_new(int(enable_timing))

    def __del__(self):
        _library.fakedev_event_delete(self._handle)

    def record(self, stream=None):
        _call("event_record", self._handle, *(stream or current_stream())._place)

    def wait(self, stream=None):
        """Have the stream wait."""
        _call("event_wait", self._handle, *(stream or current_stream())._place)

    def query(self):
        return bool(_asked("event_done", self._handle))

    def synchronize(self):
        _call("event_synchronize", self._handle)

    def elapsed_time(self, end):
        """Return the milliseconds from this event to ``end``."""
        ms = ctypes.c_double()
        _call("event_elapsed", self._handle, end._handle, ctypes.byref(ms))
        return ms.value


# memory


def _memory(device):
    numbers = (ctypes.c_int64 * 4)()
    _call("memory", _index(device), numbers)
    return dict(zip(("allocated", "peak", "reserved", "capacity"), numbers))


def memory_allocated(device=None):
    return _memory(device)["allocated"]


def max_memory_allocated(device=None):
    return _memory(device)["peak"]


def memory_reserved(device=None):
    return _memory(device)["reserved"]


def mem_get_info(device=None):
    """Return (bytes that are free, bytes in all)."""
    memory = _memory(device)
    return memory["capacity"] - memory["reserved"], memory["capacity"]


def reset_peak_memory_stats(device=None):
    _call("reset_peak", _index(device))


def empty_cache():
    _call("empty_cache")


# graphs


class Graph:
    """What was launched between ``capture_begin`` and ``capture_end``, to be launched again on the same memory."""

    def __init__(self):
        self._handle = _library.fakedev_graph_new()

    def __del__(self):
        _library.fakedev_graph_delete(self._handle)

    def capture_begin(self, pool=None, capture_error_mode="global"):
        if pool is not None:
            raise NotImplementedError("graphs of fakedev share no memory: leave pool out")
        if capture_error_mode not in _MODES:
            raise RuntimeError("capture_error_mode must be one of %s" % ", ".join(_MODES))
        _call("graph_begin", self._handle, _MODES.index(capture_error_mode))

    def capture_end(self):
        _call("graph_end", self._handle)

    def replay(self):
        _call("graph_replay", self._handle)

    def reset(self):
        _call("graph_reset", self._handle)


class graph:
    """Context: what is launched in ``stream`` is captured, after all else on the device is done."""

    def __init__(self, graph, stream=None, capture_error_mode="global"):
        self._graph = graph
        self._mode = capture_error_mode
        self._stream = StreamContext(Stream() if stream is None else stream)

    def __enter__(self):
        synchronize()
        gc.collect()
        empty_cache()
        self._stream.__enter__()
        self._graph.capture_begin(capture_error_mode=self._mode)

    def __exit__(self, *error):
        try:
            self._graph.capture_end()
        finally:
            self._stream.__exit__(None, None, None)


# random numbers


def manual_seed(seed):
    default_generators[current_device()].manual_seed(seed)


def manual_seed_all(seed):
    for generator in default_generators:
        generator.manual_seed(seed)


def get_rng_state(device=None):
    return default_generators[_index(device)].get_state()


def set_rng_state(state, device=None):
    default_generators[_index(device)].set_state(state)


def _is_in_bad_fork():
    return bool(_library.fakedev_in_bad_fork())


def _default_generators():
    _library.fakedev_hand_out_default(1)
    try:
        return tuple(torch.Generator(device="fakedev:%d" % index) for index in range(device_count()))
    finally:
        _library.fakedev_hand_out_default(0)


def _register():
    torch.utils.rename_privateuse1_backend("fakedev")
    torch._register_device_module("fakedev", sys.modules[__name__])


_register()
default_generators = _default_generators()
