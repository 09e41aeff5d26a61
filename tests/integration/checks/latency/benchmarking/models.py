# mypy: ignore-errors
"""Models that a benchmark tells apart by what they keep: weights, memory that grows with every call, a state."""

from typing import List

import torch
from fixtures.declare import Sample, model
from torch import nn


class Weights(nn.Module):
    def __init__(self, width: int):
        super().__init__()
        self.inner = nn.Linear(1024, width)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.inner(x).sum(1)


def with_weights(width):
    return Sample(Weights(width), example=(torch.ones(2, 1024),), longer=(torch.ones(9, 1024),))


@model("light")
def light():
    return with_weights(256)  # 1 MiB


@model("heavy")
def heavy():
    return with_weights(16384)  # 64 MiB


class Keeps(nn.Module):
    """Keeps 1 KiB of every call, all of them or the last one.

    All of these have a reset, which does nothing, so that no two callers ever write into one list: that may crash.
    """

    kept: List[torch.Tensor]

    def __init__(self, forgets: bool):
        super().__init__()
        self.forgets = forgets
        self.kept = torch.jit.annotate(List[torch.Tensor], [])

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        if self.forgets:
            self.kept.clear()
        self.kept.append(x.expand(256).contiguous())
        return x + 1

    @torch.jit.export
    def forget(self) -> None:
        pass


@model("leaks", reset="forget")
def leaks():
    return Sample(Keeps(False), example=(torch.ones(1),))


@model("keeps_one", reset="forget")
def keeps_one():
    return Sample(Keeps(True), example=(torch.ones(1),))


@model("stateful", reset="forget")
def stateful():
    return Sample(Keeps(True), example=(torch.ones(1),))
