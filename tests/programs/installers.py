"""An installer that behaves as uv does and installs nothing, or misbehaves as it is told."""

import sys
from pathlib import Path

from harness.environments.pythons import OWN_PYTHON

# What `uv venv ... FOLDER` and `uv pip install --no-progress --python FOLDER/bin/python torch==X ...` leave behind.
_UV = """#!/bin/sh
if [ "$6" = --dry-run ]; then
    {resolving}
    exit 0
fi
echo "$1" >> "{calls}"
if [ "$1" = venv ]; then
    for folder; do :; done
    mkdir -p "$folder/bin" "$folder/lib/python{minor}/site-packages"
    ln -s "{python}" "$folder/bin/python"
    exit 0
fi
folder=$(dirname "$(dirname "$5")")
site="$folder/lib/python{minor}/site-packages"
version=${{6#torch==}}
{body}
mkdir "$site/torch-$version.dist-info"
printf 'Name: torch\\nVersion: %s\\n' "$version" > "$site/torch-$version.dist-info/METADATA"
"""


def fake_uv(path: Path, *, calls: Path, body: str = "", resolving: str = "") -> Path:
    """Write the installer to ``path`` and return it.

    Args:
        calls: it appends the name of each command there that is more than a dry run.
        body: shell commands of an installation, before torch is there.
        resolving: shell commands of a dry run.
    """
    path.write_text(_UV.format(calls=calls, minor=OWN_PYTHON, python=sys.executable, body=body, resolving=resolving))
    path.chmod(0o755)
    return path
