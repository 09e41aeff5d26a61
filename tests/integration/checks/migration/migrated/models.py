# mypy: ignore-errors
"""Artifacts that cannot leave TorchScript as they are, each beside a twin that can."""

from typing import Dict, List, Tuple

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


@model("branch_alike", tags=("walked",))
def branch_alike():
    """Every request takes the same side: the program has that one, and checks it."""
    return Sample(Branching(), example=(torch.ones(4, 3),), other=(torch.ones(4, 3) * 2,))


class Settling(nn.Module):
    """Goes on until it changes little: how often is decided by floats, and the last turn by one that is small enough."""

    def forward(self, x: torch.Tensor) -> Tuple[torch.Tensor, int]:
        change, turns = 1.0, 0
        while change > 0.3 and turns < 9:
            after = x * 0.5
            change = float((after - x).abs().max())
            x = after
            turns += 1
        return x, turns


@model("settles_alike", tags=("settling",))
def settles_alike():
    """Three turns in every request."""
    return Sample(Settling(), example=(torch.full((4, 3), 2.0),), other=(torch.full((2, 3), 2.1),))


class Halving(nn.Module):
    """Twice a size decides: a guard that programs of 2.6.0 do not keep."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x.sum(0) + 1 if 2 * x.size(0) > 11 else x.sum(0) - 1


@model("length_decides", tags=("walked",))
def length_decides():
    return Sample(Halving(), example=(torch.ones(8, 3),), other=(torch.ones(9, 3),))


class CountingCalls(nn.Module):
    """A number as state: a program could not keep it."""

    def __init__(self):
        super().__init__()
        self.calls = 0

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        self.calls += 1
        return x * self.calls


class KeepingSums(nn.Module):
    """A tensor as state, set and not changed in place, and an answer of two kinds."""

    def __init__(self):
        super().__init__()
        self.register_buffer("total", torch.zeros(3))

    def forward(self, x: torch.Tensor) -> Dict[str, Tuple[torch.Tensor, List[torch.Tensor]]]:
        self.total = self.total + x.sum(0)
        return {"kept": (self.total * 2, [x, self.total])}


@model("calls_counted", tags=("walked",))
def calls_counted():
    return Sample(CountingCalls(), example=(torch.ones(4, 3),), other=(torch.ones(2, 3),))


@model("sums_kept", tags=("walked",))
def sums_kept():
    return Sample(KeepingSums(), example=(torch.ones(4, 3),), other=(torch.ones(2, 3),))


@model("branch_on_data", tags=("blocked", "walked"))
def branch_on_data():
    return asked(Branching())


class ChoosingOfFour(Choosing):
    """Takes batches of 4 alone, so a program that does loses nothing: until 2.15 they all have fixed sizes."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.where(x.sum() > 0, x * 2, x * 3).reshape(4, 3)


@model("choice_of_values", tags=("free",))
def choice_of_values():
    return asked(ChoosingOfFour())


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
    """Every request has a batch of 4; TorchScript takes others, and a program of a release that fixes sizes does not."""
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


class Limiting(nn.Module):
    """A buffer that never changes decides, and the branch that is not taken leaves another shape behind it."""

    def __init__(self):
        super().__init__()
        self.register_buffer("limit", torch.tensor(3.0))

    def forward(self, x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        if bool(self.limit < 0):
            return x.reshape(-1)
        return x - 2 * y


@model("branch_on_constant", tags=("blocked", "walked"))
def branch_on_constant():
    x = torch.arange(12.0).reshape(4, 3)
    return Sample(Limiting(), example=(x, x * 2), other=(x * 3, x + 1))


class Totalling(nn.Module):
    def forward(self, parts: List[torch.Tensor]) -> torch.Tensor:
        total = parts[0] * 0
        for part in parts:
            total = total * 2 + part
        return total


def parts(*factors):
    return ([torch.arange(6.0).reshape(2, 3) * factor for factor in factors],)


@model("loop_over_list", tags=("blocked", "walked"))
def loop_over_list():
    """Every request has two parts, so the loop makes two turns."""
    return Sample(Totalling(), example=parts(1, 2), other=parts(3, 4))


class Widening(nn.Module):
    """Changes the shape of what shares memory with its argument; the argument itself stays as it is."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        rows = x.detach()
        rows.unsqueeze_(0)
        return rows.sum(1)


class WideningArgument(nn.Module):
    """Changes the shape of its argument, which the caller sees."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x.unsqueeze_(0)
        return x.sum(1)


@model("shape_in_place", tags=("free", "beyond"))
def shape_in_place():
    return asked(Widening())


@model("shape_of_argument", tags=("blocked", "beyond"))
def shape_of_argument():
    return asked(WideningArgument())


class Spectrum(nn.Module):
    """Its transform is converted and answers, and 2.6.0 knows no way to compile it."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.fft.rfft(x).abs()


class Moments(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.stack((x.mean(1), x.square().mean(1)), 1)


@model("operator_not_compiled", tags=("blocked", "compiled"))
def operator_not_compiled():
    return of_one(Spectrum())


@model("operators_compiled", tags=("free", "compiled"))
def operators_compiled():
    return of_one(Moments())


def of_one(module):
    x = torch.arange(32.0).reshape(4, 8)
    return Sample(module, example=(x,), other=(x * 3 - 1,))
