#!/usr/bin/env bash
# A class in a package whose folder has a hyphen is scripted and saved; it loads alone, and not inside another type.
#
# Seen with torch==2.1.2 and torch==2.15.0 from PyPI, Linux x86-64, CPython 3.11, CPU, `my-models/boxes.py` with
# `class Box(NamedTuple)`, imported by its path as plugins are:
#     forward(x: Box)         loads
#     forward(x: List[Box])   RuntimeError: Expression of type - cannot be used in a type expression
# The type is printed as `List[__torch__.my-models.boxes.Box]`, which the reader takes for a subtraction.
# Needs: uv, Python 3.11, a package index, 10 GB of disk. Fails if any of this changes.
set -euo pipefail
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
mkdir "$work/my-models"
touch "$work/my-models/__init__.py"
cat > "$work/my-models/boxes.py" <<'PY'
from typing import List, NamedTuple
import torch
class Box(NamedTuple):
    left: torch.Tensor
    top: torch.Tensor
class Alone(torch.nn.Module):
    def forward(self, x: Box) -> torch.Tensor:
        return x.left + x.top
class Listed(torch.nn.Module):
    def forward(self, x: List[Box]) -> torch.Tensor:
        return x[0].left + x[0].top
PY
cat > "$work/load.py" <<'PY'
import importlib, io, torch
boxes = importlib.import_module("my-models.boxes")
for kind in (boxes.Alone, boxes.Listed):
    file = io.BytesIO()
    torch.jit.save(torch.jit.script(kind()), file)
    file.seek(0)
    try:
        torch.jit.load(file)
        print(kind.__name__, "loads")
    except RuntimeError as error:
        print(kind.__name__, "refused:", "Expression of type - cannot be used in a type expression" in str(error))
PY
for release in 2.1.2 2.15.0; do
  uv venv -q --python 3.11 "$work/$release"
  uv pip install -q --python "$work/$release/bin/python" "torch==$release"
  said=$(cd "$work" && "$work/$release/bin/python" -W ignore load.py 2>&1)
  echo "torch $release: $said"
  [ "$said" = $'Alone loads\nListed refused: True' ]
done
