# mypy: ignore-errors
"""Spoils operators of torch for ``test_bisect.py``."""

import os
import signal

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
