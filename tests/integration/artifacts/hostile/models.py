# mypy: ignore-errors
"""Models that do harm when they are loaded or called, and a healthy twin of them; a piece of memory is 64 MiB."""

from typing import List, Tuple

import torch
from fixtures.declare import Sample, model
from torch import nn

ROWS = torch.ones(2, 3)


class Healthy(nn.Module):
    """Has a ``__setstate__`` that ends."""

    weight: torch.Tensor

    def __init__(self):
        super().__init__()
        self.weight = torch.ones(3)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x * self.weight

    @torch.jit.export
    def __getstate__(self) -> Tuple[torch.Tensor, bool]:
        return self.weight, self.training

    @torch.jit.export
    def __setstate__(self, state: Tuple[torch.Tensor, bool]):
        self.weight = state[0]
        self.training = state[1]


@model("healthy")
def healthy():
    return Sample(Healthy(), example=(ROWS,))


class HangsAtLoad(Healthy):
    @torch.jit.export
    def __setstate__(self, state: Tuple[torch.Tensor, bool]):
        self.weight = state[0]
        self.training = state[1]
        turns = 0
        while turns >= 0:
            turns = (turns + 1) % 1000


@model("hangs_at_load")
def hangs_at_load():
    return Sample(HangsAtLoad(), example=(ROWS,))


class EatsAtLoad(Healthy):
    @torch.jit.export
    def __setstate__(self, state: Tuple[torch.Tensor, bool]):
        self.weight = state[0]
        self.training = state[1]
        kept: List[torch.Tensor] = []
        while len(kept) >= 0:
            kept.append(torch.empty([16777216 + len(kept)]))


@model("eats_at_load")
def eats_at_load():
    return Sample(EatsAtLoad(), example=(ROWS,))


class EatsWhenCalled(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        kept: List[torch.Tensor] = []
        while len(kept) >= 0:
            kept.append(torch.empty([16777216 + len(kept)]))
        return x


@model("eats_when_called")
def eats_when_called():
    return Sample(EatsWhenCalled(), example=(ROWS,))


class Computes(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        turns = 0
        while turns >= 0:
            turns = (turns + 1) % 1000
        return x


@model("computes_for_ever")
def computes_for_ever():
    return Sample(Computes(), example=(ROWS,))


class WritesByABareName(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        there = torch.from_file("events.jsonl", True, 100000, dtype=torch.uint8)
        there.fill_(91)
        return x * there[0]


@model("writes_by_a_bare_name")
def writes_by_a_bare_name():
    return Sample(WritesByABareName(), example=(ROWS,))


class AnswersMuch(nn.Module):
    def forward(self, x: torch.Tensor) -> List[int]:
        answer: List[int] = []
        for turn in range(200001):
            answer.append(turn)
        return answer


@model("answers_much")
def answers_much():
    return Sample(AnswersMuch(), example=(ROWS,))


class AnswersALongText(nn.Module):
    def forward(self, x: torch.Tensor) -> str:
        answer = "a"
        for _ in range(23):
            answer = answer + answer
        return answer


@model("answers_a_long_text")
def answers_a_long_text():
    return Sample(AnswersALongText(), example=(ROWS,))


class WritesToAnyPath(nn.Module):
    def forward(self, x: torch.Tensor, path: str) -> torch.Tensor:
        torch.save(x, path)
        return x


@model("writes_to_any_path")
def writes_to_any_path():
    return Sample(WritesToAnyPath(), example=(ROWS, "a-file"))
