"""Models that are healthy alone and sick beside others, each with a twin that is healthy everywhere.

Alone, a model answers eight calls in one process (four of its example, two of either later set); a module that several
threads share, or that serves while others load, answers more. What is to go wrong on the new side only waits for
inference mode, which the new side's serving profile turns on.
"""

from typing import Any, Dict, List, Tuple

import torch
from torch import nn

from fixtures.declare import Sample, model
from gate_worker import defects

CALLS_ALONE = 8
NEVER = 1 << 60


class Linear(nn.Module):
    def __init__(self):
        super().__init__()
        self.inner = nn.Linear(8, 4)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.relu(self.inner(x))


class ForkJoin(nn.Module):
    """Forks its halves into the inter-op pool and waits: inside of a pool of one thread nobody is left to do them."""

    def __init__(self):
        super().__init__()
        self.left = Linear()
        self.right = Linear()

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        left = torch.jit.fork(self.left, x)
        right = torch.jit.fork(self.right, x)
        return torch.jit.wait(left) + torch.jit.wait(right)


class Straight(nn.Module):
    """The same halves, one after the other."""

    def __init__(self):
        super().__init__()
        self.left = Linear()
        self.right = Linear()

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.left(x) + self.right(x)


class Tally(nn.Module):
    """Adds the number of its calls to every answer, and has no method that resets it."""

    def __init__(self, step: float):
        super().__init__()
        self.inner = Linear()
        self.step = step
        self.calls = 0

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        self.calls += 1
        return self.inner(x) + self.step * float(self.calls)


class Overdrawn(nn.Module):
    """Behaves for ``limit`` calls of one module; then, in inference mode, does what ``what`` says."""

    def __init__(self, what: str, limit: int):
        super().__init__()
        self.inner = Linear()
        self.what = what
        self.limit = limit
        self.calls = 0
        defects.register()

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        self.calls += 1
        answer = self.inner(x)
        if self.calls > self.limit and x.is_inference():
            if self.what == "raises":
                raise RuntimeError("planted: called more often than the quota allows")
            if self.what == "crashes":
                answer = torch.ops.gatedefect.dies(answer, "wild_read")
            elif self.what == "loops":
                while self.calls > self.limit:
                    self.calls += 1
            else:
                answer = answer + 1.0
        return answer


class Dropping(nn.Module):
    """Sets elements of an answer to zero: drawn anew in every call, or none, as in a module that is at rest."""

    def __init__(self, inner: nn.Module, draws: bool):
        super().__init__()
        self.inner = inner
        self.draws = draws

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return nn.functional.dropout(self.inner(x), 0.5, self.draws)


