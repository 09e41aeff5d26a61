# mypy: ignore-errors
"""Pairs of models that answer the same numbers, and differ in what stands beside them."""

from typing import Dict, List, Tuple

import torch
from fixtures.declare import Sample, model
from torch import Tensor


def with_inputs(module):
    return Sample(module, example=({"x": torch.arange(6.0).reshape(3, 2)}, [torch.ones(2)]))


class Careful(torch.nn.Module):
    def forward(self, table: Dict[str, Tensor], extra: List[Tensor]) -> Tuple[Tensor, Tensor]:
        return table["x"].clone(), extra[0] + 1


@model("careful")
def careful():
    return with_inputs(Careful())


class Views(torch.nn.Module):
    def forward(self, table: Dict[str, Tensor], extra: List[Tensor]) -> Tuple[Tensor, Tensor]:
        return table["x"].view(3, 2), extra[0] + 1


@model("views")
def views():
    return with_inputs(Views())


class InPlace(torch.nn.Module):
    def forward(self, table: Dict[str, Tensor], extra: List[Tensor]) -> Tuple[Tensor, Tensor]:
        first, second = table["x"].clone(), extra[0] + 1
        table["x"].mul_(2)
        extra[0].resize_(1)
        return first, second


@model("in_place")
def in_place():
    return with_inputs(InPlace())


class Detector(torch.nn.Module):
    def __init__(self, order: List[int]):
        super().__init__()
        self.register_buffer("order", torch.tensor(order))

    def forward(self, boxes: Tensor) -> List[Dict[str, Tensor]]:
        scores = torch.ones_like(boxes[:, 0]) / (1 + boxes[:, 1].round() / 10)
        return [{"boxes": boxes[self.order], "scores": scores[self.order], "labels": self.order % 2}]


def boxes():
    return torch.tensor([[0.0, 1.0], [5.0, 1.0], [2.0, 3.0], [4.0, 9.0]])


@model("detector", unordered=("output[*]",))
def detector():
    return Sample(Detector([0, 1, 2, 3]), example=(boxes(),))


@model("detector_with_ties_swapped", unordered=("output[*]",))
def detector_with_ties_swapped():
    return Sample(Detector([1, 0, 2, 3]), example=(boxes(),))


@model("detector_with_a_row_twice", unordered=("output[*]",))
def detector_with_a_row_twice():
    return Sample(Detector([1, 0, 2, 2]), example=(boxes(),))
