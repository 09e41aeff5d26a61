"""A model that hangs at its second call once CPU fusion is on (pytorch issue 75903), and a healthy neighbour."""

import torch
from fixtures.declare import Sample, model


class Rotations(torch.nn.Module):
    """Each step doubles the expression that the fuser writes out, so 30 of them never end."""

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


@model("runaway_fusion", how="trace", tags=("hangs",), covers=("aten::cos",), devices=("cpu",))
def runaway_fusion():
    return Sample(Rotations(30), example=(torch.randn(13), torch.randn(13)))


@model("neighbour", how="trace", tags=("hangs",), covers=("aten::cos",), devices=("cpu",))
def neighbour():
    return Sample(Rotations(2), example=(torch.randn(13), torch.randn(13)))
