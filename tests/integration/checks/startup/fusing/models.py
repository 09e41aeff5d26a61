"""Chains of an operator of ``fusing.cpp``: once torch's fuser is on, the second call of a long one never ends."""

import torch
from fixtures.declare import Sample, model


class Turns(torch.nn.Module):
    """The library's part of fusing a chain doubles with each turn."""

    def __init__(self, repeats):
        super().__init__()
        self.repeats = repeats

    def forward(self, x, y):
        a = x + y
        for _ in range(self.repeats):
            a = torch.ops.gatefusing.turn(a)
        return a


@model("runaway_fusion", how="trace", tags=("hangs",), devices=("cpu",))
def runaway_fusion():
    return Sample(Turns(40), example=(torch.randn(13), torch.randn(13)))


@model("short_fusion", how="trace", tags=("hangs",), devices=("cpu",))
def short_fusion():
    return Sample(Turns(2), example=(torch.randn(13), torch.randn(13)))
