# mypy: ignore-errors
"""Spoils operators of torch for ``test_reproducers.py``."""

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
