"""Writes a package of models that hang or die in a share of their processes, drawn beforehand for either release.

A model takes its next draw from a file that all processes share, when it is first called in a way that only the scenario
has. The new side of the tests runs in inference mode, by which a model knows its release.
"""

import random
import struct
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

DRAWS = 2000
# Threads that share a module may each take a draw before one of them has kept it.
FIRST = 2
HEAD = '''"""Written by tests/integration/checks/startup/concurrency/drawn.py."""

import torch
from torch import nn

from fixtures.declare import Sample, model
from gate_worker import defects

'''
BODY = '''

class Inner(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.relu(x)


class Drawn(nn.Module):
    """After ``limit`` calls of one module it takes a draw, and where that is 1 it does what ``what`` says.

    ``waits``: for a forked task, which takes for ever where the pool's only thread is the one that waits; ``crashes``.
    """

    def __init__(self, what: str, limit: int, draws: str):
        super().__init__()
        self.inner = Inner()
        self.what = what
        self.limit = limit
        self.draws = draws
        self.calls = 0
        self.drawn = -1
        self.kept = torch.zeros(1, dtype=torch.int32)  # what nobody keeps is not written
        defects.register()

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        self.calls += 1
        answer = torch.relu(x)
        if self.calls > self.limit:
            if self.drawn < 0:
                side = int(x.is_inference())
                kept = torch.from_file(self.draws, True, 2 * SIZE + 2, dtype=torch.int32)
                turn = int(kept[side].item())
                kept[side] += 1
                self.kept = kept
                self.drawn = int(kept[2 + side * SIZE + turn % SIZE].item())
            if self.drawn == 1:
                if self.what == "waits":
                    answer = torch.jit.wait(torch.jit.fork(self.inner, x))
                else:
                    answer = torch.ops.gatedefect.dies(answer, "wild_read")
        return answer


def sample(module):
    return Sample(module, example=(torch.linspace(-1, 1, 16).view(2, 8),))


@model("steady", devices=("cpu",))
def steady():
    return sample(Inner())
'''


@dataclass(frozen=True)
class DrawnModel:
    """A model that does ``what`` once it is called more than ``limit`` times, in so large a share of processes.

    ``first_in_old``: whether it does in the first process of the old release; None: as it is drawn.
    """

    name: str
    what: str
    limit: int
    old: float
    new: float
    first_in_old: bool | None = None


def write(folder: Path, models: Sequence[DrawnModel]) -> None:
    """Write a package with ``models`` and a healthy one, ``steady``; nothing happens before ``shuffle``."""
    folder.mkdir(parents=True)
    (folder / "__init__.py").write_text("")
    text = HEAD + BODY.replace("SIZE", str(DRAWS))
    for item in models:
        file = folder / f"{item.name}.draws"
        file.write_bytes(bytes(4 * (2 * DRAWS + 2)))
        made = f"sample(Drawn({item.what!r}, {item.limit}, {str(file)!r}))"
        text += f'\n\n@model("{item.name}", devices=("cpu",))\ndef {item.name}():\n    return {made}\n'
    (folder / "models.py").write_text(text)


def shuffle(folder: Path, model: DrawnModel) -> None:
    """Draw anew what the model does in each process; in the first one of the new release it fails if it ever does."""
    chance = random.Random(repr(model))
    draws = [[int(chance.random() < rate) for _ in range(DRAWS)] for rate in (model.old, model.new)]
    draws[1][:FIRST] = FIRST * [int(model.new > 0)]
    if model.first_in_old is not None:
        draws[0][:FIRST] = FIRST * [int(model.first_in_old)]
    (folder / f"{model.name}.draws").write_bytes(struct.pack(f"{2 * DRAWS + 2}i", 0, 0, *draws[0], *draws[1]))
