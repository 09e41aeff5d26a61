#!/usr/bin/env bash
# torch 2.1.2 and torchvision 0.16.2, installed by their own metadata alone, cannot be imported together.
#
# Seen with torch==2.1.2 and torchvision==0.16.2 from PyPI, CPython 3.11, Linux x86-64, CPU, in an environment without
# setuptools (as uv makes them; a `python -m venv` of 3.11 hides it, for it brings setuptools):
#     import torch         works
#     import torchvision   ModuleNotFoundError: No module named 'pkg_resources'
# torch/torch_version.py compares versions with `packaging`, else with `pkg_resources`, and neither package's metadata
# asks for one of them. `import torch` compares nothing; torchvision imports torch._dynamo, which does.
# With `packaging` installed both import. torch 2.6.0 brings a copy of it (torch/_vendor/packaging).
# Needs: uv, Python 3.11, a package index, 5 GB of disk. Fails if any of this changes.
set -euo pipefail
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
uv venv -q --python 3.11 "$work/env"
uv pip install -q --python "$work/env/bin/python" torch==2.1.2 torchvision==0.16.2 'numpy<2'
python=$work/env/bin/python

"$python" -W ignore -c 'import torch; print("torch", torch.__version__, "imports")'
said=$("$python" -W ignore -c 'import torchvision' 2>&1 | tail -n 1) || true
echo "torchvision: $said"
[ "$said" = "ModuleNotFoundError: No module named 'pkg_resources'" ]

uv pip install -q --python "$python" packaging==25.0
"$python" -W ignore -c 'import torchvision; print("with packaging: torchvision", torchvision.__version__, "imports")'
