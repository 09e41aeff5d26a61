"""Write a synthetic store: FOLDER COUNT MISSING CHANGED HANGS CRASHES, the last four counts of planted artifacts.

Three fifths of the artifacts are of a tenth as many programs with weights of their own, a fifth are files of others under
another name, a fifth are programs of their own. The first ones are planted, in the order of the arguments: an operator
that the new release does not have, one that answers otherwise there, a call that hangs and one that dies there. Run with
the old release.
"""

import os
import shutil
import sys

import torch

TEAMS = 12


class Net(torch.nn.Module):
    def __init__(self, hidden: int):
        super().__init__()
        self.a, self.b = torch.nn.Linear(6, hidden), torch.nn.Linear(hidden, 6)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.relu(self.b(torch.relu(self.a(x))))


class Missing(torch.nn.Module):
    """``prim::is_ort`` is gone in 2.6.0."""

    def __init__(self):
        super().__init__()
        self.a = torch.nn.Linear(6, 6)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        if x.is_ort:
            return x
        return self.a(x)


class Changed(torch.nn.Module):
    """Bicubic interpolation of bytes rounds otherwise in 2.6.0."""

    def __init__(self):
        super().__init__()
        self.a = torch.nn.Linear(6, 6)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        image = (self.a(x).sigmoid() * 255).to(torch.uint8)[None, None]
        return torch.nn.functional.interpolate(image, scale_factor=2.0, mode="bicubic")


class Hangs(torch.nn.Module):
    """``softshrink`` keeps a NaN since 2.5, where it returned 0: the loop never ends there."""

    def __init__(self):
        super().__init__()
        self.a = torch.nn.Linear(6, 6)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        rest = torch.nn.functional.softshrink(self.a(x) * float("nan"), 0.3)
        while bool(torch.isnan(rest).any()):
            rest = rest + 1.0
        return self.a(x) + rest


LIBRARY = torch.library.Library("gatedefect", "DEF")
LIBRARY.define("dies(Tensor x, str how) -> Tensor")  # the gate's workers have it (harness/worker/defects.py)


class Crashes(torch.nn.Module):
    """Calls an operator that reads where nothing is, where ``softshrink`` keeps a NaN."""

    def __init__(self):
        super().__init__()
        self.a = torch.nn.Linear(6, 6)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        rest = torch.nn.functional.softshrink(self.a(x) * float("nan"), 0.3)
        if bool(torch.isnan(rest).any()):
            return torch.ops.gatedefect.dies(x, "wild_read")
        return self.a(x) + rest


PLANTED = (Missing, Changed, Hangs, Crashes)


def path_of(folder: str, number: int) -> str:
    """Return where an artifact lies."""
    return os.path.join(folder, f"team_{number % TEAMS:02}", f"model_{number:04}.pt")


def main(folder: str, count: int, *planted: int) -> None:
    """Write the store."""
    made = [kind for kind, many in zip(PLANTED, planted) for _ in range(many)]
    copies = alone = count // 5
    programs = max((count - copies - alone) // 10, 1)
    shared = count - copies - alone
    scripted = {}
    for team in range(TEAMS):
        os.makedirs(os.path.join(folder, f"team_{team:02}"), exist_ok=True)
    for number in range(count):
        path = path_of(folder, number)
        if shared + alone <= number:
            shutil.copy(path_of(folder, len(made) + (number - shared - alone) % (shared + alone - len(made))), path)
            continue
        torch.manual_seed(number)
        kind = made[number] if number < len(made) else Net
        what = (kind,) if kind is not Net else (Net, 8 + number % programs if number < shared else 1000 + number)
        if what not in scripted:
            scripted[what] = torch.jit.script(kind(*what[1:]))
        net = scripted[what]
        for layer in (net.a, getattr(net, "b", net.a)):
            layer.reset_parameters() if hasattr(layer, "reset_parameters") else None
            for weights in layer.parameters():
                torch.nn.init.normal_(weights, std=0.5)
        net.save(path)
        if number >= shared:
            del scripted[what]


if __name__ == "__main__":
    main(sys.argv[1], *map(int, sys.argv[2:]))
