# mypy: ignore-errors
"""Artifacts in which data or sizes decide, each with what a program that takes one way for all would lose."""

from typing import Dict, List, Tuple

import torch
from torch import nn

from fixtures.declare import Sample, model


def rows(count, shift):
    torch.manual_seed(count)
    return (torch.randn(count, 4) + shift,)


def both_ways(module):
    return Sample(module, example=rows(2, 0.4), other=rows(3, -0.4), third=rows(4, 0.3), fourth=rows(5, -0.3))


class TwoWays(nn.Module):
    def __init__(self):
        super().__init__()
        self.high, self.low = nn.Linear(4, 4), nn.Linear(4, 4)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        if bool(x.sum() > 0):
            y = self.high(x)
        else:
            y = self.low(x).relu()
        return y + 1


@model("two_ways", tags=("joined", "walked"))
def two_ways():
    return both_ways(TwoWays())


class WaysInWays(nn.Module):
    """One way has a branch of its own, a constant that no other one has, and a number that follows from data."""

    weights: Dict[str, torch.Tensor]

    def __init__(self):
        super().__init__()
        self.high, self.low = nn.Linear(4, 4), nn.Linear(4, 4)
        self.weights = {"large": torch.randn(4)}

    def forward(self, x: torch.Tensor) -> Tuple[torch.Tensor, float]:
        factor = 0.5
        if bool(x.sum() > 0):
            y = self.high(x)
            if bool(x.max() > 1.5):
                y = y * self.weights["large"]
                factor = 2.0
            else:
                factor = float(x.min())
        else:
            y = self.low(x).relu()
        return y, factor


@model("ways_in_ways", tags=("joined",))
def ways_in_ways():
    return both_ways(WaysInWays())


class Settles(nn.Module):
    def __init__(self):
        super().__init__()
        self.message = nn.Linear(4, 4)

    def forward(self, x: torch.Tensor) -> Tuple[torch.Tensor, int]:
        state = torch.zeros_like(x)
        change, turns = 1.0, 0
        while change > 1e-2 and turns < 20:
            after = torch.tanh(x + 0.3 * self.message(state))
            change = float((after - state).abs().max())
            state = after
            turns += 1
        return state, turns


@model("settles", tags=("joined", "settling"))
def settles():
    return both_ways(Settles())


class Decodes(nn.Module):
    """Writes into a tensor from outside of the loop, until all rows are done."""

    def __init__(self):
        super().__init__()
        self.table, self.head = nn.Embedding(8, 4), nn.Linear(4, 8)

    def forward(self, x: torch.Tensor) -> Tuple[torch.Tensor, int]:
        token = torch.full((x.size(0),), 1, dtype=torch.int64)
        written = torch.zeros(x.size(0), 10, dtype=torch.int64)
        done = torch.zeros(x.size(0), dtype=torch.bool)
        step = 0
        while step < 10 and not bool(done.all()):
            token = self.head(self.table(token) + x).argmax(1)
            written[:, step] = token
            done = done | (token == 2)
            step += 1
        return written, step


@model("decodes", tags=("joined",))
def decodes():
    return both_ways(Decodes())


