"""Runs a program under the limits of a worker: ``run_with_limits.py LIMITS_JSON PROGRAM ARGUMENTS...``.

A reproducer has none of its own, for it is run by hand; where the controller runs it, the archive in it may be hostile.
"""

import importlib.util
import json
import os
import runpy
import sys


def main():
    folder = os.path.dirname(os.path.abspath(__file__))
    spec = importlib.util.spec_from_file_location("limits", os.path.join(folder, "limits.py"))
    limits = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(limits)
    limits.apply(json.loads(sys.argv[1]))
    sys.argv = sys.argv[2:]
    sys.path[0] = os.path.dirname(sys.argv[0])
    runpy.run_path(sys.argv[0], run_name="__main__")


main()
