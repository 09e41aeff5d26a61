# mypy: ignore-errors
"""Models of which each does something else in a spoilt release, see ``spoilt.py``."""

import torch
from fixtures.declare import Sample, model
from torch import nn


class Numbers(nn.Module):
    def forward(self, x):
        return {"wide": torch.cosh(x), "rest": [x.sin(), None]}


class Hangs(nn.Module):
    def forward(self, x):
        return torch.lgamma(x.abs() + 1)


class Slow(nn.Module):
    def forward(self, x):
        return torch.sinc(x).sum()


class Refused(nn.Module):
    """``prim::is_ort`` is gone by 2.6.0 (pytorch pull request 123265)."""

    def forward(self, x):
        return x.half().float() if x.is_cuda or x.is_ort else x.relu()


@model("numbers", how="script", tags=("spoilt",), covers=("aten::cosh",), devices=("cpu",))
def numbers():
    return Sample(Numbers(), example=(torch.randn(5, 3).t(),))


@model("hangs", how="script", tags=("spoilt",), covers=("aten::lgamma",), devices=("cpu",))
def hangs():
    return Sample(Hangs(), example=(torch.randn(4),))


@model("slow", how="script", tags=("spoilt",), covers=("aten::sinc",), devices=("cpu",))
def slow():
    return Sample(Slow(), example=(torch.randn(4),))


@model("refused", how="script", tags=("spoilt",), covers=("prim::is_ort",), devices=("cpu",))
def refused():
    return Sample(Refused(), example=(torch.randn(4),))
