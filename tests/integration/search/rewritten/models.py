# mypy: ignore-errors
"""What a rewrite fixes in 2.6.0: a changed operator, a branch that is not loaded, and a fusion (planted)."""

import torch
import torch.nn.functional as F
from fixtures.declare import Sample, model
from fixtures.planted.fused import ENDLESS, BusyIfFused
from torch import nn


class Thumbnail(nn.Module):
    """2.6.0 weights the border of bytes otherwise."""

    def forward(self, image):
        return F.interpolate(image, size=[20, 16], mode="bicubic", align_corners=False).to(torch.float32)


@model("thumbnail", how="script", devices=("cpu",))
def thumbnail():
    return Sample(Thumbnail(), example=(torch.randint(0, 256, (1, 3, 8, 8), dtype=torch.uint8),))


class Legacy(nn.Module):
    """2.6.0 has no ``prim::is_ort``; nobody asks for the legacy way."""

    def __init__(self):
        super().__init__()
        self.projection = nn.Linear(8, 4)

    def forward(self, x, legacy: bool = False):
        if legacy:
            if x.is_ort:
                x = x.half().float()
        return torch.relu(self.projection(x))


@model("legacy", how="script", devices=("cpu",))
def legacy():
    return Sample(Legacy(), example=(torch.randn(3, 8),))


@model("fused", how="script", devices=("cpu",))
def fused():
    """With fusion on the CPU its second call does not end in the new release."""
    return Sample(BusyIfFused(ENDLESS), example=(torch.randn(13),))


class WornOut(nn.Module):
    """Answers as often as a comparison asks, and no more after twelve calls."""

    def __init__(self):
        super().__init__()
        self.calls = 0

    def forward(self, x):
        self.calls += 1
        if self.calls > 12:
            raise RuntimeError("worn out")
        return x + 1


@model("worn_out", how="script", devices=("cpu",))
def worn_out():
    return Sample(WornOut(), example=(torch.randn(3),))
