#!/usr/bin/env bash
# A mobile flatbuffer loads through torch.jit.load like any archive, but not where the model uses a value of an enum.
#
# Seen with torch==2.1.2, torch==2.6.0 and torch==2.15.0 from PyPI, Linux x86-64, CPython 3.11, CPU, both saved by
# ScriptModule._save_for_lite_interpreter(_use_flatbuffer=True), which raises nothing:
#     forward without enums           loads and answers
#     forward that reads Color.RED    RuntimeError: enum_type INTERNAL ASSERT FAILED at ".../flatbuffer_loader.cpp"
# Needs: uv, Python 3.11, a package index, 15 GB of disk. Fails if any of this changes.
set -euo pipefail
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cat > "$work/enums.py" <<'PY'
import enum, sys, torch
class Color(enum.Enum):
    RED = 1
    GREEN = 2
class Plain(torch.nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x + 1
class Enums(torch.nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        color = Color.RED if x.size(0) > 1 else Color.GREEN
        return x + color.value
for kind in (Plain, Enums):
    path = f"{sys.argv[1]}/{kind.__name__}.ptl"
    torch.jit.script(kind())._save_for_lite_interpreter(path, _use_flatbuffer=True)
    try:
        print(kind.__name__, "answers", torch.jit.load(path)(torch.zeros(2)).tolist()[0])
    except RuntimeError as error:
        print(kind.__name__, "refused:", "enum_type INTERNAL ASSERT FAILED" in str(error))
PY
for release in 2.1.2 2.6.0 2.15.0; do
  uv venv -q --python 3.11 "$work/$release"
  uv pip install -q --python "$work/$release/bin/python" "torch==$release"
  said=$("$work/$release/bin/python" -W ignore "$work/enums.py" "$work" 2>/dev/null)
  echo "torch $release: $said"
  [ "$said" = $'Plain answers 1.0\nEnums refused: True' ]
done
