"""Loads a TorchScript archive, makes the recorded calls, looks for the recorded failure. Needs torch and nothing else.

    python reproduce.py        exit code 0: it does not show, 1: it does, 125: cannot be tested here

So it can be given to ``git bisect run``; ``--help`` tells the options. ``case.json`` beside it holds the settings, the
requests and what the good release answered, ``tensors.bin`` the bytes of the tensors.
"""

import os
import sys

from gate_worker.reproduce.endings import failed
from gate_worker.reproduce.process import HERE, main
from gate_worker.reproduce.settings import for_thread, prepared
from gate_worker.reproduce.threads import in_threads
from gate_worker.reproduce.timing import timed
from gate_worker.reproduce.values import Comparison, Values
from gate_worker.setters import after_load

MOST_TOLD = 3


def work(torch, case, order, report):
    with prepared(torch, case, order, report):
        if case.get("threads", 1) > 1:
            return in_threads(
                case, report, lambda: for_thread(torch, case, order["profile"]), lambda: Program(torch, case, order)
            )
        report.phase("load")
        try:
            program = Program(torch, case, order)
        except Exception as error:
            return failed(error, "load")
        if not case["requests"] and only_loads(case["symptom"]):
            return {"what": "good", "text": "it loads"}
        if not has_calls(case):
            return {"what": "untestable", "text": "it loads, and nothing is recorded that would show the failure"}
        problems = []
        for request in case["requests"]:
            for index in range(request["calls"]):
                name = "call %d of %s" % (index, request["set"])
                report.phase("the inputs of %s" % name, counts=False)
                method, arguments = program.ready(request)
                report.phase(name)
                try:
                    output = program.call(method, arguments)
                except Exception as error:
                    return failed(error, name)
                report.phase("the comparison", counts=False)
                problems += ["%s: %s" % (name, text) for text in program.differences(request, index, output, arguments)]
        if problems:
            more = ["and %d more" % (len(problems) - MOST_TOLD)] if len(problems) > MOST_TOLD else []
            return {"what": "values", "text": "; ".join(problems[:MOST_TOLD] + more)}
        if case["symptom"]["what"] == "latency":
            return timed(torch, case, report, program)
        return {"what": "good", "text": "every load and call ends as recorded"}


def only_loads(wanted):
    return wanted["what"] not in ("values", "latency") and wanted.get("phase", "load") == "load"


def has_calls(case):
    return any(request["expected"] or case["symptom"]["what"] != "values" for request in case["requests"])


class Program:
    def __init__(self, torch, case, order):
        self.torch, self.case, self.order = torch, case, order
        module = torch.jit.load(order["artifact"], map_location=case["device"])
        module.eval()
        methods = {request["method"] for request in case["requests"]} | {case["reset"] or "forward"}
        self.module = after_load(torch, module, order["profile"]["switches"], sorted(methods))
        with open(os.path.join(HERE, "tensors.bin"), "rb") as stream:
            data = stream.read()
        self.given = Values(torch, data, case["device"])
        self.recorded = Values(torch, data)
        self.comparison = Comparison(torch, case["tolerances"])

    def again(self):
        return Program(self.torch, self.case, self.order)

    def method(self, name):
        """Return a method of the TorchScript, never one of the Python object that wraps it, such as ``save``."""
        return self.module._c._get_method(name)

    def ready(self, request):
        """Bring a stateful model to its start, seed the generators; return the method and fresh arguments."""
        self.start()
        return self.method(request["method"]), self.given.value(request["arguments"])

    @property
    def has_state(self):
        return bool(self.case["reset"])

    def start(self):
        if self.has_state:
            self.method(self.case["reset"])()
        self.torch.manual_seed(self.case["seed"])
        self.settle()

    def call(self, method, arguments):
        output = method(*arguments)
        self.settle()
        return output

    def settle(self):
        if self.case["device"] != "cpu":
            getattr(self.torch, self.case["device"]).synchronize()

    def differences(self, request, index, output, arguments):
        """Return what a call answered otherwise than the good release, and what it did otherwise to its arguments."""
        expected, after = request["expected"], request["after"]
        problems = []
        if index < len(expected):
            problems += self.comparison.differences(output, self.recorded.value(expected[index]), "output")
        if index < len(after):
            for position, tree in enumerate(request["arguments"][1]):
                left = after[index].get(str(position), tree)
                if left is not None:
                    given = self.given.value(left)
                    problems += self.comparison.differences(arguments[position], given, "input[%d]" % position)
        return problems


if __name__ == "__main__":
    sys.exit(main(work))
