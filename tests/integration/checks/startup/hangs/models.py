"""A model that hangs at its second call once CPU fusion is on, and a healthy neighbour."""

import torch
from fixtures.declare import Sample, model
from fixtures.planted.fused import ENDLESS, BusyIfFused


@model("busy_if_fused", tags=("hangs",), covers=("aten::frac",), devices=("cpu",))
def busy_if_fused():
    return Sample(BusyIfFused(ENDLESS), example=(torch.randn(13),))


@model("neighbour", tags=("hangs",), covers=("aten::frac",), devices=("cpu",))
def neighbour():
    return Sample(BusyIfFused(0), example=(torch.randn(13),))
