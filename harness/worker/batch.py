"""The batch worker: a child of the zygote that does requests one after another, so that they share a device's context.

Orders come through a socket of the zygote: the folder of a request, JSON in a line. A byte goes back when it is done.
What ends this process ends the request at work with it; it ends by itself where the device answers nothing any more.
"""

import ctypes
import gc
import json
import os
import resource
import sys

from gate_worker import device, lifecycle, limits, wire
from gate_worker.run import script

DONE = b"."


def serve(folder, channel):
    """Do each request that comes through ``channel``; returns when nobody can send another.

    ``folder`` is that of this process: the folders of its requests lie in it, and are moved away when they are done.
    """
    limit = Limit(folder)
    for line in channel.makefile("rb"):
        run_dir = json.loads(line.decode("utf-8"))
        lifecycle.print_into(run_dir)
        request = lifecycle.do(run_dir, limit)
        ctypes.CDLL(None).fflush(None)  # what C has printed belongs to this request, too
        channel.sendall(DONE)
        forget(request)


def forget(request):
    """Give back what the request held: memory that is full after many of them says nothing about the next one."""
    try:
        script.let_go()
        gc.collect()
        used = device.of(request)
        used.synchronize()
        used.give_back_cached()
    except Exception:  # an error that stays, and that the request did not show
        sys.excepthook(*sys.exc_info())
        sys.stderr.flush()
        os._exit(wire.EXIT_BROKEN)


class Limit:
    """Applies the limits of requests, all alike, to the process that does them: once, but for CPU time.

    Of that each request has as much as it would have alone. It ends the process at the soft limit only, for a hard one
    cannot be raised again.
    """

    def __init__(self, folder):
        self._folder = folder
        self._refused = None

    def __call__(self, wanted):
        if self._refused is None:
            self._refused = limits.apply(dict(wanted, cpu_s=None), self._folder)
        refused = dict(self._refused)
        if wanted["cpu_s"] is not None:
            used = resource.getrusage(resource.RUSAGE_SELF)
            _, hard = resource.getrlimit(resource.RLIMIT_CPU)
            soft = int(used.ru_utime + used.ru_stime) + 1 + int(wanted["cpu_s"])
            if hard != resource.RLIM_INFINITY:
                soft = min(soft, hard)
            try:
                resource.setrlimit(resource.RLIMIT_CPU, (soft, hard))
            except (OSError, ValueError) as error:
                refused["cpu"] = str(error)
        return refused
