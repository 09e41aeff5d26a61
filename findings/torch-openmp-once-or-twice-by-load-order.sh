#!/usr/bin/env bash
# Whether a process with torch holds one OpenMP runtime or two depends on what is loaded first. Up to torch 2.6.0 the wheel has its own
# libgomp as the file libgomp-a34b3233.so.1, which looks as if the host's libgomp.so.1 could lie beside it; but inside it still calls
# itself libgomp.so.1 (SONAME). Loaded first, it therefore stands for the host's too, which is never loaded; loaded second, both are there,
# each with threads of its own. In 2.15.0 the file itself is libgomp.so.1: one runtime in either order, the one that came first, so that a
# host program's omp_set_num_threads reaches torch.
#
# Seen with torch==2.6.0 and torch==2.15.0 from PyPI, Linux x86-64, CPython 3.11, CPU, Debian's libgomp1:
#     2.6.0   torch first: torch's          host first: host's, torch's   host says 1 thread, torch has as many as before
#     2.15.0  torch first: torch's          host first: host's            host says 1 thread, torch has 1
# Needs: uv, Python 3.11, libgomp1 of the system, two CPUs, a package index, 12 GB of disk. Fails if any of this changes.
set -euo pipefail
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cat > "$work/order.py" <<'PY'
import ctypes, re, sys
host = lambda: ctypes.CDLL("libgomp.so.1")
if sys.argv[1] == "torch":
    import torch
    host()
else:
    own = host()
    own.omp_set_num_threads(1)
    import torch
files = set(re.findall(r"/\S*libgomp\S*", open("/proc/self/maps").read()))
names = sorted("torch's" if "torch/lib" in file else "host's" for file in files)
print(", ".join(names), "1 thread" if torch.get_num_threads() == 1 else "threads")
PY
for release in 2.6.0 2.15.0; do
  uv venv -q --python 3.11 "$work/$release"
  uv pip install -q --python "$work/$release/bin/python" "torch==$release"
done
check() { # RELEASE FIRST EXPECTED
  said=$(env -u OMP_NUM_THREADS "$work/$1/bin/python" -W ignore "$work/order.py" "$2" 2>/dev/null)
  echo "torch $1, $2 first: $said"
  [ "$said" = "$3" ]
}
check 2.6.0 torch "torch's threads"
check 2.6.0 host "host's, torch's threads"
check 2.15.0 torch "torch's threads"
check 2.15.0 host "host's 1 thread"
