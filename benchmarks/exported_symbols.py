"""Writes ``harness/checks/linking/known_symbols.xz``: what LibTorch of each release exports, needs and brings.

``python -m benchmarks.exported_symbols 2.16.0`` reads the libraries of the release's wheel for Linux on x86-64 on PyPI
(in parts: nothing is installed) and adds it to the index or replaces what it had of that release.
"""

import json
import re
import sys
import urllib.request
import zipfile

import fsspec
from packaging.version import Version

from harness.apps.link_check.link_check import of_wheel
from harness.checks.linking import known_symbols
from harness.checks.linking.libtorch import LibTorch

SIMPLE = "https://pypi.org/simple/torch/"


def wheel_of(release: str) -> str:
    """Return the address of the wheel for Linux on x86-64 and Python 3.11, the newest that all known releases have."""
    asked = urllib.request.Request(SIMPLE, headers={"Accept": "application/vnd.pypi.simple.v1+json"})
    with urllib.request.urlopen(asked) as answer:
        files = json.load(answer)["files"]
    name = re.compile(rf"torch-{re.escape(release)}(-\d+)?-cp311-cp311-manylinux.*x86_64\.whl")
    return str(next(file["url"] for file in files if name.fullmatch(file["filename"])))


def asked(release: str) -> LibTorch:
    """Read the libraries and headers in the wheel of ``release``."""
    with fsspec.open(wheel_of(release), block_size=2**24).open() as stream, zipfile.ZipFile(stream) as wheel:
        return of_wheel(release, wheel)


def main() -> None:
    names = known_symbols.known() if known_symbols.FILE.exists() else ()
    releases = {name: known_symbols.release(name) for name in names}
    for release in sys.argv[1:]:
        releases[release] = asked(release)
        print(release, len(releases[release].exported), flush=True)
    known_symbols.write({name: releases[name] for name in sorted(releases, key=Version)})


if __name__ == "__main__":
    main()
