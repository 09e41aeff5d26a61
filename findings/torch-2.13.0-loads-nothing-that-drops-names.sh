#!/usr/bin/env bash
# A scripted module that calls x.rename(None) loads in every release up to torch 2.12.1 and in none since 2.13.0, though no tensor of it
# ever has a name. Named tensors were removed (https://github.com/pytorch/pytorch/pull/173895), and TorchScript has no upgrader for
# their operators: code that defends itself against named inputs makes an archive that a newer release refuses.
#
# Seen with torch==2.12.1 (export) and torch==2.13.0 (load) from PyPI, Linux x86-64, CPython 3.11, CPU:
#     in 2.12.1   loads [2, 3]
#     in 2.13.0   RuntimeError: Unknown builtin op: aten::rename.
# Six operators (align_as, align_tensors, align_to, refine_names, rename, rename_) and about a hundred overloads with a Dimname are gone
# at once. What was traced is not concerned: the tracer of 2.12.1 refuses named tensors.
# Needs: uv, Python 3.11, a package index, 12 GB of disk. Fails if any of this changes.
set -euo pipefail
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cat > "$work/make.py" <<'PY'
import sys, torch
class Score(torch.nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.relu(x.rename(None))
torch.jit.script(Score()).save(sys.argv[1])
PY
cat > "$work/load.py" <<'PY'
import sys, torch
try:
    print("loads", list(torch.jit.load(sys.argv[1])(torch.ones(2, 3)).shape))
except RuntimeError as error:
    print("refused:", "Unknown builtin op: aten::rename." in str(error))
PY
for release in 2.12.1 2.13.0; do
  uv venv -q --python 3.11 "$work/$release"
  uv pip install -q --python "$work/$release/bin/python" "torch==$release"
done
"$work/2.12.1/bin/python" -W ignore "$work/make.py" "$work/score.pt" 2>/dev/null
check() { # LOADER EXPECTED
  said=$("$work/$1/bin/python" -W ignore "$work/load.py" "$work/score.pt" 2>/dev/null)
  echo "scripted in torch 2.12.1, loaded in $1: $said"
  [ "$said" = "$2" ]
}
check 2.12.1 "loads [2, 3]"
check 2.13.0 "refused: True"
