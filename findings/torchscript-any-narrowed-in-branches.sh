#!/usr/bin/env bash
# A variable of type Any that branches narrow to several types and to None is scripted, runs and is saved; nothing loads it.
#
# Seen with torch==1.13.1, 2.1.2 and 2.15.0 from PyPI, Linux x86-64, CPython 3.11, CPU:
#     None last               loads
#     a tuple after the None  RuntimeError: Variable 'r1' is annotated with type Union[..., NoneType] but is being
#                             assigned to a value of type Optional[Union[...]]
# The printer writes one and the same type in both ways, and the reader holds that an Optional[Union[...]] is no
# Union[..., NoneType]. (The types of a Union are listed in no fixed order.)
# Needs: uv, Python 3.11, a package index, 15 GB of disk. Fails if any of this changes.
set -euo pipefail
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cat > "$work/load.py" <<'PY'
import io
from typing import Any
import torch
class Last(torch.nn.Module):
    def forward(self, x: torch.Tensor, k: int) -> Any:
        r: Any = x
        if k == 1:
            r = 1.0
        if k > 1:
            if k == 2:
                r = None
        return r
class Before(torch.nn.Module):
    def forward(self, x: torch.Tensor, k: int) -> Any:
        r: Any = x
        if k == 1:
            r = 1.0
        if k > 1:
            if k == 2:
                r = None
            if k == 3:
                r = (x, x)
        return r
for kind in (Last, Before):
    scripted = torch.jit.script(kind())
    answers = [type(scripted(torch.ones(1), k)).__name__ for k in (0, 1, 2)]
    file = io.BytesIO()
    torch.jit.save(scripted, file)
    file.seek(0)
    try:
        torch.jit.load(file)
        print(kind.__name__, *answers, "loads")
    except RuntimeError as error:
        said = "is being assigned to a value of type Optional[Union[" in str(error)
        print(kind.__name__, *answers, "refused:", said)
PY
for release in 1.13.1 2.1.2 2.15.0; do
  uv venv -q --python 3.11 "$work/$release"
  uv pip install -q --python "$work/$release/bin/python" "torch==$release" 'numpy<2'
  said=$("$work/$release/bin/python" -W ignore "$work/load.py" 2>&1)
  echo "torch $release: $said"
  [ "$said" = $'Last Tensor float NoneType loads\nBefore Tensor float NoneType refused: True' ]
done
