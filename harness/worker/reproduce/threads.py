"""Brings a program up in several threads at once. A part of ``reproduce.py``."""

import queue
import threading

from gate_worker.reproduce.endings import failed


def in_threads(case, report, settings, load):
    """Return how the case ends in as many threads as it says; the first one that fails tells how.

    ``settings``: makes a context manager of the settings of the thread that calls; ``load`` returns the program.
    """
    calls = ConcurrentCalls(case, report, settings, load)
    if case.get("shared"):
        calls.at(0, "load")
        with settings():
            try:
                calls.program = load()
            except Exception as error:
                return failed(error, "load")
    for index in range(case["threads"]):
        threading.Thread(target=calls.member, args=(index,), daemon=True).start()
    for _ in range(case["threads"]):
        ending = calls.endings.get()
        if ending["what"] != "good":
            return ending
    return {"what": "good", "text": "every load and call in %d threads comes to its end" % case["threads"]}


class ConcurrentCalls:
    """Threads that begin together; a phase of the report is what those that have not ended do."""

    def __init__(self, case, report, settings, load):
        self.case, self.report, self.settings, self.load = case, report, settings, load
        self.program = None
        self.barrier = threading.Barrier(case["threads"])
        self.endings = queue.Queue()
        self.lock = threading.Lock()
        self.doing = {}

    def at(self, index, words):
        with self.lock:
            self.doing[index] = words
            parts = ["%s in thread %d" % (text, number) for number, text in sorted(self.doing.items()) if text]
            self.report.phase(", ".join(parts) or "the end of the threads")

    def member(self, index):
        try:
            with self.settings():
                self.barrier.wait()
                ending = self.brought_up(index)
        except BaseException as error:
            text = "cannot be tested here: %s: %s" % (type(error).__name__, error)
            ending = {"what": "untestable", "text": text}
        self.at(index, None)
        self.endings.put(ending)

    def brought_up(self, index):
        """Load a program of the thread's own, where there is no shared one, and make the calls."""
        program, phase = self.program, "load"
        try:
            if program is None:
                self.at(index, phase)
                program = self.load()
            for request in self.case["requests"]:
                for number in range(request["calls"]):
                    phase = "call %d of %s" % (number, request["set"])
                    method, arguments = program.ready(request)
                    self.at(index, phase)
                    program.call(method, arguments)
        except Exception as error:
            return failed(error, phase)
        return {"what": "good", "text": ""}
