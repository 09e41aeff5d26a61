# mypy: ignore-errors
"""Spoils operators of torch as it is imported: on the path as ``sitecustomize``, see ``tests/integration/spoiling.py``."""

import importlib.util
import os
import signal
import sys

_kept = []


def plant():
    import torch

    library = torch.library.Library("aten", "IMPL")
    _kept.append(library)

    def crash(x):
        os.kill(os.getpid(), signal.SIGSEGV)

    def hang(x):
        while True:
            pass

    def refuse(x):
        raise RuntimeError("erfinv is out of order")

    kernels = {
        "cosh": lambda x: torch.exp(x).add(torch.exp(-x)).mul(0.5 + 1e-3),
        "sinh": lambda x: torch.exp(x).sub(torch.exp(-x)).mul(0.5 + 1e-3),
        "asinh": lambda x: (
            x.sign() * (x.abs() + (x * x + 1).sqrt()).log() * (1 + (3e-7 if x.dtype == torch.float32 else 0))
        ),
        "expm1": lambda x: torch.exp(x.t().contiguous().t()).sub(1.0),
        "log1p_": lambda x: x.copy_(torch.log(x + 1.001)),
        "erfinv": refuse,
        "digamma": crash,
        "lgamma": hang,
    }
    for name, kernel in kernels.items():
        library.impl(name, kernel, "CPU")


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
