#!/usr/bin/env bash
# Group normalization of something without elements (a crop without pixels, no frames yet) is refused since torch 2.15.0.
#
# Seen with torch==2.13.0 and torch==2.15.0 from PyPI, Linux x86-64, CPython 3.11, CPU, torch.nn.GroupNorm(2, 6), scripted
# and saved in 2.13.0:
#     input [2, 6, 0]          2.13.0 answers [2, 6, 0]       2.15.0 RuntimeError: Expected HxW to be greater than 0, got 0
#     input [0, 6, 4]          2.13.0 answers [0, 6, 4]       2.15.0 answers [0, 6, 4]
# 2.1.2, 2.6.0, 2.8.0 and 2.11.0 answer as 2.13.0 does. The archive loads in all of them: only such a request shows it.
# Found by the atlas of operators (docs/operators.md).
# Needs: uv, Python 3.11, a package index, 12 GB of disk. Fails if any of this changes.
set -euo pipefail
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cat > "$work/make.py" <<'PY'
import sys, torch
torch.jit.script(torch.nn.GroupNorm(2, 6).eval()).save(sys.argv[1])
PY
cat > "$work/call.py" <<'PY'
import sys, torch
try:
    print(list(torch.jit.load(sys.argv[1])(torch.ones([int(size) for size in sys.argv[2:]])).shape))
except RuntimeError as error:
    print("refused:", "Expected HxW to be greater than 0" in str(error))
PY
for release in 2.13.0 2.15.0; do
  uv venv -q --python 3.11 "$work/$release"
  uv pip install -q --python "$work/$release/bin/python" "torch==$release"
done
"$work/2.13.0/bin/python" -W ignore "$work/make.py" "$work/norm.pt" 2>/dev/null
check() { # RELEASE EXPECTED SIZES...
  answer=$("$work/$1/bin/python" -W ignore "$work/call.py" "$work/norm.pt" "${@:3}" 2>/dev/null)
  echo "input [${*:3}], torch $1: $answer"
  [ "$answer" = "$2" ]
}
check 2.13.0 "[2, 6, 0]" 2 6 0
check 2.13.0 "[0, 6, 4]" 0 6 4
check 2.15.0 "refused: True" 2 6 0
check 2.15.0 "[0, 6, 4]" 0 6 4
