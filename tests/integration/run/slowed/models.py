"""Fast without CPU fusion, which is how the old release runs them: with it one is busy for ever, its twin for a while."""

import torch
from fixtures.declare import Sample, model
from fixtures.planted.fused import ENDLESS, BusyIfFused


@model("never_ends", tags=("hangs",), covers=("aten::frac",), devices=("cpu",))
def never_ends():
    return Sample(BusyIfFused(ENDLESS), example=(torch.randn(13),))


@model("ends_late", tags=("slow",), covers=("aten::frac",), devices=("cpu",))
def ends_late():
    return Sample(BusyIfFused(4000000), example=(torch.randn(13),))
