#!/usr/bin/env bash
# torch 2.15.0 saves a TorchScript module with a 4-bit quantized tensor (quint4x2) and does not load that file again.
#
# Seen on Linux x86-64, CPython 3.11, CPU, wheels of PyPI: a module with a buffer of
# torch.quantize_per_channel(..., torch.quint4x2), scripted and saved. Files of 2.11.0 and of 2.15.0 alike:
#     torch.jit.load in 2.11.0   loads, answers
#     torch.jit.load in 2.15.0   RuntimeError: Tensor: sizes 4 4, strides 4 1, storage offset 0 and itemsize 1 require a
#                                storage of at least 16 bytes, but storage only has 8 bytes
# Two values share a byte, and the check that is new in 2.15.0 counts one byte for each. 4-bit embedding bags hold such
# tensors too.
# Needs: uv, Python 3.11, a package index, 11 GB of disk. Fails if any of this changes.
set -euo pipefail
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cat > "$work/save.py" <<'PY'
import sys, torch
class Packed(torch.nn.Module):
    def __init__(self):
        super().__init__()
        ones, zeros = torch.ones(4), torch.zeros(4)
        self.register_buffer("w", torch.quantize_per_channel(torch.ones(4, 4), ones, zeros, 0, torch.quint4x2))
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x + self.w.q_per_channel_scales().sum()
torch.jit.save(torch.jit.script(Packed()), sys.argv[1])
PY
cat > "$work/load.py" <<'PY'
import sys, torch
try:
    torch.jit.load(sys.argv[1])(torch.zeros(1))
    print("loads")
except RuntimeError as error:
    print("refuses:", "storage only has 8 bytes" in str(error))
PY
for release in 2.11.0 2.15.0; do
  uv venv -q --python 3.11 "$work/$release"
  uv pip install -q --python "$work/$release/bin/python" "torch==$release"
  "$work/$release/bin/python" -W ignore "$work/save.py" "$work/of-$release.pt"
done
for exporter in 2.11.0 2.15.0; do
  for loader in 2.11.0 2.15.0; do
    said=$("$work/$loader/bin/python" -W ignore "$work/load.py" "$work/of-$exporter.pt" 2>/dev/null)
    echo "saved by $exporter, in $loader: $said"
    case $loader in 2.11.0) [ "$said" = loads ] ;; 2.15.0) [ "$said" = "refuses: True" ] ;; esac
  done
done
