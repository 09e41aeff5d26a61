#!/usr/bin/env bash
# A TorchScript attribute with a name outside ASCII is scripted and saved; the archive loads only if no code reads it.
#
# Seen with torch==2.1.2 and torch==2.15.0 from PyPI, Linux x86-64, CPython 3.11, CPU, a buffer called "größe":
#     no method reads it          loads
#     forward reads self.größe    RuntimeError ("ill formed octal specifier")
# The printer writes getattr(self, "gr\0)+\..."): each byte above 127 as the octal number of a signed char, which the
# reader of the same release refuses. Python's own identifiers allow such names, so state_dicts have them.
# Needs: uv, Python 3.11, a package index, 10 GB of disk. Fails if any of this changes.
set -euo pipefail
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cat > "$work/names.py" <<'PY'
import io, torch
class Unread(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("größe", torch.ones(2))
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x
class Read(Unread):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x + self.größe
for kind in (Unread, Read):
    file = io.BytesIO()
    torch.jit.save(torch.jit.script(kind()), file)
    file.seek(0)
    try:
        torch.jit.load(file)
        print(kind.__name__, "loads")
    except RuntimeError as error:
        print(kind.__name__, "refused:", "octal" in str(error))
PY
for release in 2.1.2 2.15.0; do
  uv venv -q --python 3.11 "$work/$release"
  uv pip install -q --python "$work/$release/bin/python" "torch==$release"
  said=$("$work/$release/bin/python" -W ignore "$work/names.py" 2>/dev/null)
  echo "torch $release: $said"
  [ "$said" = $'Unread loads\nRead refused: True' ]
done
