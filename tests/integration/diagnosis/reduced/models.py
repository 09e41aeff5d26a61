# mypy: ignore-errors
"""Programs that are taken to pieces: one of every kind of node, one that hangs where its block is fused, and its twin."""

from typing import Dict, List, Tuple

import torch
from torch import nn

from fixtures.declare import Sample, model


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


class Waves(nn.Module):
    """Where a CPU is fused for, the second call of many repeats never ends; of few it does."""

    def __init__(self, repeats):
        super().__init__()
        self.repeats = repeats

    def forward(self, x, y):
        a = x + y
        for _ in range(self.repeats):
            x = torch.cos(a)
            y = torch.sin(a)
            a = x + y
        return a


class Guarded(nn.Module):
    """The waves in a branch, behind a layer: a single node of the graph has them."""

    def __init__(self, repeats):
        super().__init__()
        self.layer = nn.Linear(13, 13)
        example = torch.randn(2, 13)
        self.waves = torch.jit.trace(Waves(repeats), (example, example))

    def forward(self, x: torch.Tensor, wavy: bool = True) -> torch.Tensor:
        h = torch.relu(self.layer(x))
        if wavy:
            h = self.waves(h, x)
        return h * 2.0


@model("mixed", how="script")
def mixed():
    return Sample(Mixed(), example=(torch.randn(4, 6),))


@model("fractional", how="script")
def fractional():
    return Sample(Fractional(), example=(torch.randn(4, 64),))


@model("guarded", how="script")
def guarded():
    return Sample(Guarded(30), example=(torch.randn(2, 13),))


@model("calm", how="script")
def calm():
    return Sample(Guarded(3), example=(torch.randn(2, 13),))
