# mypy: ignore-errors
"""Programs that are taken to pieces: one of every kind of node, one that hangs where its block is fused, and its twin."""

from typing import Dict, List, Tuple

import torch
from torch import nn

from fixtures.declare import Sample, model
from fixtures.planted.fused import ENDLESS, BusyIfFused


class Mixed(nn.Module):
    """Parameters, state, a branch, a loop, lists, a dict, what is changed in place, and another thread."""

    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(6, 6)
        self.norm = nn.BatchNorm1d(6)
        self.register_buffer("scale", torch.full((6,), 2.0))
        self.count = 0

    def forward(self, x: torch.Tensor, deep: bool = True) -> Tuple[torch.Tensor, Dict[str, torch.Tensor], torch.Tensor]:
        self.count += 1
        h = self.linear(x)
        if deep:
            h = self.norm(h) * self.scale
        else:
            h = h - self.norm.running_mean
        parts: List[torch.Tensor] = []
        for turn in range(3):
            h = torch.cos(h) + self.scale * turn
            parts.append(h)
        total = torch.zeros_like(h)
        total.add_(h).mul_(0.5)
        waiting = torch.jit.fork(torch.relu, total)
        layered = torch.jit.fork(self.linear, total)
        sizes = {"half": total, "size": torch.tensor(h.size(0))}
        return torch.stack(parts), sizes, torch.jit.wait(waiting) + torch.jit.wait(layered)


class Fractional(nn.Module):
    """The fuser's frac is x - floor(x) on every CPU, also where x is negative and frac is not; healthy nodes around."""

    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(64, 64)

    def forward(self, x: torch.Tensor, deep: bool = True) -> torch.Tensor:
        h = torch.relu(self.layer(x)) + 1.0
        if deep:
            h = torch.sigmoid(h) * 0.5
            residue = torch.frac(-h) + h
            h = torch.tanh(residue * 2.0)
        return h + 1.0


class Guarded(nn.Module):
    """What a CPU that is fused for takes so many turns for is in a branch, behind a layer."""

    def __init__(self, turns):
        super().__init__()
        self.layer = nn.Linear(13, 13)
        self.busy = BusyIfFused(turns)

    def forward(self, x: torch.Tensor, waits: bool = True) -> torch.Tensor:
        h = torch.relu(self.layer(x))
        if waits:
            h = self.busy(h - 0.5)
        return h * 2.0


@model("mixed", how="script")
def mixed():
    return Sample(Mixed(), example=(torch.randn(4, 6),))


@model("fractional", how="script")
def fractional():
    return Sample(Fractional(), example=(torch.randn(4, 64),))


@model("guarded", how="script")
def guarded():
    return Sample(Guarded(ENDLESS), example=(torch.randn(2, 13),))


@model("calm", how="script")
def calm():
    return Sample(Guarded(0), example=(torch.randn(2, 13),))
