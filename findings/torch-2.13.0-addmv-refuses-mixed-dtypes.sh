#!/usr/bin/env bash
# aten::addmv answers a bias of another dtype up to torch 2.11.0, and refuses it since 2.13.0: archives load, and fail when called.
#
# Seen with torch==2.11.0 and torch==2.13.0 from PyPI, Linux x86-64, CPython 3.11, CPU, a module that only calls
# torch.addmv(bias, weight, x), scripted and saved in 2.11.0, with weight and x in float32:
#     bias in float64          2.11.0 [2.0]             2.13.0 RuntimeError: addmv input tensors must have the same dtype
#     bias in int64            2.11.0 [2.0]             likewise
#     bias in float32          2.11.0 [2.0]             2.13.0 [2.0]
# 2.1.2, 2.6.0 and 2.8.0 answer as 2.11.0 does, and 2.15.0 as 2.13.0.
# Found by the atlas of operators (docs/operators.md).
# Needs: uv, Python 3.11, a package index, 12 GB of disk. Fails if any of this changes.
set -euo pipefail
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cat > "$work/make.py" <<'PY'
import sys, torch
class Added(torch.nn.Module):
    def forward(self, bias: torch.Tensor, weight: torch.Tensor, x: torch.Tensor) -> torch.Tensor:
        return torch.addmv(bias, weight, x)
torch.jit.script(Added()).save(sys.argv[1])
PY
cat > "$work/call.py" <<'PY'
import sys, torch
bias = torch.ones(1, dtype=getattr(torch, sys.argv[2]))
try:
    print(torch.jit.load(sys.argv[1])(bias, torch.ones(1, 1), torch.ones(1)).tolist())
except RuntimeError as error:
    print("refused:", "must have the same dtype" in str(error))
PY
for release in 2.11.0 2.13.0; do
  uv venv -q --python 3.11 "$work/$release"
  uv pip install -q --python "$work/$release/bin/python" "torch==$release"
done
"$work/2.11.0/bin/python" -W ignore "$work/make.py" "$work/added.pt" 2>/dev/null
check() { # RELEASE DTYPE EXPECTED
  answer=$("$work/$1/bin/python" -W ignore "$work/call.py" "$work/added.pt" "$2" 2>/dev/null)
  echo "bias in $2, torch $1: $answer"
  [ "$answer" = "$3" ]
}
check 2.11.0 float64 "[2.0]"
check 2.11.0 int64 "[2.0]"
check 2.11.0 float32 "[2.0]"
check 2.13.0 float64 "refused: True"
check 2.13.0 int64 "refused: True"
check 2.13.0 float32 "[2.0]"
