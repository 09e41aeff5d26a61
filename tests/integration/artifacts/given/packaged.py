"""Writes packages of AOTInductor: one of two positional tensors, one with nested and keyword arguments."""

import sys
from pathlib import Path

import torch


class Scorer(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.table = torch.nn.Parameter(torch.randn(300, 4))

    def forward(self, ids: torch.Tensor, dense: torch.Tensor) -> torch.Tensor:
        return self.table[ids] * dense


class Nested(torch.nn.Module):
    def forward(
        self, x: torch.Tensor, more: dict[str, tuple[torch.Tensor, torch.Tensor]], *, scale: torch.Tensor
    ) -> torch.Tensor:
        first, second = more["pair"]
        return x * scale + first - 2 * second


def main(out: Path) -> None:
    torch.manual_seed(0)
    x = torch.randn(2, 4)
    made = {
        "scorer": torch.export.export(Scorer().eval(), (torch.tensor([3, 4]), x)),
        "nested": torch.export.export(Nested().eval(), (x, {"pair": (x, x)}), {"scale": torch.ones(1)}),
    }
    for name, program in made.items():
        torch._inductor.aoti_compile_and_package(program, package_path=str(out / f"{name}.pt2"))
    torch.export.save(made["nested"], out / "nested_program.pt2")


main(Path(sys.argv[1]))
