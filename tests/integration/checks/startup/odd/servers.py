"""Healthy models that are odd to load or to serve: tasks, prints, warnings, and loads that take a while."""

import warnings
from typing import Dict, List, Tuple

import torch
from torch import Tensor, nn

from fixtures.declare import Sample, model


class ManyTasks(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(64, 64)

    def work(self, x: Tensor) -> Tensor:
        for _ in range(8):
            x = torch.tanh(self.layer(x))
        return x

    def forward(self, x: Tensor) -> Tensor:
        tasks: List[torch.jit.Future[Tensor]] = []
        for _ in range(600):
            tasks.append(torch.jit.fork(self.work, x))
        total = torch.zeros_like(x)
        for task in tasks:
            total = total + torch.jit.wait(task)
        return total


@model("many_tasks", tags=("tasks",), covers=("prim::fork",), timed=False)
def many_tasks():
    return Sample(ManyTasks(), example=(torch.randn(16, 64),), batch_7=(torch.randn(7, 64),))


class LongTasks(nn.Module):
    """A few tasks of which the caller waits for the longest first."""

    def work(self, x: Tensor, steps: int) -> Tensor:
        for _ in range(steps):
            x = torch.tanh(x @ x * 0.05)
        return x

    def forward(self, x: Tensor) -> Tuple[Tensor, Tensor, Tensor]:
        long = torch.jit.fork(self.work, x, 600)
        middle = torch.jit.fork(self.work, x, 200)
        short = torch.jit.fork(self.work, x, 20)
        return torch.jit.wait(long), torch.jit.wait(middle), torch.jit.wait(short)


@model("long_tasks", tags=("tasks",), timed=False)
def long_tasks():
    return Sample(LongTasks(), example=(torch.randn(128, 128),), other_values=(torch.randn(32, 32),))


class Prints(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        for row in range(x.size(0)):
            print("row", row, x[row])
        return x.sum(0)


@model("prints", tags=("noise",), timed=False)
def prints():
    return Sample(Prints(), example=(torch.randn(4000, 64),), batch_7=(torch.randn(7, 64),))


class Warns(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        for _ in range(8000):
            if bool(x.sum() > -1e9):
                warnings.warn("an odd row")
            x = x * 0.9999
        return x


@model("warns", tags=("noise",), timed=False)
def warns():
    return Sample(Warns(), example=(torch.randn(16, 16),), batch_7=(torch.randn(7, 16),))


class Vocabulary(nn.Module):
    """Its archive holds a hundred thousand pickled texts and numbers: the load takes longer than a call."""

    words: Dict[str, int]
    weights: List[float]

    def __init__(self):
        super().__init__()
        self.words = {"word number {}".format(number): number for number in range(60000)}
        self.weights = [0.5 / (1 + number) for number in range(200000)]

    def forward(self, texts: List[str]) -> List[float]:
        found: List[float] = []
        for text in texts:
            for word in text.split(","):
                found.append(self.weights[self.words.get(word, 0)])
        return found[::1000]


@model("vocabulary", tags=("loads",), timed=False)
def vocabulary():
    texts = ["word number {},nothing".format(number) for number in range(40000)]
    return Sample(Vocabulary(), example=(texts,), other_values=(texts[:700],))


class ManyParameters(nn.Module):
    """An archive of a thousand small tensors."""

    def __init__(self):
        super().__init__()
        self.layers = nn.ModuleList([nn.Linear(24, 24) for _ in range(400)])

    def forward(self, x: Tensor) -> Tensor:
        for layer in self.layers:
            x = x + 0.1 * torch.tanh(layer(x))
        return x


@model("many_parameters", tags=("loads",), timed=False)
def many_parameters():
    return Sample(ManyParameters(), example=(torch.randn(64, 24),), batch_7=(torch.randn(7, 24),))


class Restores(nn.Module):
    """Computes its table anew whenever it is loaded."""

    def __init__(self):
        super().__init__()
        self.turns = 3000
        self.table = torch.zeros(96, 96)

    @torch.jit.export
    def __getstate__(self) -> Tuple[int, bool]:
        return self.turns, self.training

    @torch.jit.export
    def __setstate__(self, state: Tuple[int, bool]) -> None:
        self.turns = state[0]
        self.training = state[1]
        table = torch.eye(96) * 0.5
        for _ in range(self.turns):
            table = torch.tanh(table @ table + 0.01)
        self.table = table

    def forward(self, x: Tensor) -> Tensor:
        for _ in range(1200):
            x = torch.tanh(x @ self.table.to(x.dtype) * 0.1)
        return x


@model("restores", tags=("loads",), devices=("cpu",), timed=False)
def restores():
    return Sample(Restores(), example=(torch.randn(64, 96),), batch_7=(torch.randn(7, 96),))
