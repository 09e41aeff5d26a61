"""In an environment under test: write mobile flatbuffers of several kinds. ``ENV_PYTHON flatbuffers.py FOLDER``."""

import enum
import os
import sys
from typing import Dict, List

import torch
from torch import Tensor

library = torch.library.Library("gatetest", "DEF")
library.define("twice(Tensor x) -> Tensor")
library.impl("twice", lambda x: x * 2, "CPU")


class Color(enum.Enum):
    RED = 1
    BLUE = 2


class Plain(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.layers = torch.nn.ModuleList([torch.nn.Linear(4, 4), torch.nn.ReLU()])
        self.named: Dict[str, Tensor] = {"a": torch.ones(2)}
        self.sizes: List[int] = [1, 2]
        self.register_buffer("halves", torch.ones(3, dtype=torch.float16))
        self.register_buffer("middle", torch.ones(8)[2:5])
        self.register_buffer("quanta", torch.quantize_per_tensor(torch.ones(4), 0.1, 0, torch.quint8))

    def forward(self, x: Tensor) -> Tensor:
        for layer in self.layers:
            x = layer(x)
        return x * self.sizes[0] + self.named["a"][0] + torch.tensor([1.0, 2.0])[0] + self.halves.sum()

    @torch.jit.export
    def other(self, x: Tensor) -> Tensor:
        return torch.nn.functional.softshrink(x, 0.1) if x.dim() > self.sizes[1] else x


class Custom(torch.nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        return torch.ops.gatetest.twice(x)


class OfEnum(torch.nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        color = Color.RED if x.dim() > 1 else Color.BLUE
        return x * 2 if color == Color.RED else x


class Packed(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("values", torch.ones(3).to(torch.float8_e5m2))

    def forward(self, x: Tensor) -> Tensor:
        return x + self.values.float()


class Word(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.parts = torch.nn.Sequential()
        self.parts.add_module("in", torch.nn.ReLU())

    def forward(self, x: Tensor) -> Tensor:
        return self.parts(x)


class Escaped(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        for name in (r"a\n", r"\101", "it's"):
            self.register_buffer(name, torch.ones(2))

    def forward(self, x: Tensor) -> Tensor:
        return x + len('a"b\\')


class NotEscaped(Escaped):
    def __init__(self) -> None:
        super().__init__()
        self.register_buffer(r"a\d", torch.ones(2))


class Recent(torch.nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        return torch.rms_norm(x, [4])


for module in (
    Plain,
    Custom,
    OfEnum,
    Packed,
    Word,
    Escaped,
    NotEscaped,
    *([Recent] if hasattr(torch, "rms_norm") else []),
):
    path = os.path.join(sys.argv[1], f"{module.__name__}.ptl")
    torch.jit.script(module().eval())._save_for_lite_interpreter(path, _use_flatbuffer=True)
os._exit(0)
