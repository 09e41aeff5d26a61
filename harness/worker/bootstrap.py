"""Entry point of every worker: ``ENV_PYTHON -s -u harness/worker/bootstrap.py RUN_DIR CONTROLLER_PID``.

Puts standard output aside for answers, so that nothing which prints at import can garble them, says hello before
torch is imported, arms faulthandler, asks the kernel to end this process with its controller, and hands over to
the verb that ``request.json`` names. Its siblings are loaded as the package ``gate_worker`` so that this folder is
not on ``sys.path`` and can shadow nothing.
"""

import importlib.util
import os
import sys

PACKAGE = "gate_worker"


def load_package():
    """Import this folder under the name ``gate_worker`` and take the folder off ``sys.path``."""
    folder = os.path.dirname(os.path.abspath(__file__))
    sys.path[:] = [entry for entry in sys.path if os.path.abspath(entry or ".") != folder]
    spec = importlib.util.spec_from_file_location(
        PACKAGE, os.path.join(folder, "__init__.py"), submodule_search_locations=[folder]
    )
    module = importlib.util.module_from_spec(spec)
    sys.modules[PACKAGE] = module
    spec.loader.exec_module(module)


def main(argv):
    run_dir, controller_pid = argv[1], int(argv[2])
    load_package()
    from gate_worker import lifecycle

    lifecycle.take_signals_back()
    lifecycle.die_with_parent(controller_pid)
    lifecycle.put_answers_aside()
    lifecycle.work_in(run_dir)


if __name__ == "__main__":
    main(sys.argv)
