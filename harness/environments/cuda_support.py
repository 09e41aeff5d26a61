"""Which driver a CUDA needs, on which GPU the kernels of a build run, and what NVIDIA's messages mean. Pure."""

import re
from collections.abc import Iterable
from typing import Final

from packaging.version import InvalidVersion, Version

# "CUDA Toolkit and Minimum Required Driver Version for CUDA Minor Version Compatibility", of Linux x86-64:
# https://docs.nvidia.com/cuda/cuda-toolkit-release-notes/ and, for 10.2,
# https://docs.nvidia.com/deploy/cuda-compatibility/minor-version-compatibility.html. From 11 on, every minor version
# runs on the first driver of its major one.
MINIMAL_DRIVERS: Final = {"13": "580", "12": "525.60.13", "11": "450.80.02", "10.2": "440.33"}
LINK_THEM = (
    "On the host run nvidia-ctk system create-dev-char-symlinks --create-all, or use native.cgroupdriver=cgroupfs."
)
# What is said of a GPU, by NVML through nvidia-smi or by our own two looks, what it means, and advice. The first that
# is found in the text counts. https://github.com/NVIDIA/nvidia-container-toolkit/issues/48 has the first one; its issue
# 69 has the second one in a container alone.
TROUBLES = (
    (
        "initialize NVML: Unknown Error",
        "The container has lost its GPU: systemd has rewritten its device rules, as on any systemctl daemon-reload.",
        f"Restart the container. {LINK_THEM}",
    ),
    (
        r"device handle|GPU is lost|GPU requires|No devices were found|no longer listed",
        "The driver runs and cannot reach the GPU: off the bus, waiting for a reset, or barred from this container.",
        "Look for NVRM: Xid in the host's dmesg; restart the container, reset the GPU, or reboot the host.",
    ),
    (
        "Insufficient Permissions",
        "This user may not open the GPU's device files, so torch sees no GPU.",
        "Look who may (ls -l /dev/nvidia*), and join that group or give the container its GPU (docker run --gpus all).",
    ),
    (
        "Driver/library version mismatch",
        "The driver was updated while its old kernel module is still loaded, so nothing new can use the GPU.",
        "Reboot the host, or unload and load the nvidia kernel modules.",
    ),
    (
        "couldn't communicate",
        "The kernel module is not loaded, so torch sees no GPU.",
        "Load it with modprobe nvidia, or install the driver for this kernel.",
    ),
    (
        "hides every GPU",
        "torch sees no GPU on a machine that has one, so a run ends before it begins.",
        "Name a GPU in it, unset it, or run with --device cpu.",
    ),
)


def minimal_driver(cuda: str) -> str | None:
    """Return the oldest driver for ``"12.4"``; None where the table does not say."""
    return MINIMAL_DRIVERS.get(cuda) or MINIMAL_DRIVERS.get(cuda.partition(".")[0])


def is_older(version: str, least: str) -> bool | None:
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


def gpu_trouble(text: str) -> tuple[str, str] | None:
    """Return what is meant by words that are said of a GPU, and the advice; None where it is not known."""
    return next(((meaning, advice) for message, meaning, advice in TROUBLES if re.search(message, text)), None)
