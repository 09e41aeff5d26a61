#!/usr/bin/env bash
# while_loop in an exported program: torch.export.save writes it, torch.export.load reads it, and the call raises
# "carried_inputs must be a tuple, got <class 'list'>": the arguments come back as lists. The program that was not saved runs.
# A torch.cond comes back whole.
#
# Seen with torch==2.6.0 and torch==2.15.0 from PyPI, Linux x86-64, CPython 3.11, CPU:
#     2.6.0: cond: made answers, loaded answers / while_loop: made answers, loaded raises RuntimeError
#     2.15.0: cond: made answers, loaded answers / while_loop: made answers, loaded answers
# Needs: uv, Python 3.11, a package index, 10 GB of disk. Fails if any of this changes.
set -euo pipefail
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cat > "$work/loop.py" <<'PY'
import io
import torch
from torch._higher_order_ops.cond import cond_op
from torch._higher_order_ops.while_loop import while_loop_op
class Cond(torch.nn.Module):
    def forward(self, x):
        return cond_op(x.sum() > 0, lambda x: (x * 2,), lambda x: (x + 1,), (x,))[0]
class While(torch.nn.Module):
    def forward(self, x):
        return while_loop_op(lambda x: x.sum() < 100, lambda x: (x * 2,), (x,), ())[0]
def outcome(call, x, wanted):
    try:
        return "answers" if torch.equal(call(x), wanted) else "answers otherwise"
    except Exception as error:
        return f"raises {type(error).__name__}"
for name, module, wanted in (("cond", Cond(), 6.0), ("while_loop", While(), 48.0)):
    x, answer = torch.full((4,), 3.0), torch.full((4,), wanted)
    program = torch.export.export(module, (x,), strict=False)
    file = io.BytesIO()
    torch.export.save(program, file)
    file.seek(0)
    loaded = torch.export.load(file)
    print(f"{name}: made {outcome(program.module(), x, answer)}, loaded {outcome(loaded.module(), x, answer)}", end=" / ")
PY
declare -A wanted=(
  [2.15.0]="cond: made answers, loaded answers / while_loop: made answers, loaded answers /"
  [2.6.0]="cond: made answers, loaded answers / while_loop: made answers, loaded raises RuntimeError /"
)
for release in 2.15.0 2.6.0; do
  uv venv -q --clear --python 3.11 "$work/env"
  uv pip install -q --python "$work/env/bin/python" "torch==$release"
  said=$("$work/env/bin/python" -W ignore "$work/loop.py" 2>/dev/null || true)
  echo "torch $release: $said"
  [ "$said" = "${wanted[$release]} " ]
done
