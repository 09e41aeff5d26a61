"""Settings of torch that change numbers and travel with a process, not with an artifact.

Those that the request names are pinned, the rest is left as the release has it; all are read back for the record.
``harness/native/settings/numeric_state.hpp`` does the same in C++.
"""

from contextlib import ExitStack, contextmanager

import torch

from gate_worker.values import trees


def _quantized_engine(value):
    torch.backends.quantized.engine = value
    return torch.backends.quantized.engine


def _matmul_precision(value):
    torch.set_float32_matmul_precision(value)
    return torch.get_float32_matmul_precision()


def _cudnn_tf32(value):
    torch.backends.cudnn.allow_tf32 = value
    return torch.backends.cudnn.allow_tf32


def _cudnn(value):
    torch.backends.cudnn.enabled = value
    return torch.backends.cudnn.enabled


def _mkldnn(value):
    torch._C._set_mkldnn_enabled(value)
    return torch._C._get_mkldnn_enabled()


def _deterministic(value):
    torch.use_deterministic_algorithms(value)
    return torch.are_deterministic_algorithms_enabled()


@contextmanager
def _flush_denormal(value, _):
    before = flushes_denormals()
    if not torch.set_flush_denormal(value) and value:
        raise RuntimeError("this processor cannot flush denormal numbers to zero")
    try:
        yield
    finally:
        torch.set_flush_denormal(before)


def _autocast(value, device):
    if value == "off":
        return torch.autocast(device, enabled=False)
    return torch.autocast(device, dtype=getattr(torch, value))


# Process-wide: set once, before anything is loaded.
PROCESS_WIDE = {
    "quantized_engine": _quantized_engine,
    "matmul_precision": _matmul_precision,
    "cudnn": _cudnn,
    "cudnn_tf32": _cudnn_tf32,
    "mkldnn": _mkldnn,
    "deterministic": _deterministic,
}
# Of the thread: a context that every thread enters for itself.
THREAD_LOCAL = {"flush_denormal": _flush_denormal, "autocast": _autocast}


def requested(request):
    return sorted(request.get("numerics", {}).items())


def apply(request):
    """Pin what the request names; return what was requested and what reads back, per name."""
    report = {}
    for name, value in requested(request):
        try:
            if name in THREAD_LOCAL:
                with THREAD_LOCAL[name](value, request["device"]):
                    read_back = READ[name](request["device"])
            else:
                read_back = PROCESS_WIDE[name](value)
            report[name] = {"requested": value, "read_back": read_back, "supported": True}
        except Exception as error:
            report[name] = {"requested": value, "supported": False, "reason": str(error)[:300]}
    return report


def thread_context(request):
    """Return a context manager with the settings of the thread; what cannot be set is on record and left out."""
    stack = ExitStack()
    for name, value in requested(request):
        if name in THREAD_LOCAL:
            try:
                stack.enter_context(THREAD_LOCAL[name](value, request["device"]))
            except Exception:
                pass
    return stack


def flushes_denormals(_=None):
    tiny = float("5e-310")
    return tiny * float("1.0") == 0.0


def autocast_dtype(device):
    """Return the name of the dtype that operators are cast to, ``"off"`` without autocast."""
    try:
        enabled, dtype = torch.is_autocast_enabled(device), torch.get_autocast_dtype
    except TypeError:  # before 2.4 there was a function for each device
        enabled = torch.is_autocast_cpu_enabled() if device == "cpu" else torch.is_autocast_enabled()
        dtype = {"cpu": torch.get_autocast_cpu_dtype, "cuda": torch.get_autocast_gpu_dtype}[device]
        return trees.dtype_name(dtype()) if enabled else "off"
    return trees.dtype_name(dtype(device)) if enabled else "off"


READ = {
    "quantized_engine": lambda _: torch.backends.quantized.engine,
    "matmul_precision": lambda _: torch.get_float32_matmul_precision(),
    "cudnn": lambda _: torch.backends.cudnn.enabled,
    "cudnn_tf32": lambda _: torch.backends.cudnn.allow_tf32,
    "mkldnn": lambda _: torch._C._get_mkldnn_enabled(),
    "deterministic": lambda _: torch.are_deterministic_algorithms_enabled(),
    "flush_denormal": flushes_denormals,
    "autocast": autocast_dtype,
}


def state(request):
    """Return every setting as it is in a thread of this process; None where this release cannot tell."""
    found = {}
    with thread_context(request):
        for name, read in READ.items():
            try:
                found[name] = read(request["device"])
            except Exception:
                found[name] = None
    return found
