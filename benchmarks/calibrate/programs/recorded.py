"""Reads what a worker has recorded, in a program that an environment's own interpreter runs by path."""

# mypy: ignore-errors

import importlib.util
import os
import sys

WORKER = os.path.abspath(os.path.join(os.path.dirname(__file__), "..", "..", "..", "harness", "worker"))


def reader():
    """Return the worker's ``TensorReader``, which knows the format of the files."""
    spec = importlib.util.spec_from_file_location(
        "gate_worker", os.path.join(WORKER, "__init__.py"), submodule_search_locations=[WORKER]
    )
    module = importlib.util.module_from_spec(spec)
    sys.modules["gate_worker"] = module
    spec.loader.exec_module(module)
    from gate_worker.values import trees as tensors

    return tensors.TensorReader
