"""The settings of a request (switches, numerics, pools, variables), applied and read back; none is set silently.

Numerics that the request names are pinned, the rest is left as the release has it, and all are read back for the
record: they change numbers and travel with a process, not with an artifact. ``harness/native/settings`` does the same
in C++.
"""

import os
import re
from contextlib import ExitStack

import torch

from gate_worker import setters
from gate_worker.setters import AT_LOAD, NUMERICS, PROCESS_WIDE, THREAD_LOCAL
from gate_worker.values import trees

_applied = {}


def apply_process_wide(request):
    """Apply what holds for the process, once; return what was requested and what reads back, per name.

    A process that does several requests gets those of one profile, and a pool's size can be set once.
    """
    if not _applied:
        _applied.update(_apply(request))
    return dict(_applied)


def _apply(request):
    """Do so. What every thread sets for itself is tried, and of the environment's variables torch is asked its own."""
    pools = request["pools"]
    torch.set_num_threads(pools["intra_op"])
    torch.set_num_interop_threads(pools["inter_op"])
    report = {
        "intra_op_threads": entry(pools["intra_op"], torch.get_num_threads),
        "inter_op_threads": entry(pools["inter_op"], torch.get_num_interop_threads),
    }
    for name, value in sorted(request["switches"].items()) + numerics(request):
        report[name] = entry(value, applied, name, value, request["device"])
        if name in AT_LOAD:  # each load tells by itself if it has no effect
            report[name]["supported"] = hasattr(torch.jit, name)
    for name, value in sorted((request.get("env") or {}).items()):
        report["env " + name] = (
            entry(value, EFFECTS[name], value) if name in EFFECTS else entry(value, os.environ.get, name)
        )
    return report


def entry(requested, read_back, *arguments):
    try:
        return {"requested": requested, "read_back": read_back(*arguments), "supported": True}
    except Exception as error:
        return {"requested": requested, "supported": False, "reason": str(error)[:300]}


def applied(name, value, device):
    if name in AT_LOAD:
        return value
    if name not in THREAD_LOCAL:
        return PROCESS_WIDE[name](torch, value)
    with THREAD_LOCAL[name](torch, value, device):
        return READ[name](device)


def numerics(request):
    return sorted(request.get("numerics", {}).items())


def thread_context(request):
    """Return a context manager with the thread-local settings of the request; enter it in every thread."""
    stack = ExitStack()
    stack.enter_context(torch.no_grad())
    for name, value in sorted(request["switches"].items()):
        if name in THREAD_LOCAL:
            stack.enter_context(THREAD_LOCAL[name](torch, value, request["device"]))
    stack.enter_context(numerics_context(request))
    return stack


def numerics_context(request):
    """Return a context manager with the thread-local numerics; what cannot be set is on record and left out."""
    stack = ExitStack()
    for name, value in numerics(request):
        if name in THREAD_LOCAL:
            try:
                stack.enter_context(THREAD_LOCAL[name](torch, value, request["device"]))
            except Exception:
                pass
    return stack


def read_back_pool(size, thread, log):
    """Leave a mark where the intra-op pool of the calling thread reads back as another size.

    OpenMP and MKL keep that number per thread, and a new thread has torch's only once torch was asked there.
    """
    read_back = torch.get_num_threads()
    if read_back != size:
        log.mark("intra_op_otherwise:%d" % thread, {"requested": size, "read_back": read_back})


def autocast_dtype(device):
    """Return the name of the dtype that operators are cast to, ``"off"`` without autocast."""
    try:
        enabled, dtype = torch.is_autocast_enabled(device), torch.get_autocast_dtype
    except TypeError:  # before 2.4 there was a function for each device
        if device not in AUTOCAST_BEFORE_2_4:
            raise RuntimeError("torch %s does not tell of autocast on %s" % (torch.__version__, device))
        enabled, dtype = AUTOCAST_BEFORE_2_4[device]()
        return trees.dtype_name(dtype()) if enabled else "off"
    return trees.dtype_name(dtype(device)) if enabled else "off"


AUTOCAST_BEFORE_2_4 = {
    "cpu": lambda: (torch.is_autocast_cpu_enabled(), torch.get_autocast_cpu_dtype),
    "cuda": lambda: (torch.is_autocast_enabled(), torch.get_autocast_gpu_dtype),
}
# What a thread has for itself, as it stands in the calling one.
READ = {
    "flush_denormal": lambda _: setters.flushes_denormals(),
    "autocast": autocast_dtype,
    "optimized_execution": lambda _: bool(setters.private(torch, "_get_graph_executor_optimize")),
    "inference_mode": lambda _: torch.is_inference_mode_enabled(),
}


def state(request):
    """Return every setting that changes numbers as it is in a thread of this process; None where nobody can tell."""
    with numerics_context(request):
        readings = {name: unless_it_fails(setting.read, torch) for name, setting in NUMERICS.items()}
        for name in ("flush_denormal", "autocast"):
            readings[name] = unless_it_fails(READ[name], request["device"])
    return readings


def unless_it_fails(read, *arguments):
    try:
        return read(*arguments)
    except Exception:  # a release that does not know the answer is not an error
        return None


def capability(value):
    line = re.search(r"CPU capability usage: *(.+)", torch.__config__.show())
    name = line.group(1).strip().lower() if line else "unknown"
    return value if (name if name not in ("no avx", "no vsx") else "default") == value.lower() else name


def fuser(value):
    return value if torch._C._jit_texpr_fuser_enabled() == (value != "0") else "without effect"


def fallback(value):
    return value if torch._C._jit_texpr_fallback_allowed() == (value in ("1", "2")) else "without effect"


# Variable -> what torch made of it: the requested value where that has the meant effect.
EFFECTS = {"ATEN_CPU_CAPABILITY": capability, "PYTORCH_TENSOREXPR": fuser, "PYTORCH_TENSOREXPR_FALLBACK": fallback}
