#!/usr/bin/env bash
# torch 2.11.0 unpacks an AOTInductor package in /tmp whatever TMPDIR says; torch 2.15.0 unpacks it in TMPDIR.
#
# Seen with torch==2.11.0 and torch==2.15.0 from PyPI, Linux x86-64, CPython 3.11, CPU, a package that the same release
# made, loaded by torch._inductor.aoti_load_package with TMPDIR set; where the loaded .so lies is read in /proc/self/maps:
#     2.11.0   /tmp/XXXXXX/...
#     2.15.0   TMPDIR/aotinductor_XXXXXX/...
# So a server whose /tmp is read-only, small or mounted noexec loads packages from 2.15.0 on alone.
# Needs: uv, Python 3.11 with its headers, g++, a package index, 12 GB of disk. Fails if any of this changes.
set -euo pipefail
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
mkdir "$work/own"
cat > "$work/make.py" <<'PY'
import sys, torch
class Double(torch.nn.Module):
    def forward(self, x):
        return x * 2
program = torch.export.export(Double(), (torch.ones(4),))
torch._inductor.aoti_compile_and_package(program, package_path=sys.argv[1])
PY
cat > "$work/load.py" <<'PY'
import re, sys, torch
loaded = torch._inductor.aoti_load_package(sys.argv[1])
print("answers", loaded(torch.ones(4)).tolist()[0], end=" ")
places = {line.split()[-1] for line in open("/proc/self/maps") if line.rstrip().endswith(".so")}
(place,) = [place for place in places if "site-packages" not in place and "wrapper" in place or "/aotinductor_" in place]
own = sys.argv[2]
print("from TMPDIR" if place.startswith(own + "/") else "from /tmp" if re.match(r"/tmp/\w{6}/", place) else place)
PY
for release in 2.11.0 2.15.0; do
  uv venv -q --python 3.11 "$work/$release"
  uv pip install -q --python "$work/$release/bin/python" "torch==$release" setuptools
  python="$work/$release/bin/python"
  TORCHINDUCTOR_CACHE_DIR="$work/cache" "$python" -W ignore "$work/make.py" "$work/$release.pt2" 2>/dev/null
  said=$(TMPDIR="$work/own" TORCHINDUCTOR_CACHE_DIR="$work/cache" "$python" -W ignore "$work/load.py" "$work/$release.pt2" "$work/own" 2>/dev/null)
  echo "torch $release: $said"
  case "$release" in
    2.11.0) [ "$said" = "answers 2.0 from /tmp" ] ;;
    2.15.0) [ "$said" = "answers 2.0 from TMPDIR" ] ;;
  esac
done
