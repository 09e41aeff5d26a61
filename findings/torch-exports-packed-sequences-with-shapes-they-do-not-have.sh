#!/usr/bin/env bash
# torch.export of a packed sequence: for aten._pack_padded_sequence the traced program holds shapes that it never has. Its data
# is said to have as many rows as the padded input has steps (it has one a real step), and its sizes of batches are said to be
# floats (they are int64). What is computed of these at tracing is wrong or refused (a batch size that becomes
# TruncToInt(zuf0), an LSTM whose output has the rows of one sequence); the operator itself runs rightly.
#
# Seen with torch==2.15.0 and torch==2.6.0 from PyPI, Linux x86-64, CPython 3.11, CPU, for lengths 5, 4, 2 padded to 5:
#     traced: data rows 5, batch_sizes torch.float32 / run: data rows 11, batch_sizes torch.int64
# Needs: uv, Python 3.11, a package index, 10 GB of disk. Fails if any of this changes.
set -euo pipefail
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cat > "$work/packs.py" <<'PY'
import torch
class Packs(torch.nn.Module):
    def forward(self, x, lengths):
        packed = torch.nn.utils.rnn.pack_padded_sequence(x, lengths, batch_first=True)
        return packed.data, packed.batch_sizes
inputs = torch.randn(3, 5, 4), torch.tensor([5, 4, 2])
program = torch.export.export(Packs(), inputs, strict=False)
(node,) = [node for node in program.graph.nodes if "_pack_padded_sequence" in str(node.target)]
def told(pair):
    return f"data rows {pair[0].shape[0]}, batch_sizes {pair[1].dtype}"
print("traced:", told(node.meta["val"]), "/ run:", told(program.module()(*inputs)))
PY
for release in 2.15.0 2.6.0; do
  uv venv -q --clear --python 3.11 "$work/env"
  uv pip install -q --python "$work/env/bin/python" "torch==$release"
  said=$("$work/env/bin/python" -W ignore "$work/packs.py" 2>/dev/null)
  echo "torch $release: $said"
  [ "$said" = "traced: data rows 5, batch_sizes torch.float32 / run: data rows 11, batch_sizes torch.int64" ]
done
