# mypy: ignore-errors
"""Models with operators that ``planting.py`` spoils in the new release, each in an awkward place; and healthy twins."""

from typing import List

import torch
from torch import nn

from fixtures.declare import Sample, model


class Looped(nn.Module):
    """The operator runs in one branch of an If, in two turns of a loop."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        for turn in range(4):
            if turn % 2 == 1:
                x = torch.tanh(torch.cosh(x))
            else:
                x = torch.tanh(x) + 0.5
        return x


class Layer(nn.Module):
    def __init__(self, grows: bool):
        super().__init__()
        self.grows = grows
        self.mix = nn.Linear(4, 4)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = self.mix(x)
        if self.grows:
            x = torch.cosh(x)
        return torch.tanh(x)


class Encoder(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.ModuleList([Layer(False), Layer(True), Layer(False)])

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        for layer in self.layers:
            x = layer(x)
        return x


class Nested(nn.Module):
    """The operator is in a submodule of a submodule, which has like ones beside it."""

    def __init__(self):
        super().__init__()
        self.encoder = Encoder()
        self.head = nn.Linear(4, 2)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.head(self.encoder(x))


class Two(nn.Module):
    """Two operators, the second of which hides behind what it inherits from the first."""

    def forward(self, x: torch.Tensor) -> List[torch.Tensor]:
        x = torch.cosh(x)
        return [x.sum(), torch.sinh(torch.tanh(x))]


class Raises(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.erfinv(torch.tanh(x) * 0.5) + 1.0


class Crashes(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.digamma(torch.exp(x)) + 1.0


class Hangs(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.lgamma(torch.exp(x)) + 1.0


class Strides(nn.Module):
    """The operator answers the same numbers in other strides, and the view after it raises."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.expm1(x).view(-1)


class InPlace(nn.Module):
    """The operator changes a tensor that another name looks at."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = torch.exp(x)
        flat = y.view(-1)
        y.log1p_()
        return flat * 2.0


class Amplified(nn.Module):
    """The operator is off by rounding alone; what comes after it makes much of that."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.tanh((torch.asinh(x) - torch.asinh(x.double()).float()) * 1e7)


class GoesOn(nn.Module):
    """The operator is off, and the loop that waits until it is not goes on for ``most`` turns."""

    def __init__(self, most: int):
        super().__init__()
        self.most = most

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        turns = 0
        while turns < self.most and bool((torch.cosh(x) - (torch.exp(x) + torch.exp(-x)) * 0.5).max() > 1e-4):
            x = torch.tanh(x) + 0.5
            turns += 1
        return x


class Healthy(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        for turn in range(3):
            x = torch.tanh(x) if turn == 1 else torch.exp(-x)
        return x


def planted(module):
    torch.manual_seed(3)
    return Sample(module, example=(torch.randn(3, 4),))


@model("looped", tags=("planted",))
def looped():
    return planted(Looped())


@model("nested", tags=("planted",))
def nested():
    return planted(Nested())


@model("two", tags=("planted",))
def two():
    return planted(Two())


@model("raises", tags=("planted",))
def raises():
    return planted(Raises())


@model("goes_on", tags=("planted",))
def goes_on():
    return planted(GoesOn(most=1 << 60))


@model("goes_on_for_a_while", tags=("planted",))
def goes_on_for_a_while():
    return planted(GoesOn(most=20))


@model("crashes", tags=("planted",))
def crashes():
    return planted(Crashes())


@model("hangs", tags=("planted",))
def hangs():
    return planted(Hangs())


@model("strides", tags=("planted",))
def strides():
    return planted(Strides())


@model("in_place", tags=("planted",))
def in_place():
    return planted(InPlace())


@model("amplified", tags=("planted",))
def amplified():
    return planted(Amplified())


@model("healthy", tags=("planted",))
def healthy():
    return planted(Healthy())
