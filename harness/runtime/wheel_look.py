"""Reads from a built environment what its torch asks of a machine, without importing it."""

import mmap
import re
from pathlib import Path
from typing import Final

from harness.domain.host import Wheel
from harness.runtime.small_files import text_of

INSTALLED: Final = "the installed wheel"

_CUDA: Final = re.compile(r"^cuda\b[^=\n]*=\s*(?:'([\d.]+)'|None)", re.MULTILINE)
_GLIBC: Final = re.compile(r"^Tag: \S*manylinux_(\d+)_(\d+)_", re.MULTILINE)
# torch/csrc/cuda/Module.cpp keeps the architectures as one string: what torch.cuda.get_arch_list() splits.
_ARCHITECTURES: Final = re.compile(rb"\0((?:(?:sm|compute)_\d+[af]? ?)+)\0")


def look(site: Path) -> Wheel | None:
    """Return what the torch in ``site``, a site-packages folder, asks for; None where there is none.

    Reads ``torch/version.py``, the tag of the wheel, and the list of architectures out of ``libtorch_python.so``
    (30 MB; 60 ms).
    """
    found = _CUDA.search(text_of(site / "torch" / "version.py"))
    if found is None:
        return None
    return Wheel(
        cuda=found[1],
        architectures=_architectures(site / "torch" / "lib" / "libtorch_python.so") if found[1] else (),
        glibc=_glibc(site),
        source=INSTALLED,
    )


def site_of(interpreter: Path) -> Path | None:
    """Return the site-packages folder beside an environment's interpreter, without starting it."""
    return next(iter(sorted(interpreter.parent.parent.glob("lib/python3.*/site-packages"))), None)


def _glibc(site: Path) -> str | None:
    """Return the oldest glibc from the wheel's tag; ``linux_x86_64`` and ``manylinux1`` tell nothing true."""
    for path in sorted(site.glob("torch-*.dist-info/WHEEL")):
        found = [(int(major), int(minor)) for major, minor in _GLIBC.findall(text_of(path))]
        if found:
            return ".".join(map(str, min(found)))
    return None


def _architectures(library: Path) -> tuple[str, ...]:
    try:
        with library.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as content:
            found = _ARCHITECTURES.search(content)
            return tuple(found[1].decode().split()) if found else ()
    except (OSError, ValueError):  # ValueError: an empty file cannot be mapped
        return ()
