#!/usr/bin/env bash
# torch._export.converter.TS2EPConverter: `if <something of the data>: raise ...` in a scripted module is left out of the
# exported program, without a word. The module refuses such data and the program answers. An error that a size raises is kept.
#
# Seen with torch==2.15.0 and torch==2.6.0 from PyPI, Linux x86-64, CPython 3.11, CPU:
#     data: module raises, program answers / size: module raises, program raises
# Needs: uv, Python 3.11, a package index, 10 GB of disk. Fails if any of this changes.
set -euo pipefail
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cat > "$work/module.py" <<'PY'
import torch
class OfData(torch.nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        if int(x.max().item()) > 3:
            raise ValueError("more than 3")
        return x + 1
class OfSize(torch.nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        if x.size(0) > 8:
            raise ValueError("more than 8 rows")
        return x + 1
PY
cat > "$work/converts.py" <<'PY'
import torch
from torch._export.converter import TS2EPConverter
from module import OfData, OfSize
def outcome(call, x):
    try:
        call(x)
        return "answers"
    except Exception:
        return "raises"
good = torch.zeros(4, 3)
for name, module, bad in (("data", OfData(), torch.full((4, 3), 9.0)), ("size", OfSize(), torch.zeros(9, 3))):
    scripted = torch.jit.script(module)
    try:
        program = TS2EPConverter(scripted, (good,)).convert().module()
        assert torch.equal(program(good), scripted(good))
        told = f"module {outcome(scripted, bad)}, program {outcome(program, bad)}"
    except Exception as error:
        told = f"{type(error).__name__}: {error}"
    print(f"{name}: {told}", end=" / ")
PY
declare -A wanted=(
  [2.15.0]="data: module raises, program answers / size: module raises, program raises /"
  [2.6.0]="data: module raises, program answers / size: module raises, program raises /"
)
for release in 2.15.0 2.6.0; do
  uv venv -q --clear --python 3.11 "$work/env"
  uv pip install -q --python "$work/env/bin/python" "torch==$release"
  said=$(cd "$work" && "$work/env/bin/python" -W ignore converts.py 2>/dev/null)
  echo "torch $release: $said"
  [ "$said" = "${wanted[$release]} " ]
done
