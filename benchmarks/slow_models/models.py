"""A model whose every call takes a while, and which always gets on."""

import torch
from torch import nn

from fixtures.declare import Sample, model


class Plodding(nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.randn(256, 256) / 16.0)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        for _ in range(120):
            x = torch.tanh(x @ self.weight)
        return x


@model("plodding", tags=("slow",), devices=("cpu",))
def plodding():
    return Sample(Plodding(), example=(torch.randn(256, 256),))
