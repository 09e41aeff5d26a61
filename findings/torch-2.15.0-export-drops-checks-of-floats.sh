#!/usr/bin/env bash
# torch._check on a float that was taken from a tensor: torch.export keeps `x > c` as an assertion of the program, and drops
# `x <= c`, and `not x > c`, without a word. The program then answers what the module refuses. Conditions on whole numbers are
# kept both ways. A guard of one branch ("the loop has converged") is therefore there or not by the direction in which it is
# written; aten._assert_scalar, which the kept ones become, is kept both ways when it is called by name.
#
# Seen with torch==2.15.0 from PyPI, Linux x86-64, CPython 3.11, CPU (the module raises RuntimeError in every line):
#     above: refused / at most: answered / not above: answered / whole number: refused / assert_scalar: refused
# In 2.6.0 no check on such a float is exported at all (AssertionError: Unknown symbol zuf0).
# Needs: uv, Python 3.11, a package index, 5 GB of disk. Fails if any of this changes.
set -euo pipefail
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cat > "$work/checks.py" <<'PY'
import torch
CHECKS = {
    "above": lambda x: torch._check(1.0 - x.abs().max().item() > 0.0),
    "at most": lambda x: torch._check(x.abs().max().item() <= 0.5),
    "not above": lambda x: torch._check(torch.sym_not(x.abs().max().item() > 0.5)),
    "whole number": lambda x: torch._check(x.argmax().item() <= 3),
    "assert_scalar": lambda x: torch.ops.aten._assert_scalar.default(x.abs().max().item() <= 0.5, "too large"),
}
class Checked(torch.nn.Module):
    def __init__(self, check):
        super().__init__()
        self.check = check
    def forward(self, x):
        self.check(x)
        return x * 2
good, bad = torch.zeros(8), torch.zeros(8)
bad[7] = 9.0
def outcome(call):
    try:
        call(bad)
        return "answered"
    except (RuntimeError, AssertionError):
        return "refused"
for name, check in CHECKS.items():
    module = Checked(check)
    program = torch.export.export(module, (good,)).module()
    assert torch.equal(program(good), module(good))
    assert outcome(module) == "refused"
    print(f"{name}: {outcome(program)}", end=" / ")
PY
uv venv -q --python 3.11 "$work/env"
uv pip install -q --python "$work/env/bin/python" torch==2.15.0
said=$("$work/env/bin/python" -W ignore "$work/checks.py" 2>/dev/null)
echo "torch 2.15.0: $said"
[ "$said" = "above: refused / at most: answered / not above: answered / whole number: refused / assert_scalar: refused / " ]
