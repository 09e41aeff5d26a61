"""Healthy models that keep the interpreter busy: long loops, many nodes, deep modules, recurrent nets."""

from typing import List, Tuple

import torch
from torch import Tensor, nn

from fixtures.declare import Sample, model


class Sieve(nn.Module):
    """Counts primes with no tensor involved until the end."""

    def forward(self, x: Tensor, limit: int) -> Tensor:
        composite = [False for _ in range(limit)]
        found = 0
        for number in range(2, limit):
            if composite[number]:
                continue
            found += 1
            for multiple in range(number * number, limit, number):
                composite[multiple] = True
        return x + float(found)


@model("sieve", tags=("loops",), timed=False)
def sieve():
    return Sample(Sieve(), example=(torch.randn(4), 1500000), other_values=(torch.randn(4), 100000))


class Collatz(nn.Module):
    """How long it takes follows from values alone, and ``while True`` ends by ``break``."""

    def forward(self, starts: List[int]) -> List[int]:
        lengths: List[int] = []
        for start in starts:
            number, steps = start, 0
            while True:
                if number == 1:
                    break
                number = number // 2 if number % 2 == 0 else 3 * number + 1
                steps += 1
            lengths.append(steps)
        return lengths[::100]


@model("collatz", tags=("loops",), timed=False)
def collatz():
    return Sample(Collatz(), example=([*range(1, 12000)],), other_values=([837799, 626331, 511935],))


class Overflow(nn.Module):
    """A generator of random numbers that relies on integers of 64 bits to wrap around, as scalars and as tensors."""

    def forward(self, seed: int, many: Tensor) -> Tuple[int, Tensor]:
        for _ in range(2000000):
            seed = seed * 6364136223846793005 + 1442695040888963407
        for _ in range(20):
            many = many * 6364136223846793005 + 1442695040888963407
        return seed, many


@model("overflow", tags=("loops",), timed=False)
def overflow():
    return Sample(Overflow(), example=(42, torch.arange(100000)), other_values=(-7, torch.arange(100000) - 50000))


class ReadsElements(nn.Module):
    """Reads a tensor number by number, a conversion each time."""

    def forward(self, x: Tensor) -> Tensor:
        total = 0.0
        for index in range(x.size(0)):
            value = float(x[index].item())
            total = 0.999 * total + value
        return x + total


@model("reads_elements", tags=("loops",), timed=False)
def reads_elements():
    return Sample(ReadsElements(), example=(torch.rand(100000),), batch_7=(torch.rand(7000),))


class ElementwiseLoop(nn.Module):
    """A loop of elementwise operators, which fuses where fusion is on."""

    def forward(self, x: Tensor, steps: int) -> Tensor:
        for _ in range(steps):
            x = torch.tanh(x * 1.01 + 0.1) - torch.sigmoid(x)
        return x


@model("elementwise_loop", tags=("loops",), timed=False)
def elementwise_loop():
    return Sample(ElementwiseLoop(), example=(torch.randn(128, 128), 1000), other_values=(torch.randn(64, 128), 300))


class ManyNodes(nn.Module):
    """Some thousand nodes once it is traced: the first calls optimize them, the later ones are short."""

    def forward(self, x: Tensor) -> Tensor:
        for step in range(1000):
            x = torch.relu(x * 0.999 + 0.001 * (step % 7))
        return x


@model("many_nodes", how="trace", tags=("nodes",), timed=False)
def many_nodes():
    return Sample(ManyNodes(), example=(torch.randn(8, 16),), batch_7=(torch.randn(7, 16),))


class Branches(nn.Module):
    """Many branches in one graph, each taken by some input only."""

    def __init__(self):
        super().__init__()
        self.layers = nn.ModuleList([nn.Linear(32, 32) for _ in range(200)])

    def forward(self, x: Tensor) -> Tensor:
        for layer in self.layers:
            x = layer(x) if bool(x.mean() > 0) else torch.tanh(layer(-x))
        return x


