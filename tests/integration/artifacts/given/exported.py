"""Writes a net as a .pt2 with its own example, by position and by name, and with requests beside it."""

import sys
from pathlib import Path

import torch


class Ranker(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.first = torch.nn.Linear(8, 4)

    def forward(self, x: torch.Tensor, scale: torch.Tensor) -> torch.Tensor:
        return torch.relu(self.first(x)) * scale


def main(out: Path) -> None:
    torch.manual_seed(0)
    example = (torch.randn(3, 8), torch.ones(1))
    net = Ranker().eval()
    program = torch.export.export(net, example)
    torch.export.save(program, out / "ranker.pt2")
    torch.export.save(program, out / "asked.pt2")
    named = torch.export.export(net, example[:1], {"scale": example[1]})
    torch.export.save(named, out / "named.pt2")
    torch.save({"monday": (torch.full((3, 8), 0.5), torch.ones(1) * 2)}, out / "asked.inputs.pt")


main(Path(sys.argv[1]))
