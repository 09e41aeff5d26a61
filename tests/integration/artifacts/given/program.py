"""Writes, in the release that runs it, a folder of artifacts as a platform team has them: files and some requests."""

import os
import sys
from typing import List, Optional

import torch
from torch import Tensor, nn


class Ranker(nn.Module):
    def __init__(self):
        super().__init__()
        self.table = nn.Embedding(50, 8)
        self.net = nn.Sequential(nn.Linear(12, 16), nn.ReLU(), nn.Linear(16, 1))

    def forward(self, dense: Tensor, ids: Tensor, bias: Optional[Tensor] = None) -> Tensor:
        scores = self.net(torch.cat([dense, self.table(ids)], dim=1))
        return scores if bias is None else scores + bias


class Codec(nn.Module):
    def __init__(self):
        super().__init__()
        self.narrow = nn.Linear(6, 3)
        self.wide = nn.Linear(3, 6)

    def forward(self, x: Tensor) -> Tensor:
        return self.decode([self.encode(x)])[0]

    @torch.jit.export
    def encode(self, x: Tensor) -> Tensor:
        return torch.tanh(self.narrow(x))

    @torch.jit.export
    def decode(self, codes: List[Tensor]) -> List[Tensor]:
        return [self.wide(code) for code in codes]


class Licensed(nn.Module):
    """Answers only to a key that nobody would guess."""

    def forward(self, x: Tensor, key: str) -> Tensor:
        if int(key.split("-")[1]) * 7919 % 10007 != 1234:
            raise RuntimeError("no such key")
        return x + 1


class OldOnly(nn.Module):
    """``is_ort`` left torch after 2.1, so no later release compiles the branch that nobody takes."""

    def forward(self, x: Tensor) -> Tensor:
        if x.is_ort:
            return x * 2
        return x


MANIFEST = """\
[[models]]
name = "codec"
path = "codec.pt"
tags = ["codecs"]
tolerance = 1e-4
requests = [
    { name = "narrow", method = "encode", arguments = [{ shape = [2, 6] }] },
    { name = "widen", method = "decode", arguments = [[{ shape = [2, 3] }, { shape = [1, 3] }]] },
]
"""


def write(folder):
    torch.manual_seed(0)
    os.makedirs(os.path.join(folder, "listed"))
    torch.jit.script(Codec().eval()).save(os.path.join(folder, "listed", "codec.pt"))
    with open(os.path.join(folder, "listed", "models.toml"), "w") as stream:
        stream.write(MANIFEST)
    files = os.path.join(folder, "files")
    os.makedirs(files)

    def path(name):
        return os.path.join(files, name)

    torch.jit.script(Ranker().eval()).save(path("ranker.pt"))
    ids = torch.arange(4)
    requests = {
        "example": (torch.randn(4, 4), ids),
        "with_bias": {"method": "forward", "arguments": (torch.randn(4, 4), ids, torch.ones(1))},
    }
    torch.save(requests, path("ranker.inputs.pt"))
    torch.jit.script(nn.Sequential(nn.Linear(16, 8), nn.GELU(), nn.Linear(8, 4)).eval()).save(path("guessed.pt"))
    torch.jit.script(Licensed().eval()).save(path("licensed.pt"))
    torch.jit.script(OldOnly().eval()).save(path("old_only.pt"))
    image = nn.Sequential(nn.Conv2d(3, 4, 3), nn.ReLU()).eval()
    torch.jit.optimize_for_inference(torch.jit.script(image)).save(path("optimized.pt"))
    with open(path("ranker.pt"), "rb") as stream:
        content = stream.read()
    with open(path("torn.pt"), "wb") as stream:
        stream.write(content[: len(content) // 2])
    torch.save(Ranker().state_dict(), path("weights.pt"))


if __name__ == "__main__":
    write(sys.argv[1])
