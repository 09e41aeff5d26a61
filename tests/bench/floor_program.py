"""Run inside an environment under test: every request of a list, one after another, in this one process."""

import contextlib
import importlib.util
import json
import os
import sys

BOOTSTRAP = os.path.join(
    os.path.dirname(os.path.abspath(__file__)), os.pardir, os.pardir, "harness", "worker", "bootstrap.py"
)


def load_worker():
    """Import the worker's package the way its bootstrap does."""
    spec = importlib.util.spec_from_file_location("bootstrap", BOOTSTRAP)
    bootstrap = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(bootstrap)
    bootstrap.load_package()


def main(work, output):
    load_worker()
    from gate_worker import events, export, settings
    from gate_worker.run import script

    first = {}
    real = settings.apply_process_wide

    def apply_once(request):
        """The inter-op pool can be sized once per process; every request of a run asks for the same."""
        return first.setdefault("report", None) or first.update(report=real(request)) or first["report"]

    settings.apply_process_wide = apply_once
    for index, directory in enumerate(json.load(open(work))):
        folder = os.path.join(output, str(index))
        os.mkdir(folder)
        with open(os.path.join(directory, "request.json")) as stream:
            request = json.load(stream)
        verb = {"export": export.export, "run": script.run}[request["verb"]]
        with contextlib.suppress(events.PhaseFailed):
            verb(request, folder, events.EventLog(os.path.join(folder, "events.jsonl")))
    sys.stdout.flush()
    os._exit(0)


main(*sys.argv[1:])