@model("branches", tags=("nodes",), timed=False)
def branches():
    return Sample(Branches(), example=(torch.randn(8, 32),), other_values=(torch.randn(8, 32),))


class Level(nn.Module):
    def __init__(self, depth: int):
        super().__init__()
        self.linear = nn.Linear(64, 64)
        self.inner = Level(depth - 1) if depth > 0 else nn.Identity()

    def forward(self, x: Tensor) -> Tensor:
        return x + 0.5 * torch.tanh(self.linear(self.inner(x)))


@model("deep_modules", tags=("nodes",), timed=False)
def deep_modules():
    return Sample(Level(45), example=(torch.randn(4096, 64),), batch_7=(torch.randn(7, 64),))


class ManyShapes(nn.Module):
    """Every input set has other sizes, so that each is compiled for anew."""

    def __init__(self):
        super().__init__()
        self.layers = nn.Sequential(*(nn.Sequential(nn.Linear(48, 48), nn.GELU()) for _ in range(60)))

    def forward(self, x: Tensor) -> Tensor:
        return self.layers(x)


@model("many_shapes", tags=("nodes",), timed=False)
def many_shapes():
    sizes = ((300, 48), (7, 48), (2, 5, 48), (1, 2, 3, 48), (0, 48), (48,))
    return Sample(ManyShapes(), **{"size_{}".format(i): (torch.randn(size),) for i, size in enumerate(sizes)})


class CellByCell(nn.Module):
    def __init__(self):
        super().__init__()
        self.cell = nn.LSTMCell(32, 64)

    def forward(self, x: Tensor) -> Tensor:
        hidden = torch.zeros(x.size(1), 64, dtype=x.dtype, device=x.device)
        state = (hidden, hidden)
        answers: List[Tensor] = []
        for step in range(x.size(0)):
            state = self.cell(x[step], state)
            answers.append(state[0])
        return torch.stack(answers)


@model("cell_by_cell", tags=("recurrent",), timed=False)
def cell_by_cell():
    return Sample(CellByCell(), example=(torch.randn(2500, 2, 32),), batch_7=(torch.randn(100, 7, 32),))


class LongSequence(nn.Module):
    def __init__(self):
        super().__init__()
        self.lstm = nn.LSTM(32, 64, num_layers=2, bidirectional=True)

    def forward(self, x: Tensor) -> Tensor:
        return self.lstm(x)[0]


@model("long_sequence", tags=("recurrent",), timed=False)
def long_sequence():
    return Sample(LongSequence(), example=(torch.randn(4000, 2, 32),), batch_7=(torch.randn(60, 7, 32),))


class Decoder(nn.Module):
    """Greedy decoding: each step reads all steps before it and grows a list."""

    def __init__(self):
        super().__init__()
        self.embedding = nn.Embedding(100, 32)
        self.head = nn.Linear(32, 100)

    def forward(self, first: int, steps: int) -> List[int]:
        tokens = [first]
        for _ in range(steps):
            history = self.embedding(torch.tensor(tokens))
            tokens.append(int(self.head(history.mean(0)).argmax().item()))
        return tokens


@model("decoder", tags=("recurrent",), devices=("cpu",), timed=False)
def decoder():
    return Sample(Decoder(), example=(3, 2500), other_values=(5, 300))


class RunningMean(nn.Module):
    """Keeps state, changed in place by every one of many steps."""

    def __init__(self):
        super().__init__()
        self.register_buffer("mean", torch.zeros(256))
        self.steps = 0

    def forward(self, x: Tensor) -> Tuple[Tensor, int]:
        for row in range(x.size(0)):
            self.mean.mul_(0.99).add_(x[row], alpha=0.01)
            self.steps += 1
        return self.mean.clone(), self.steps

    @torch.jit.export
    def reset(self) -> None:
        self.mean.zero_()
        self.steps = 0


@model("running_mean", tags=("recurrent",), reset="reset", timed=False)
def running_mean():
    return Sample(RunningMean(), example=(torch.randn(15000, 256),), batch_7=(torch.randn(7, 256),))
