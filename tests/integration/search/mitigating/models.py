# mypy: ignore-errors
"""Models that are well again under some settings, or under none; each in a server group of its own."""

import torch
from fixtures.declare import Sample, model
from fixtures.planted.fused import ENDLESS, BusyIfFused
from torch import nn


class Log1p(nn.Module):
    """``spoilt.py`` lets the operator answer only without oneDNN and with deterministic algorithms."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.tanh(torch.log1p(x))


class Cosh(nn.Module):
    """``spoilt.py`` lets the operator answer wrong, whatever is set."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.tanh(torch.cosh(x))


class Lgamma(nn.Module):
    """``spoilt.py`` lets the operator raise where two threads are in it at once."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.tanh(torch.lgamma(x))


class Expm1(nn.Module):
    """``spoilt.py`` lets the operator raise while another thread is in it, or loads."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.tanh(torch.expm1(x))


def planted(module):
    torch.manual_seed(3)
    return Sample(module, example=(torch.rand(3, 4) + 0.5,))


@model("fused", tags=("fused",), devices=("cpu",))
def fused():
    return Sample(BusyIfFused(ENDLESS), example=(torch.randn(13),))


@model("needs_two", tags=("needs_two",))
def needs_two():
    return planted(Log1p())


@model("wrong", tags=("wrong",))
def wrong():
    return planted(Cosh())


@model("crowded_calls", tags=("crowded_calls",))
def crowded_calls():
    return planted(Lgamma())


@model("crowded_start", tags=("crowded_start",))
def crowded_start():
    return planted(Expm1())


@model("healthy", tags=("healthy",))
def healthy():
    return planted(nn.Tanh())
