"""A model that no CUDA graph can hold, since it asks the GPU for a size, and a healthy twin."""

import torch
from fixtures.declare import Sample, model


class Selecting(torch.nn.Module):
    """``nonzero`` copies a count to the CPU: not permitted while a stream is captured."""

    def forward(self, x):
        return x[torch.nonzero(x.relu().flatten()).flatten() % x.size(0)].sum(0)


class Weighting(torch.nn.Module):
    """The same with a mask in place of a selection: every shape is known beforehand."""

    def forward(self, x):
        return (x * (x > 0)).sum(0)


@model("selecting", how="script", tags=("graphs",), covers=("aten::nonzero",), devices=("cuda",))
def selecting():
    return Sample(Selecting(), example=(torch.randn(16, 8),))


@model("weighting", how="script", tags=("graphs",), covers=("aten::gt",), devices=("cuda",))
def weighting():
    return Sample(Weighting(), example=(torch.randn(16, 8),))
