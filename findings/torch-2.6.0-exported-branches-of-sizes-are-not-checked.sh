#!/usr/bin/env bash
# torch.export of 2.6.0 with Dim.AUTO takes the branch that the example's sizes take, and its program checks of that decision only
# bounds of one size and equal sizes. "Twice the length is more than 11", "the length is even", "the lengths differ": of these it
# keeps nothing, and answers other sizes by the wrong branch, without a word. Programs of 2.15.0 have a function of guards that
# refuses them. Who exports in 2.6.0 for its wider compatibility gets open sizes that are open too far.
#
# Seen with torch==2.6.0 and torch==2.15.0 from PyPI, Linux x86-64, CPython 3.11, CPU; the sizes decide otherwise than the example's:
#     2.6.0   bound refused, equal refused, twice WRONG, even WRONG, different WRONG
#     2.15.0  bound refused, equal refused, twice refused, even refused, different refused
# Needs: uv, Python 3.11, a package index, 10 GB of disk. Fails if any of this changes.
set -euo pipefail
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cat > "$work/branch.py" <<'PY'
import torch
AUTO = torch.export.Dim.AUTO
DECIDES = {  # condition, example's sizes, other sizes
    "bound": (lambda n, m: n > 5, (8, 9), (4, 9)),
    "equal": (lambda n, m: n == m, (8, 8), (7, 9)),
    "twice": (lambda n, m: 2 * n > 11, (8, 9), (4, 9)),
    "even": (lambda n, m: n % 2 == 0, (8, 9), (7, 9)),
    "different": (lambda n, m: n != m, (8, 9), (9, 9)),
}
class Branch(torch.nn.Module):
    def __init__(self, condition):
        super().__init__()
        self.condition = condition
    def forward(self, x, y):
        return x.sum() + 1 if self.condition(x.size(0), y.size(0)) else x.sum() - 1
for name, (condition, example, other) in DECIDES.items():
    module = Branch(condition)
    sizes = [tuple(torch.zeros(size, 2) for size in both) for both in (example, other)]
    program = torch.export.export(module, sizes[0], dynamic_shapes=({0: AUTO}, {0: AUTO})).module()
    assert torch.equal(program(*sizes[0]), module(*sizes[0]))
    try:
        said = "right" if torch.equal(program(*sizes[1]), module(*sizes[1])) else "WRONG"
    except (RuntimeError, AssertionError):
        said = "refused"
    print(name, said, end=", ")
PY
check() { # RELEASE EXPECTED
  uv venv -q --python 3.11 "$work/$1"
  uv pip install -q --python "$work/$1/bin/python" "torch==$1"
  said=$("$work/$1/bin/python" -W ignore "$work/branch.py" 2>/dev/null)
  echo "torch $1: $said"
  [ "$said" = "$2" ]
}
check 2.6.0 "bound refused, equal refused, twice WRONG, even WRONG, different WRONG, "
check 2.15.0 "bound refused, equal refused, twice refused, even refused, different refused, "
