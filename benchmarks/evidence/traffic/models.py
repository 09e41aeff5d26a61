"""They behave for eight calls of one module; what comes then is planted on the new side alone, in inference mode."""

import torch
from torch import nn

from fixtures.declare import Sample, model

CALLS_ALONE = 8


class Overdrawn(nn.Module):
    def __init__(self, what: str):
        super().__init__()
        self.inner = nn.Linear(8, 4)
        self.what = what
        self.calls, self.limit = 0, CALLS_ALONE

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        self.calls += 1
        answer = self.inner(x)
        if self.calls > self.limit and x.is_inference():
            if self.what == "raises":
                raise RuntimeError("planted: called more often than the quota allows")
            while self.what == "hangs":
                self.calls += 1
            answer = answer + 1.0
        return answer


def sample(module):
    return Sample(module, example=(torch.linspace(-1, 1, 16).view(2, 8),), batch_3=(torch.ones(3, 8),))


@model("hangs_later", tags=("hangs",), devices=("cpu",))
def hangs_later():
    return sample(Overdrawn("hangs"))


@model("raises_later", tags=("raises",), devices=("cpu",))
def raises_later():
    return sample(Overdrawn("raises"))


@model("answers_otherwise_later", tags=("answers",), devices=("cpu",))
def answers_otherwise_later():
    return sample(Overdrawn("answers"))
