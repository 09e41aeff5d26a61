"""Appends events to ``events.jsonl``: one line, one ``write``, so that a kill loses at most the last one."""

import json
import os
import sys
import threading
import time
import traceback
from contextlib import contextmanager

from gate_worker import wire

LONGEST = 20000  # characters of a message, and of a trace


class EventLog:
    """Thread-safe: the kernel appends each ``write`` whole."""

    def __init__(self, path):
        self._fd = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o644)
        self._pid = os.getpid()

    def emit(self, event, **fields):
        if os.getpid() != self._pid:
            os._exit(0)  # a copy of this process that a model has forked: it must not go on as a second worker
        fields["ev"] = event
        fields["ns"] = time.monotonic_ns()
        os.write(self._fd, (json.dumps(fields, separators=(",", ":")) + "\n").encode("utf-8"))

    def forked(self, thread):
        """Go on as the log of this process, which the one that it belonged to has forked for ``thread``."""
        self._pid = os.getpid()
        self.emit("forked", thread=thread, pid=self._pid)

    def close(self):
        os.close(self._fd)

    def hello(self):
        self.emit("hello", protocol=wire.PROTOCOL, pid=os.getpid(), python=sys.version.split()[0])

    def mark(self, name, data):
        self.emit("mark", name=name, data=data)

    def refuse(self, message, trace=""):
        """Say that the request cannot be served; no phase and no model is to blame."""
        self.emit("error", phase="", type="ProtocolError", message=message[:LONGEST], traceback=trace[-LONGEST:])

    @contextmanager
    def phase(self, name, model="", thread=0, **fields):
        """Bracket a phase. An exception becomes an ``error`` event and goes on up as ``PhaseFailed``."""
        place = {"phase": name, "model": model, "thread": thread, **fields}
        self.emit("begin", ident=threading.get_ident(), tid=threading.get_native_id(), **place)
        cpu_ns = time.thread_time_ns()
        try:
            yield
        except PhaseFailed:
            raise
        except BaseException as error:  # SystemExit too: a model that exits is data like any other
            trace = traceback.format_exc()[-LONGEST:]
            self.emit("error", type=type(error).__name__, message=str(error)[:LONGEST], traceback=trace, **place)
            raise PhaseFailed(name) from error
        else:
            self.emit("end", cpu_ns=time.thread_time_ns() - cpu_ns, **place)


class PhaseFailed(Exception):
    """A phase raised; the error is on record and the work on this model ends."""
