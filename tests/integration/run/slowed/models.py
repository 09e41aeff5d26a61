"""Fast without CPU fusion, which is how the old release runs them: with it one compiles forever, its twin for seconds.

Each step doubles the expression that the fuser writes out (pytorch issue 75903).
"""

import torch
from fixtures.declare import Sample, model


class Rotations(torch.nn.Module):
    def __init__(self, steps):
        super().__init__()
        self.steps = steps

    def forward(self, x, y):
        a = x + y
        for _ in range(self.steps):
            a = torch.cos(a) + torch.sin(a)
        return a


def rotations(steps):
    return Sample(Rotations(steps), example=(torch.randn(13), torch.randn(13)))


@model("never_ends", how="trace", tags=("hangs",), covers=("aten::cos",), devices=("cpu",))
def never_ends():
    return rotations(30)


@model("ends_late", how="trace", tags=("slow",), covers=("aten::cos",), devices=("cpu",))
def ends_late():
    return rotations(14)
