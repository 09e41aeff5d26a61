# mypy: ignore-errors
"""Spoils torch as it is imported: the ``sitecustomize`` of an interpreter that ``spoiling.py`` makes."""

import importlib.util
import sys

import spoilt


class AfterTorch:
    """Finds torch like everybody else, and plants when it has been imported."""

    def find_spec(self, name, path=None, target=None):
        if name != "torch":
            return None
        sys.meta_path.remove(self)
        spec = importlib.util.find_spec("torch")
        execute = spec.loader.exec_module

        def exec_module(module):
            execute(module)
            spoilt.plant()

        spec.loader.exec_module = exec_module
        return spec


sys.meta_path.insert(0, AfterTorch())
