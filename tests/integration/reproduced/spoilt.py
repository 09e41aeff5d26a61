# mypy: ignore-errors
"""Spoils operators of torch as it is imported: on the path as ``sitecustomize``."""

import importlib.util
import sys
import time

_kept = []


def plant():
    import torch

    library = torch.library.Library("aten", "IMPL")
    _kept.append(library)

    def hang(x):
        while True:
            pass

    def slow(x):
        time.sleep(0.005)
        return torch.where(x == 0, torch.ones_like(x), torch.sin(x * torch.pi) / (x * torch.pi))

    library.impl("cosh", lambda x: torch.exp(x).add(torch.exp(-x)).mul(0.5 + 1e-3), "CPU")
    library.impl("lgamma", hang, "CPU")
    library.impl("sinc", slow, "CPU")


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
            plant()

        spec.loader.exec_module = exec_module
        return spec


sys.meta_path.insert(0, AfterTorch())
