"""Which driver a CUDA needs, and on which GPU the kernels of a build run. Pure."""

import re
from collections.abc import Iterable
from typing import Final

from packaging.version import InvalidVersion, Version

# "CUDA Toolkit and Minimum Required Driver Version for CUDA Minor Version Compatibility", of Linux x86-64:
# https://docs.nvidia.com/cuda/cuda-toolkit-release-notes/ and, for 10.2,
# https://docs.nvidia.com/deploy/cuda-compatibility/minor-version-compatibility.html. From 11 on, every minor version
# runs on the first driver of its major one.
MINIMAL_DRIVERS: Final = {"13": "580", "12": "525.60.13", "11": "450.80.02", "10.2": "440.33"}


def minimal_driver(cuda: str) -> str | None:
    """Return the oldest driver for ``"12.4"``; None where the table does not say."""
    return MINIMAL_DRIVERS.get(cuda) or MINIMAL_DRIVERS.get(cuda.partition(".")[0])


def is_older(version: str, least: str) -> bool | None:
    """Return whether one version is older than another; None where one of them is no version."""
    try:
        return Version(version) < Version(least)
    except InvalidVersion:
        return None


def runs_on(architectures: Iterable[str], capability: str) -> bool | None:
    """Return whether a GPU of this compute capability has kernels among ``architectures``; None where it is not told.

    A binary for X.y runs on X.z where z >= y; PTX (``compute_XY``) is compiled for every later GPU.
    https://docs.nvidia.com/cuda/cuda-c-programming-guide/#binary-compatibility
    """
    match = re.fullmatch(r"(\d+)\.(\d)", capability)
    if match is None:
        return None
    gpu = (int(match[1]), int(match[2]))
    for kind, major, minor in re.findall(r"\b(sm|compute)_(\d+)(\d)", " ".join(architectures)):
        built = (int(major), int(minor))
        if (kind == "sm" and built[0] == gpu[0] and built <= gpu) or (kind == "compute" and built <= gpu):
            return True
    return False
