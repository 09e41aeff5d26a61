# mypy: ignore-errors
"""Models for golden bundles: two that a bundle can hold, and two of which there is nothing to pack."""

import torch
from torch import nn

from fixtures.declare import Sample, model


class Counter(nn.Module):
    """Adds up what it was given: its answers depend on the calls before, and it changes its input."""

    def __init__(self):
        super().__init__()
        self.register_buffer("seen", torch.zeros(4))
        self.weight = nn.Linear(4, 4)

    @torch.jit.export
    def forget(self):
        self.seen = torch.zeros(4)

    def forward(self, x: torch.Tensor):
        self.seen = self.seen + x.mean(0)
        x.add_(1.0)
        return {"y": self.weight(x), "seen": self.seen}


class Raises(nn.Module):
    def forward(self, x: torch.Tensor):
        if x.sum() > -1e9:
            raise RuntimeError("not today")
        return x


@model("counter", tags=("packed",), reset="forget", tolerance=1e-4)
def counter():
    return Sample(Counter(), example=(torch.randn(3, 4),), wider=(torch.randn(5, 4),))


@model("plain", tags=("packed",))
def plain():
    return Sample(nn.Sequential(nn.Linear(8, 8), nn.GELU()), example=(torch.randn(2, 8),))


@model("raises", tags=("packed",))
def raises():
    return Sample(Raises(), example=(torch.randn(2),))


@model("unexported", tags=("packed",))
def unexported():
    raise RuntimeError("no weights here")
