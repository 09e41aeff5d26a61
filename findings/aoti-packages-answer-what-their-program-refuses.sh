#!/usr/bin/env bash
# A size that decides ("more than 16 rows", "an even number of rows") becomes a guard of an exported program, and the program
# refuses other sizes. A package that AOTInductor compiles of the same program answers them, by the branch of the example:
# aoti_compile_and_package takes the graph alone, and the guards are no part of it. Only fixed sizes and bounds can be asked for
# with AOTI_RUNTIME_CHECK_INPUTS=1, not "an even number", and then a batch of 1, which is answered rightly, is refused as well.
# The same guard as an assertion in the graph (aten._assert_scalar) is kept.
#
# Seen with torch==2.15.0 from PyPI, Linux x86-64, CPython 3.11, CPU, g++ 12, for inputs that the module takes either way:
#     bound: program refuses, package answers otherwise, asserted refuses
#     even: program refuses, package answers otherwise, asserted refuses
# Needs: uv, Python 3.11, g++, a package index, 5 GB of disk. Fails if any of this changes.
set -euo pipefail
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cat > "$work/packages.py" <<'PY'
import sys
import torch
from torch._inductor import config
config.compile_threads = 1
CONDITIONS = {"bound": lambda rows: rows > 16, "even": lambda rows: rows % 2 == 1}
class Deciding(torch.nn.Module):
    def __init__(self, condition, asserts):
        super().__init__()
        self.condition, self.asserts = condition, asserts
    def forward(self, x):
        decided = self.condition(x.size(0))
        if self.asserts:
            torch.ops.aten._assert_scalar.default(torch.sym_not(decided), "the other way")
        return x * 2 if decided else x + 1
def outcome(call, x, wanted):
    try:
        return "answers rightly" if torch.equal(call(x), wanted) else "answers otherwise"
    except (RuntimeError, AssertionError):
        return "refuses"
def package(program, path):
    return torch._inductor.aoti_load_package(torch._inductor.aoti_compile_and_package(program, package_path=path))
other = torch.full((17, 3), 5.0)
for name, condition in CONDITIONS.items():
    module = Deciding(condition, False)
    made = [
        torch.export.export(Deciding(condition, asserts), (torch.ones(4, 3),), dynamic_shapes=({0: torch.export.Dim.AUTO},))
        for asserts in (False, True)
    ]
    plain, asserted = (package(program, f"{sys.argv[1]}/{name}{index}.pt2") for index, program in enumerate(made))
    assert torch.equal(plain(torch.ones(6, 3)), module(torch.ones(6, 3)))
    calls = {"program": made[0].module(), "package": plain, "asserted": asserted}
    print(f"{name}:", ", ".join(f"{of} {outcome(call, other, module(other))}" for of, call in calls.items()))
PY
uv venv -q --python 3.11 "$work/env"
uv pip install -q --python "$work/env/bin/python" torch==2.15.0 setuptools
said=$(cd "$work" && TORCHINDUCTOR_CACHE_DIR="$work/cache" "$work/env/bin/python" -W ignore "$work/packages.py" "$work" 2>/dev/null)
echo "torch 2.15.0: $said"
[ "$said" = "bound: program refuses, package answers otherwise, asserted refuses
even: program refuses, package answers otherwise, asserted refuses" ]
