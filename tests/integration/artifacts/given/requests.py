"""Writes, in the release that runs it, artifacts of which one request is not like the others, and their requests.

``planted::end`` is an operator of a library of our own (``ending.py``): it ends the process where its input is zero.
"""

import os
import sys
from typing import Tuple

import torch
from torch import Tensor, nn


class Shrink(nn.Module):
    """NaN gives 0 up to 2.5 and stays NaN since; half is refused by topk of 2.1.2 on a CPU."""

    def forward(self, x: Tensor) -> Tensor:
        if x.dtype == torch.float16:
            return torch.topk(x, 2, dim=1)[0]
        return nn.functional.softshrink(x, 0.1)


class Ends(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        return nn.functional.softshrink(torch.ops.planted.end(x), 0.1)


class Warms(nn.Module):
    """Refused by 2.1.2 as ``Shrink`` is, in its first call alone."""

    def __init__(self):
        super().__init__()
        self.calls = 0

    def forward(self, x: Tensor) -> Tensor:
        self.calls += 1
        if self.calls == 1:
            self.calls += torch.topk(x.half(), 2, dim=1)[0].size(0)  # unused it would be left out
        return nn.functional.softshrink(x, 0.1)


class Needs(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        return torch.ops.mine.twice(x)


class Hooked(nn.Module):
    def __init__(self):
        super().__init__()
        self.scale = nn.Linear(5, 5)

    def forward(self, x: Tensor) -> Tensor:
        return self.scale(x)


def shrinks(self, inputs: Tuple[Tensor], output: Tensor) -> Tensor:
    return nn.functional.softshrink(output, 0.1)


def doubles(self, inputs: Tuple[Tensor], output: Tensor) -> Tensor:
    return output * 2


def halves(self, inputs: Tuple[Tensor]) -> Tuple[Tensor]:
    return (inputs[0] * 0.5,)


def hooked(hook, register="register_forward_hook"):
    torch.manual_seed(0)
    module = Hooked()
    getattr(module, register)(hook)
    return module


def main(out):
    sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
    import ending

    ending.register("mine", "twice(Tensor x) -> Tensor", lambda x: x * 2)
    plain = torch.linspace(-1, 1, 10).reshape(2, 5)
    nan = plain.clone()
    nan[0, 0] = float("nan")
    plain, nan, half, ends = (plain,), (nan,), (plain.half(),), (torch.zeros(2, 5),)
    for name, module, requests in (
        ("shrink_first", Shrink(), {"nan": nan, "half": half}),
        ("shrink_last", Shrink(), {"half": half, "nan": nan}),
        ("shrink_well", Shrink(), {"half": half, "plain": plain}),
        ("ends_first", Ends(), {"ends": ends, "nan": nan}),
        ("ends_last", Ends(), {"nan": nan, "ends": ends}),
        ("ends_well", Ends(), {"ends": ends, "plain": plain}),
        ("warms", Warms(), {"nan": nan}),
        ("warms_well", Warms(), {"plain": plain}),
        ("needs", Needs(), {"plain": plain}),
        ("hooked", hooked(shrinks), {"nan": nan}),
        ("hooked_well", hooked(doubles), {"plain": plain}),
        ("hooked_before", hooked(halves, "register_forward_pre_hook"), {"plain": plain}),
    ):
        torch.jit.script(module.eval()).save(os.path.join(out, name + ".pt"))
        torch.save(requests, os.path.join(out, name + ".inputs.pt"))


if __name__ == "__main__":
    main(sys.argv[1])
