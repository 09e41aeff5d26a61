"""Writes a package of many models, a share of which hang or die on the new side only (in inference mode)."""

from collections.abc import Mapping
from pathlib import Path

from harness.core.outcome import Outcome

# How each kind of model is declared, and what becomes of it alone on the new side.
KINDS: Mapping[str, tuple[str, Outcome]] = {
    "healthy": ("sample(Linear())", Outcome.COMPLETED),
    "spins": ("sample(Spins())", Outcome.HANG),
    "spins_in_load": ("sample(SpinsInLoad())", Outcome.HANG),
    "fuses": ("Sample(BusyIfFused(ENDLESS), example=(torch.randn(13),))", Outcome.HANG),
    "crashes": ('sample(Overdrawn("crashes", 0))', Outcome.CRASH),
    "raises": ('sample(Overdrawn("raises", 0))', Outcome.RUNTIME_ERROR),
    "wears_out": ('sample(Overdrawn("crashes", CALLS_ALONE))', Outcome.COMPLETED),
}

_HEAD = '''"""Written by tests/integration/checks/startup/concurrency/storm.py."""

from typing import Any, Dict, List, Tuple

import torch
from torch import nn

from fixtures.declare import Sample, model
from fixtures.planted.fused import ENDLESS, BusyIfFused

'''

_MORE = '''
class Spins(nn.Module):
    """Never returns in inference mode."""

    def __init__(self):
        super().__init__()
        self.inner = Linear()
        self.turns = 0

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        while x.is_inference():
            self.turns += 1
        return self.inner(x)


class Latch(nn.Module):
    """State whose restoring never ends in inference mode."""

    def __init__(self):
        super().__init__()
        self.turns = 0

    @torch.jit.export
    def __getstate__(self) -> Tuple[int, bool]:
        return self.turns, self.training

    @torch.jit.export
    def __setstate__(self, state: Tuple[int, bool]) -> None:
        self.training = state[1]
        self.turns = state[0]
        while torch.ones(1).is_inference():
            self.turns += 1

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x


class SpinsInLoad(nn.Module):
    def __init__(self):
        super().__init__()
        self.inner = Linear()
        self.latch = Latch()

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.latch(self.inner(x))


'''


def write(folder: Path, counts: Mapping[str, int], *, groups: int = 1) -> dict[str, Outcome]:
    """Write a package with ``counts`` models of each kind into ``groups`` server groups.

    Returns:
        model -> what must become of it alone on the new side.
    """
    here = Path(__file__).parent
    text = _HEAD + _body(here / "models.py") + _MORE
    expected = {}
    for kind, count in counts.items():
        made, outcome = KINDS[kind]
        for index in range(count):
            name = f"{kind}_{index:02}"
            expected[name] = outcome
            group = f"group_{len(expected) % groups}"
            declared = f'@model("{name}", tags=("{group}",), seed={len(expected)}, devices=("cpu",))'
            text += f"\n\n{declared}\ndef {name}():\n    return {made}\n"
    folder.mkdir(parents=True)
    (folder / "__init__.py").write_text("")
    (folder / "models.py").write_text(text)
    return expected


def _body(path: Path) -> str:
    """Return the classes and functions of a package's models, without its imports and without its models."""
    _, _, text = path.read_text().partition("import Sample, model\n")
    body, _, _ = text.partition("\n@model(")
    return body
