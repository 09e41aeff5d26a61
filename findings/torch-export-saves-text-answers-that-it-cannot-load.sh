#!/usr/bin/env bash
# torch.export exports a module whose answer holds a text beside a tensor, calls it rightly, and saves it without a word; no
# release loads the file again, the one that wrote it included. Who converts a TorchScript model that answers with a label learns
# it at deployment: numbers, None and containers in an answer do load, and nothing refuses the text where the file is made.
#
# Seen with torch==2.6.0 and torch==2.15.0 from PyPI, Linux x86-64, CPython 3.11, CPU:
#     2.6.0   numbers loads, text SerializeError: Unable to deserialize output node Argument(as_string=cat)
#     2.15.0  numbers loads, text RuntimeError: We ran into an error when deserializing the saved file. [...]
# Needs: uv, Python 3.11, a package index, 10 GB of disk. Fails if any of this changes.
set -euo pipefail
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cat > "$work/save.py" <<'PY'
import io, logging, torch
logging.disable(logging.CRITICAL)
class Numbers(torch.nn.Module):
    def forward(self, x):
        return {"scores": x * 2, "others": (7, 0.5, None)}
class Text(torch.nn.Module):
    def forward(self, x):
        return {"scores": x * 2, "label": "cat"}
for kind in (Numbers, Text):
    program = torch.export.export(kind(), (torch.ones(3),))
    assert program.module()(torch.ones(3)).keys()
    file = io.BytesIO()
    torch.export.save(program, file)
    file.seek(0)
    try:
        torch.export.load(file)
        said = "loads"
    except Exception as error:
        said = type(error).__name__
    print(kind.__name__.lower(), said, end=" ")
PY
check() { # RELEASE EXPECTED
  uv venv -q --python 3.11 "$work/$1"
  uv pip install -q --python "$work/$1/bin/python" "torch==$1"
  said=$("$work/$1/bin/python" -W ignore "$work/save.py" 2>/dev/null)
  echo "torch $1: $said"
  [ "$said" = "$2" ]
}
check 2.6.0 "numbers loads text SerializeError "
check 2.15.0 "numbers loads text RuntimeError "
