# mypy: ignore-errors
"""Artifacts that cannot leave TorchScript as they are, each beside a twin that can."""

import torch
from torch import nn

from fixtures.declare import Call, Sample, model


class Branching(nn.Module):
    """A branch that depends on data and leaves another shape behind it: torch.cond takes no such branch."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        if bool(x.sum() > 0):
            return x * 2
        return x.reshape(-1)


class Choosing(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.where(x.sum() > 0, x * 2, x * 3)


def asked(module):
    return Sample(module, example=(torch.ones(4, 3),), other=(-torch.ones(4, 3),))


@model("branch_on_data", tags=("blocked",))
def branch_on_data():
    return asked(Branching())


@model("choice_of_values", tags=("free",))
def choice_of_values():
    return asked(Choosing())


class Flattened(nn.Module):
    """Traced, it holds the size of its example: the batch is a constant of the archive."""

    def forward(self, x: torch.Tensor, size: int) -> torch.Tensor:
        return x.sum(0) * size


@model("size_as_number", tags=("blocked",))
def size_as_number():
    """The second argument is a plain int, which requests vary and torch.export holds constant."""
    x = torch.ones(4, 3)
    return Sample(Flattened(), example=(x, 4), other=(x, 2))


@model("size_never_varied", tags=("free",))
def size_never_varied():
    x = torch.ones(4, 3)
    return Sample(Flattened(), example=(x, 4), other=(x * 2, 4))


class Counting(nn.Module):
    """A number that comes from a tensor: the converter passes it through int32, where 2**40 is 0."""

    def forward(self, x: torch.Tensor, steps: torch.Tensor) -> torch.Tensor:
        return x + int(steps)


@model("number_beyond_int32", tags=("blocked",))
def number_beyond_int32():
    x = torch.zeros(4, dtype=torch.int64)
    return Sample(Counting(), example=(x, torch.tensor(2**40)), other=(x, torch.tensor(2**41)))


@model("number_within_int32", tags=("free",))
def number_within_int32():
    x = torch.zeros(4, dtype=torch.int64)
    return Sample(Counting(), example=(x, torch.tensor(7)), other=(x, torch.tensor(9)))


class Scorer(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x * 2

    @torch.jit.export
    def score(self, x: torch.Tensor) -> torch.Tensor:
        return x * 3


@model("two_methods", tags=("blocked", "beyond"))
def two_methods():
    return Sample(Scorer(), example=(torch.ones(3),), scored=Call("score", torch.ones(3)))


@model("batch_of_one_first", tags=("free", "beyond"))
def batch_of_one_first():
    """Converted with its first request, the batch would be the constant 1."""
    return Sample(Choosing(), single=(torch.ones(1, 3),), batch=(torch.ones(4, 3),), larger=(torch.ones(7, 3),))
