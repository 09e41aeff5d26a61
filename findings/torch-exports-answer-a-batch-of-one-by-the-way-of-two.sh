#!/usr/bin/env bash
# torch.export takes every size that it keeps open for 2 or more. A module that does something else for one row
# (`if x.size(0) == 1`) is exported with its other way alone; the program's range says "from 2", nothing checks it, and a batch
# of one is answered by the way of two. A comparison that no assumption decides (`x.size(0) == 3`) is a guard, and refused.
# torch._check(x.size(0) != 1) changes nothing: it is true by the same assumption, and left out. An assertion by tensors stays.
#
# Seen with torch==2.15.0 and torch==2.6.0 from PyPI, Linux x86-64, CPython 3.11, CPU, batch of one:
#     2.15.0: one answered otherwise / checked answered otherwise / asserted refused / three refused
#     2.6.0: one answered otherwise / checked answered otherwise / asserted refused / three answered otherwise
# ("three" is asked with three rows.)
# Needs: uv, Python 3.11, a package index, 10 GB of disk. Fails if any of this changes.
set -euo pipefail
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cat > "$work/one.py" <<'PY'
import torch
class Special(torch.nn.Module):
    def __init__(self, rows, how=""):
        super().__init__()
        self.rows, self.how = rows, how
    def forward(self, x):
        if self.how == "checked":
            torch._check(x.size(0) != 1)
        if self.how == "asserted":
            torch.ops.aten._assert_async.msg(torch.scalar_tensor(x.size(0)) != 1, "one row")
        return x * 100 if x.size(0) == self.rows else x + 1
def outcome(program, module, x):
    try:
        return "answered rightly" if torch.equal(program(x), module(x)) else "answered otherwise"
    except (RuntimeError, AssertionError):
        return "refused"
AUTO = ({0: torch.export.Dim.AUTO},)
for name, rows, how in (("one", 1, ""), ("checked", 1, "checked"), ("asserted", 1, "asserted"), ("three", 3, "")):
    module = Special(rows, how)
    program = torch.export.export(module, (torch.ones(5, 2),), dynamic_shapes=AUTO, strict=False).module()
    assert torch.equal(program(torch.ones(6, 2)), module(torch.ones(6, 2)))
    print(name, outcome(program, Special(rows), torch.full((rows, 2), 7.0)), end=" / ")
PY
declare -A wanted=(
  [2.15.0]="one answered otherwise / checked answered otherwise / asserted refused / three refused /"
  [2.6.0]="one answered otherwise / checked answered otherwise / asserted refused / three answered otherwise /"
)
for release in 2.15.0 2.6.0; do
  uv venv -q --clear --python 3.11 "$work/env"
  uv pip install -q --python "$work/env/bin/python" "torch==$release"
  said=$("$work/env/bin/python" -W ignore "$work/one.py" 2>/dev/null)
  echo "torch $release: $said"
  [ "$said" = "${wanted[$release]} " ]
done
