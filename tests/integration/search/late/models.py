# mypy: ignore-errors
"""Modules that answer otherwise once a fuser has compiled them, and one that does not: no release has to change."""

import torch
from torch import nn

from fixtures.declare import Sample, model


class Residue(nn.Module):
    """What exp and log leave of a number: rounding alone, and the fuser rounds otherwise than the operators do."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        residue = torch.log(torch.exp(x)) - x
        return torch.tanh(residue * 1048576.0)


@model("residue", tags=("late",))
def residue():
    return Sample(Residue(), example=(torch.randn(256),), other=(torch.randn(256),))


class Gated(nn.Module):
    def __init__(self, approximate: str):
        super().__init__()
        self.project = nn.Linear(16, 16)
        self.gate = nn.GELU(approximate=approximate)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.gate(self.project(x))


def gated(approximate):
    return Sample(Gated(approximate), example=(torch.randn(8, 16),), other=(torch.randn(3, 16),))


@model("tanh_gelu", tags=("late", "onednn"), how="trace", freeze=True)
def tanh_gelu():
    """The bridge to oneDNN Graph drops ``approximate``: from call 1 on it computes the exact GELU."""
    return gated("tanh")


@model("exact_gelu", tags=("late", "onednn"), how="trace", freeze=True)
def exact_gelu():
    return gated("none")
