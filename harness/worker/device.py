"""The device that models run on, asked for what the request says that it can do.

No other module of the worker names a device of torch. ``harness/core/devices.py`` is the table that requests are made
from; torch's module for a device is looked up when it is used, as an operator library may bring it.
"""

import contextlib

import torch


class Device:
    """``name`` is torch's; ``can``: names of capabilities, as in ``request["capabilities"]``."""

    def __init__(self, name, can=()):
        self.name = name
        self.is_cpu = name == "cpu"
        self.has_events = "events" in can
        self.has_memory = "memory" in can
        self.has_graphs = "graphs" in can
        self.is_nvidia = "nvidia" in can
        self._has_streams = "streams" in can

    @property
    def module(self):
        return getattr(torch, self.name)

    def begin(self):
        """Begin to use it: its context belongs to the process, not to its first model."""
        if self.is_cpu:
            return
        init = getattr(self.module, "init", None)
        if init is not None:
            init()
        self.module.synchronize()

    def synchronize(self):
        """Wait for the stream of this thread only: waiting for the device would break captures of others."""
        if self.is_cpu:
            return
        if self._has_streams:
            self.module.current_stream().synchronize()
        else:
            self.module.synchronize()

    def event(self):
        """Return a point in a stream whose time can be told."""
        return self.module.Event(enable_timing=True)

    def generators(self):
        """Return the generators of random numbers that calls draw from, the CPU's first."""
        generators = [torch.default_generator]
        if not self.is_cpu and getattr(self.module, "default_generators", ()):
            generators.append(self.module.default_generators[self.module.current_device()])
        return generators

    def give_back_cached(self):
        if self.has_memory:
            self.module.empty_cache()

    def described(self):
        """Return what torch says that it is, None on the CPU and where there is none."""
        if self.is_cpu:
            return None
        with contextlib.suppress(AttributeError):
            return self.module.get_device_name(0)
        return self.name if self.module.is_available() else None

    def graph(self):
        """Return an empty graph: ``torch.cuda.CUDAGraph``, ``torch.xpu.XPUGraph``, or what is called ``Graph``."""
        return (getattr(self.module, "%sGraph" % self.name.upper(), None) or self.module.Graph)()

    def why_no_graphs(self):
        """Return why no call can be captured, empty where one can."""
        if self.has_graphs:
            return ""
        return "a graph cannot be captured on the CPU" if self.is_cpu else "%s captures no graphs" % self.name


CPU = Device("cpu")


def of(request):
    return Device(request["device"], request.get("capabilities") or ())