class SetsState(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("calls", torch.zeros(()))
        self.register_buffer("held", torch.zeros(4))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        if bool(x.sum() > 0):
            self.calls = self.calls + 1
            if bool(x.max() > 1):
                self.held = x.sum(0)
        else:
            self.held = self.held * 2
        halvings = 0
        while bool(self.held.abs().sum() > 1.0):
            self.held = self.held * 0.5
            halvings += 1
        return x * self.calls + self.held + halvings


@model("state_set_on_one_way", tags=("joined",))
def state_set_on_one_way():
    return both_ways(SetsState())


class ChangesState(nn.Module):
    """In place: what was read before changes with it."""

    def __init__(self):
        super().__init__()
        self.register_buffer("sums", torch.zeros(4))
        self.register_buffer("decay", torch.ones(4))

    def forward(self, x: torch.Tensor) -> Tuple[torch.Tensor, torch.Tensor]:
        before = self.sums
        if bool(x.sum() > 0):
            self.sums += 1
            self.decay.mul_(0.5)
            if bool(x.max() > 1):
                self.sums.add_(x.sum(0))
        while bool(self.sums.sum() > 3):
            self.sums.mul_(0.5)
        return before * 1, self.decay * 1


@model("state_changed_on_one_way", tags=("joined",))
def state_changed_on_one_way():
    return both_ways(ChangesState())


class Appends(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        parts: List[torch.Tensor] = [x]
        if bool(x.sum() > 0):
            parts.append(x)
        else:
            parts.append(x * 3)
        return torch.stack(parts).sum(0)


@model("list_on_both_ways", tags=("joined",))
def list_on_both_ways():
    return both_ways(Appends())


class Shares(nn.Module):
    """One way hands its argument on, which changes in place afterwards: a program would change a copy of it."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = x if bool(x.sum() > 0) else x + 1
        y.add_(1)
        return x * 10 + y


@model("argument_handed_on", tags=("joined",))
def argument_handed_on():
    return both_ways(Shares())


class Remembers(nn.Module):
    """Answers with its state of before, swaps two, and keeps a third in a dict."""

    table: Dict[str, torch.Tensor]

    def __init__(self):
        super().__init__()
        self.register_buffer("first", torch.zeros(4))
        self.register_buffer("second", torch.ones(4))
        self.table = {"sums": torch.zeros(4)}

    def forward(self, x: torch.Tensor) -> Tuple[torch.Tensor, torch.Tensor]:
        before = self.first
        self.first = self.first + x.sum(0)
        swapped = self.first
        self.first = self.second
        self.second = swapped
        self.table["sums"].add_(x.sum(0))
        return before, self.second + self.table["sums"]


@model("state_of_before", tags=("joined",))
def state_of_before():
    return both_ways(Remembers())


class Refuses(nn.Module):
    """Raises an error of its own, which torch's converter leaves out of the program."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        if bool((x > 2.0).any()):
            raise ValueError("more than 2")
        return x + 1


@model("refuses_data", tags=("joined", "lost"))
def refuses_data():
    return Sample(Refuses(), example=(torch.ones(2, 4),), other=(torch.zeros(3, 4),))


class OneIsSpecial(nn.Module):
    """An export takes every open size for 2 or more, and programs check nothing of it."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        if x.size(0) == 1:
            return x * 100
        return x + 1


@model("one_is_special", tags=("joined", "lost"))
def one_is_special():
    return both_ways(OneIsSpecial())


class FewRows(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x * 2 if x.size(0) > 5 else x + 1


@model("few_rows", tags=("packaged",))
def few_rows():
    return both_ways(FewRows())


class Recurs(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.GRU(4, 5, num_layers=2, batch_first=True, bidirectional=True)

    def forward(self, x: torch.Tensor, lengths: torch.Tensor) -> Tuple[torch.Tensor, torch.Tensor]:
        every, last = self.layers(x)
        return every[:, -1], last + lengths.sum()


class RecursPacked(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.LSTM(4, 5, num_layers=2, batch_first=True)

    def forward(self, x: torch.Tensor, lengths: torch.Tensor) -> Tuple[torch.Tensor, torch.Tensor]:
        packed = nn.utils.rnn.pack_padded_sequence(x, lengths, batch_first=True, enforce_sorted=False)
        every, (_, cells) = self.layers(packed)
        padded, _ = nn.utils.rnn.pad_packed_sequence(every, batch_first=True)
        return padded, cells[-1]


class RecursPadded(RecursPacked):
    """Pads to the length of the request, which is more than that of its longest sequence."""

    def forward(self, x: torch.Tensor, lengths: torch.Tensor) -> Tuple[torch.Tensor, torch.Tensor]:
        packed = nn.utils.rnn.pack_padded_sequence(x, lengths, batch_first=True, enforce_sorted=False)
        every, (_, cells) = self.layers(packed)
        padded, _ = nn.utils.rnn.pad_packed_sequence(every, batch_first=True, total_length=x.size(1))
        return padded, cells[-1]


def of_lengths(module):
    torch.manual_seed(0)
    return Sample(
        module,
        example=(torch.randn(3, 5, 4), torch.tensor([5, 2, 4])),
        longer=(torch.randn(3, 9, 4), torch.tensor([1, 9, 3])),
        fewer=(torch.randn(2, 7, 4), torch.tensor([7, 7])),
    )


@model("recurs", tags=("recurrent",))
def recurs():
    return of_lengths(Recurs())


@model("recurs_packed", tags=("recurrent",))
def recurs_packed():
    return of_lengths(RecursPacked())


@model("recurs_padded", tags=("recurrent",))
def recurs_padded():
    """2.6.0 does not keep the check that the length is enough."""
    return of_lengths(RecursPadded())


class Spectrum(nn.Module):
    """2.6.0 has no shapes of a Fourier transform whose batch is open."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.fft.irfft(torch.fft.rfft(x) * 2, n=4) + torch.fft.fft(x).abs()


@model("spectrum", tags=("whole",))
def spectrum():
    return both_ways(Spectrum())


@model("encoder_traced", how="trace", tags=("whole",))
def encoder_traced():
    """A trace holds the layer as one operator, for which 2.6.0 has no shapes."""
    layer = nn.TransformerEncoderLayer(4, 2, 8, batch_first=True).eval()
    return Sample(layer, example=(torch.randn(2, 3, 4),), longer=(torch.randn(2, 5, 4),), more=(torch.randn(4, 3, 4),))
