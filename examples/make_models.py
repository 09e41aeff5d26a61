"""Writes the six artifacts of ``models/``; run it with the Python of a torch 2.1.2 environment, in this folder.

Small enough for git; each stands for something that an upgrade to 2.6.0 meets. The answers of the README's first
command come from these files; ``tests/integration/test_examples.py`` asks for them again.
"""

from pathlib import Path

import torch
import torch.nn.functional as F
from torch import Tensor, nn


class Ranker(nn.Module):
    """Healthy: scores rows of 16 features."""

    def __init__(self) -> None:
        super().__init__()
        self.layers = nn.Sequential(nn.Linear(16, 32), nn.ReLU(), nn.Linear(32, 1))

    def forward(self, x: Tensor) -> Tensor:
        return torch.sigmoid(self.layers(x))


class TwoTower(nn.Module):
    """Two inputs: item ids int64 [batch, ids] and user features float32 [batch, 8]."""

    def __init__(self) -> None:
        super().__init__()
        self.items = nn.Embedding(200, 8)
        self.user = nn.Linear(8, 8)

    def forward(self, ids: Tensor, user: Tensor) -> Tensor:
        return torch.bmm(self.items(ids), self.user(user).unsqueeze(-1)).squeeze(-1)


class Intent(nn.Module):
    """A classifier whose linear layers are quantized to int8."""

    def __init__(self) -> None:
        super().__init__()
        self.hidden = nn.Linear(16, 32)
        self.output = nn.Linear(32, 4)

    def forward(self, x: Tensor) -> Tensor:
        return torch.softmax(self.output(F.relu(self.hidden(x))), dim=-1)


class Thumbnails(nn.Module):
    """Enlarges uint8 images. torch 2.1 was wrong along the border (https://github.com/pytorch/pytorch/pull/118389)."""

    def forward(self, image: Tensor) -> Tensor:
        enlarged = F.interpolate(image, size=[20, 16], mode="bicubic", align_corners=False)
        return (enlarged.to(torch.float32) / 255.0 - 0.45) / 0.225


class Projection(nn.Module):
    """Asks for a device that was renamed (https://github.com/pytorch/pytorch/pull/123265): its operator is gone."""

    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Linear(8, 4)

    def forward(self, x: Tensor) -> Tensor:
        if x.is_cuda or x.is_ort:
            x = x.half().float()
        return torch.relu(self.layer(x))


class Unpacked(nn.Module):
    """Makes its weight anew when it is loaded, as packed formats do: loading takes about a second."""

    def __init__(self) -> None:
        super().__init__()
        self.weight = torch.randn(48, 48) / 7.0
        self.rounds = 20_000

    @torch.jit.export
    def __getstate__(self) -> tuple[Tensor, int, bool]:
        return self.weight, self.rounds, self.training

    @torch.jit.export
    def __setstate__(self, state: tuple[Tensor, int, bool]) -> None:
        work = state[0]
        for _ in range(state[1]):
            work = torch.tanh(work @ state[0])
        self.weight = torch.where(torch.isnan(work[0, 0]), work, state[0])
        self.rounds = state[1]
        self.training = state[2]

    def forward(self, x: Tensor) -> Tensor:
        return torch.tanh(F.linear(x, self.weight))


def main() -> None:
    torch.manual_seed(0)
    models = {
        "ranker": Ranker(),
        "two_tower": TwoTower(),
        "intent_int8": torch.ao.quantization.quantize_dynamic(Intent().eval(), {nn.Linear}),
        "thumbnails": Thumbnails(),
        "projection": Projection(),
        "unpacked": Unpacked(),
    }
    for name, module in models.items():
        torch.jit.script(module.eval()).save(str(Path(__file__).parent / "models" / f"{name}.pt"))


if __name__ == "__main__":
    main()
