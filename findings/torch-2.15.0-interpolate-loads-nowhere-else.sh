#!/usr/bin/env bash
# A scripted torch.nn.functional.interpolate of torch 2.15.0 loads in no earlier release, whatever mode it is called with.
#
# Seen with torch==2.15.0 (export) and torch==2.11.0 and torch==2.6.0 (load) from PyPI, Linux x86-64, CPython 3.11, CPU, a
# module that only calls F.interpolate(x, scale_factor=2.0, mode="nearest"):
#     scripted in 2.15.0   RuntimeError: Unknown builtin op: aten::_upsample_lanczos2d_aa
#     traced in 2.15.0     loads
#     scripted in 2.11.0   loads in 2.15.0
# 2.15.0 added mode="lanczos": scripting compiles every branch of the function, and the loader looks all of them up. So a
# fleet that exports with 2.15.0 cannot roll back its resizing models (timm and segmentation-models have many).
# Needs: uv, Python 3.11, a package index, 15 GB of disk. Fails if any of this changes.
set -euo pipefail
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cat > "$work/make.py" <<'PY'
import sys, torch
import torch.nn.functional as F
class Resize(torch.nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return F.interpolate(x, scale_factor=2.0, mode="nearest")
torch.jit.script(Resize()).save(sys.argv[1] + ".scripted.pt")
torch.jit.trace(Resize(), torch.ones(1, 1, 2, 2)).save(sys.argv[1] + ".traced.pt")
PY
cat > "$work/load.py" <<'PY'
import sys, torch
try:
    print("loads", list(torch.jit.load(sys.argv[1])(torch.ones(1, 1, 2, 2)).shape))
except RuntimeError as error:
    print("refused:", "Unknown builtin op: aten::_upsample_lanczos2d_aa" in str(error))
PY
for release in 2.6.0 2.11.0 2.15.0; do
  uv venv -q --python 3.11 "$work/$release"
  uv pip install -q --python "$work/$release/bin/python" "torch==$release"
done
for release in 2.11.0 2.15.0; do
  "$work/$release/bin/python" -W ignore "$work/make.py" "$work/$release" 2>/dev/null
done
check() { # EXPORTER FORM LOADER EXPECTED
  said=$("$work/$3/bin/python" -W ignore "$work/load.py" "$work/$1.$2.pt" 2>/dev/null)
  echo "$2 in torch $1, loaded in $3: $said"
  [ "$said" = "$4" ]
}
check 2.15.0 scripted 2.15.0 "loads [1, 1, 4, 4]"
check 2.15.0 scripted 2.11.0 "refused: True"
check 2.15.0 scripted 2.6.0 "refused: True"
check 2.15.0 traced 2.11.0 "loads [1, 1, 4, 4]"
check 2.11.0 scripted 2.15.0 "loads [1, 1, 4, 4]"
