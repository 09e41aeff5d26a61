"""What this environment says of itself. Runs in a forked child: some of the questions start thread pools."""

import os
import platform
import re
import sys

import torch

from gate_worker import device, libraries, settings, wire
from gate_worker.settings import unless_it_fails as ask


def fingerprint(request, run_dir, log):
    del run_dir
    settings.apply_process_wide(request)
    log.mark("fingerprint", take(device.of(request)))
    log.mark("libtorch", libtorch())
    if libraries.Loaded.names:
        log.mark("libraries", libraries.report())


def take(runs_on):
    """Return the fields of ``harness.core.environment.Fingerprint``; None where torch or Linux cannot tell."""
    return {
        "torch": torch.__version__,
        "git_revision": getattr(torch.version, "git_version", None),
        "cuda": torch.version.cuda,
        "cudnn": ask(lambda: str(torch.backends.cudnn.version()) if torch.version.cuda else None),
        "driver": _driver(),
        "gpu": ask(runs_on.described),
        "cpu": _cpu(),
        "isa": _isa(),
        "glibc": ask(lambda: platform.libc_ver()[1]),
        "cxx11_abi": bool(torch._C._GLIBCXX_USE_CXX11_ABI),
        "python": platform.python_version(),
        "intra_op_threads": torch.get_num_threads(),
        "inter_op_threads": torch.get_num_interop_threads(),
        "quantized_engine": ask(lambda: torch.backends.quantized.engine),
        "libraries": ask(libraries.words) or "",
        "operator_version": ask(lambda: int(torch._C._get_max_operator_version())),
        "env_vars": {
            name: value
            for name, value in os.environ.items()
            if name != wire.INDUCTOR_FOLDER  # which is another one in each probe
            and re.match(r"(OMP|MKL|ATEN|PYTORCH|TORCH|CUDA|CUBLAS|CUDNN|NVIDIA|KMP|LD_PRELOAD|MALLOC)", name)
        },
    }


def libtorch():
    """Return what the build of the C++ worker has to know: where headers and libraries lie, and which ABI they have."""
    return {
        "torch": torch.__version__,
        "root": os.path.dirname(os.path.abspath(torch.__file__)),
        "cxx11_abi": bool(torch._C._GLIBCXX_USE_CXX11_ABI),
        "git_revision": getattr(torch.version, "git_version", None),
    }


def _driver():
    try:
        with open("/proc/driver/nvidia/version") as stream:
            match = re.search(r"Kernel Module[^\d\n]*(?:for \S+ +)?(\d+(?:\.\d+)+)", stream.read())
            return match.group(1) if match else None
    except OSError:
        return None


def _cpu():
    try:
        with open("/proc/cpuinfo") as stream:
            for line in stream:
                if line.startswith("model name"):
                    return line.split(":", 1)[1].strip()
    except OSError:
        pass
    return platform.processor() or sys.platform


def _isa():
    capability = getattr(torch.backends.cpu, "get_cpu_capability", None) if hasattr(torch.backends, "cpu") else None
    if capability is not None:
        return capability()
    match = re.search(r"CPU capability usage: (\S+)", torch.__config__.show())
    return match.group(1) if match else None