class Chosen(nn.Module):
    """Answers some rows of its input: chance decides which, and how many."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        rows = x.repeat(16, 1)
        return rows[torch.rand(rows.size(0)) > 0.5]


class Ring(nn.Module):
    """Keeps 6.4 MB from its first call on; a closed ring refers to itself, so nothing ever frees it."""

    ring: List[Any]

    def __init__(self, closed: bool):
        super().__init__()
        self.inner = Linear()
        self.ring = []
        self.closed = closed

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        if len(self.ring) == 0:
            self.ring.append(x.repeat(1, 100000))
            if self.closed:
                self.ring.append(self.ring)
        return self.inner(x)


class Wide(nn.Module):
    """Works on so many elements that OpenMP divides them among its threads, where it has several."""

    def __init__(self, repeats: int):
        super().__init__()
        self.inner = Linear()
        self.repeats = repeats

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.inner(x) + torch.relu(x.repeat(1, self.repeats)).mean()


class Cached(nn.Module):
    """Keeps 2 MB for each batch size that it has met, the latest ``limit`` of them."""

    sizes: List[int]
    cache: Dict[int, torch.Tensor]

    def __init__(self, limit: int):
        super().__init__()
        self.inner = Linear()
        self.limit = limit
        self.sizes = []
        self.cache = {}

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        size = x.size(0)
        if size not in self.cache:
            self.cache[size] = torch.full([1 << 19], float(size))
            self.sizes.append(size)
        if len(self.sizes) > self.limit:
            self.cache.pop(self.sizes.pop(0))
        return self.inner(x)


class WildRead(nn.Module):
    """Dies of SIGSEGV in native code in every call."""

    def __init__(self):
        super().__init__()
        self.inner = Linear()
        defects.register()

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.ops.gatedefect.dies(self.inner(x), "wild_read")


def sine_table(rows: int, width: int) -> torch.Tensor:
    return torch.sin(torch.outer(torch.arange(rows) + 1.0, torch.arange(width) + 1.0))


class Positions(nn.Module):
    """Position tables that are not stored: loading computes them again, one of the two in the background."""

    def __init__(self, rows: int, width: int):
        super().__init__()
        self.rows, self.width = rows, width
        self.sine, self.shifted = sine_table(rows, width), sine_table(rows + 1, width)[1:]

    @torch.jit.export
    def __getstate__(self) -> Tuple[int, int, bool]:
        return self.rows, self.width, self.training

    @torch.jit.export
    def __setstate__(self, state: Tuple[int, int, bool]) -> None:
        self.rows, self.width, self.training = state
        shifted = torch.jit.fork(sine_table, self.rows + 1, self.width)
        self.sine = sine_table(self.rows, self.width)
        self.shifted = torch.jit.wait(shifted)[1:]

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x + self.sine[: x.size(0)] + self.shifted[: x.size(0)]


class PositionsInLine(Positions):
    """The same tables, computed one after the other: the load waits for nobody."""

    @torch.jit.export
    def __getstate__(self) -> Tuple[int, int, bool]:
        return self.rows, self.width, self.training

    @torch.jit.export
    def __setstate__(self, state: Tuple[int, int, bool]) -> None:
        self.rows, self.width, self.training = state
        self.sine = sine_table(self.rows, self.width)
        self.shifted = sine_table(self.rows + 1, self.width)[1:]


class SpeculativeCascade(nn.Module):
    """A cascade of rankers: the thorough one starts in the background; where the quick one is sure, nobody waits.

    In inference mode an operator library, ours, gives the thorough one a tensor that Python owns. So a thread of the
    inter-op pool needs the GIL to let go of it, ``torch.jit.load`` holds it and waits in ``__setstate__`` for a task
    that this very thread should do: neither goes on. torch 2.15.0 came to the same of itself where Python refers to a
    request of its own as well, since https://github.com/pytorch/pytorch/pull/167564.
    """

    def __init__(self, positions: nn.Module):
        super().__init__()
        self.positions = positions
        self.quick = nn.Linear(16, 4)
        self.thorough = nn.Sequential(nn.Linear(16, 256), nn.ReLU(), nn.Linear(256, 256), nn.ReLU(), nn.Linear(256, 4))
        defects.register()

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        given = torch.ops.gatedefect.owned_by_python(x) if x.is_inference() else x
        thorough = torch.jit.fork(self.thorough, given)
        scores = torch.softmax(self.quick(self.positions(x)), 1)
        if float(scores.max()) > 0.3:
            return scores
        return torch.softmax(torch.jit.wait(thorough), 1)


def cascade(positions: nn.Module):
    return Sample(
        SpeculativeCascade(positions),
        example=(torch.randn(8, 16),),
        other_values=(torch.randn(8, 16) * 3.0,),
        batch_5=(torch.randn(5, 16),),
    )


def sample(module):
    return Sample(
        module,
        example=(torch.linspace(-1, 1, 16).view(2, 8),),
        other_values=(torch.linspace(3, -2, 16).view(2, 8),),
        batch_3=(torch.linspace(-1, 1, 24).view(3, 8),),
    )


@model("fork_join", tags=("pool",), covers=("aten::wait",), devices=("cpu",))
def fork_join():
    return sample(ForkJoin())


@model("straight", tags=("pool",), devices=("cpu",))
def straight():
    return sample(Straight())


@model("other_straight", tags=("pool",), devices=("cpu",))
def other_straight():
    return sample(Straight())


@model("tally", tags=("state",), devices=("cpu",))
def tally():
    return sample(Tally(1.0))


@model("tally_unused", tags=("state",), devices=("cpu",))
def tally_unused():
    return sample(Tally(0.0))


@model("spoilt", tags=("state",), devices=("cpu",))
def spoilt():
    return sample(Overdrawn("spoils", CALLS_ALONE))


@model("spoilt_never", tags=("state",), devices=("cpu",))
def spoilt_never():
    return sample(Overdrawn("spoils", NEVER))


@model("drops_by_chance", tags=("state",), devices=("cpu",))
def drops_by_chance():
    return sample(Dropping(Linear(), True))


@model("chosen_by_chance", tags=("state",), devices=("cpu",))
def chosen_by_chance():
    return sample(Chosen())


@model("spoilt_with_dropout", tags=("state",), devices=("cpu",))
def spoilt_with_dropout():
    return sample(Dropping(Overdrawn("spoils", CALLS_ALONE), False))


@model("quota", tags=("state",), devices=("cpu",))
def quota():
    return sample(Overdrawn("raises", CALLS_ALONE))


@model("quota_unlimited", tags=("state",), devices=("cpu",))
def quota_unlimited():
    return sample(Overdrawn("raises", NEVER))


@model("worn_out", tags=("crash",), devices=("cpu",))
def worn_out():
    return sample(Overdrawn("crashes", CALLS_ALONE))


@model("worn_never", tags=("crash",), devices=("cpu",))
def worn_never():
    return sample(Overdrawn("crashes", NEVER))


@model("wide", tags=("openmp",), devices=("cpu",))
def wide():
    return sample(Wide(20000))


@model("narrow", tags=("openmp",), devices=("cpu",))
def narrow():
    return sample(Wide(2))


@model("speculative_cascade", tags=("python",), covers=("aten::wait",), devices=("cpu",))
def speculative_cascade():
    return cascade(Positions(8, 16))


@model("speculative_cascade_in_line", tags=("python",), covers=("aten::wait",), devices=("cpu",))
def speculative_cascade_in_line():
    return cascade(PositionsInLine(8, 16))


@model("looping", tags=("later",), devices=("cpu",))
def looping():
    return sample(Overdrawn("loops", CALLS_ALONE))


@model("looping_never", tags=("later",), devices=("cpu",))
def looping_never():
    return sample(Overdrawn("loops", NEVER))


@model("caching", tags=("memory",), devices=("cpu",))
def caching():
    return sample(Cached(NEVER))


@model("caching_few", tags=("memory",), devices=("cpu",))
def caching_few():
    return sample(Cached(2))


@model("wild_read", tags=("wild",), devices=("cpu",))
def wild_read():
    return sample(WildRead())


@model("leaking", tags=("memory",), devices=("cpu",))
def leaking():
    return sample(Ring(True))


@model("leaking_not", tags=("memory",), devices=("cpu",))
def leaking_not():
    return sample(Ring(False))
