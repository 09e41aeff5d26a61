#!/usr/bin/env bash
# A TorchScript argument called `torch` is scripted, answers, is saved and loads, and what was loaded does not answer.
#
# Seen with torch==2.1.2 and torch==2.15.0 from PyPI, Linux x86-64, CPython 3.11, CPU:
#     def forward(self, torch: Tensor): return torch + 1
# is printed into the archive as `return torch.add(torch, 1)`. Read again, `torch` is the tensor and `add` its method, so
# that the call becomes add(torch, other=torch, alpha=1):
#     the scripted module        answers x + 1
#     the same, saved and loaded RuntimeError ("Cannot input a tensor of dimension other than 0 as a scalar argument")
# Another name for the argument cures it.
# Needs: uv, Python 3.11, a package index, 10 GB of disk. Fails if any of this changes.
set -euo pipefail
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cat > "$work/both.py" <<'PY'
import io, torch
from torch import Tensor
class Plus(torch.nn.Module):
    def forward(self, torch: Tensor) -> Tensor:
        return torch + 1
made, file, x = torch.jit.script(Plus()), io.BytesIO(), torch.ones(3)
torch.jit.save(made, file)
file.seek(0)
loaded = torch.jit.load(file)
print("scripted answers", made(x).tolist())
try:
    print("loaded answers", loaded(x).tolist())
except RuntimeError as error:
    print("loaded raises:", "as a scalar argument" in str(error))
PY
for release in 2.1.2 2.15.0; do
  uv venv -q --python 3.11 "$work/$release"
  uv pip install -q --python "$work/$release/bin/python" "torch==$release"
  said=$("$work/$release/bin/python" -W ignore "$work/both.py" 2>/dev/null)
  echo "torch $release: $said"
  [ "$said" = $'scripted answers [2.0, 2.0, 2.0]\nloaded raises: True' ]
done
