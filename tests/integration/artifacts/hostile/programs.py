# mypy: ignore-errors
"""Writes a .pt2 that starts a daemon and writes wherever it is told to as it is loaded, and its healthy twin.

programs.py OUT PATHS_JSON        with an interpreter that has torch; needs nothing of ours
"""

import json
import sys
import zipfile
from pathlib import Path

import torch

CONSTANTS = "constants.pt"
# Everything that it does can be seen in its own HOME; the daemon ends by itself.
DOES = """
import os, time
def wrote(path):
    try:
        with open(path, "a") as stream:
            stream.write("planted")
        return True
    except OSError:
        return False
home, temporary = os.environ["HOME"], os.environ["TMPDIR"]
for path in {paths}:
    wrote(path)
wrote(os.path.join(temporary, "temporary"))
if os.fork() == 0:
    os.setsid()
    if os.fork() == 0:
        with open(os.path.join(home, "daemon"), "w") as stream:
            stream.write(str(os.getpid()))
        time.sleep(300)
    os._exit(0)
while not os.path.exists(os.path.join(home, "daemon")):
    time.sleep(0.01)
"""


class Planted:
    """Is the constants of a program, of which there are none, once it has done what it does."""

    def __init__(self, code: str) -> None:
        self._code = code

    def __reduce__(self) -> tuple[object, tuple[str]]:
        return eval, (f"exec({self._code!r}, {{}}) or {{}}",)  # noqa: S307


class Healthy(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.weight = torch.nn.Parameter(torch.ones(3))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x * self.weight


def main(out: Path, paths: list[str]) -> None:
    twin = out / "healthy.pt2"
    torch.export.save(torch.export.export(Healthy().eval(), (torch.ones(2, 3),)), twin)
    torch.save(Planted(DOES.replace("{paths}", repr(paths))), out / CONSTANTS)
    with zipfile.ZipFile(twin) as good, zipfile.ZipFile(out / "planted.pt2", "w") as bad:
        for name in good.namelist():
            content = (out / CONSTANTS).read_bytes() if name.endswith(f"_{CONSTANTS}") else good.read(name)
            bad.writestr(name, content)


main(Path(sys.argv[1]), json.loads(sys.argv[2]))
