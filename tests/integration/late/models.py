# mypy: ignore-errors
"""A module that answers otherwise once the fuser has compiled it: no release has to change for that."""

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
