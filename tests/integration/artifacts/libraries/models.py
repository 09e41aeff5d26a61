# mypy: ignore-errors
"""A model that needs an operator of somebody's own, and one that does not."""

import torch
from fixtures.declare import Sample, model
from torch import nn


class Doubles(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.ops.gatetest.double_it(x) + 1


@model("doubles")
def doubles():
    return Sample(Doubles(), example=(torch.ones(2, 3),))


class Adds(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x + x + 1


@model("adds")
def adds():
    return Sample(Adds(), example=(torch.ones(2, 3),))
