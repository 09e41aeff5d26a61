"""Settings of torch by name, each set and read back, and how an operator library is loaded.

Shared by the worker and by the ``reproduce.py`` of reproducers.

Those under ``torch._C`` are private and come and go between releases, so each is looked up when it is used.
"""

import importlib
import importlib.util
import os
import sys
from contextlib import contextmanager
from operator import attrgetter


def is_program(library):
    return library.endswith(".py")


def is_file(library):
    return library.endswith(".so") or is_program(library) or "/" in library


def load_library(torch, name):
    if not is_file(name):
        importlib.import_module(name)
    elif is_program(name):
        module = os.path.splitext(os.path.basename(name))[0]
        spec = importlib.util.spec_from_file_location(module, name)
        sys.modules[module] = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(sys.modules[module])
    else:
        torch.ops.load_library(name)


def private(torch, setter, *arguments):
    function = getattr(torch._C, setter, None)
    if function is None:
        raise AttributeError("torch._C.%s does not exist in torch %s" % (setter, torch.__version__))
    return function(*arguments)


def toggled(setter):
    """Return what sets it and reads back by setting it again: such a setter returns what stood before."""

    def apply(torch, value):
        private(torch, setter, bool(value))
        return bool(private(torch, setter, bool(value)))

    return apply


def switch(setter, getter):
    def apply(torch, value):
        private(torch, setter, bool(value))
        return bool(private(torch, getter))

    return apply


class Numeric:
    """Sets an attribute of torch, or what its function ``path`` tells and ``setter`` sets; reads it back."""

    def __init__(self, path, setter=""):
        self.path, self.setter = path, setter

    def __call__(self, torch, value):
        if self.setter:
            attrgetter(self.setter)(torch)(value)
        else:
            place, _, name = self.path.rpartition(".")
            setattr(attrgetter(place)(torch), name, value)
        return self.read(torch)

    def read(self, torch):
        value = attrgetter(self.path)(torch)
        return value() if self.setter else value


def fusion_depth(torch, value):
    strategy = [("STATIC", int(value)), ("DYNAMIC", int(value))]
    torch.jit.set_fusion_strategy(strategy)
    return max(depth for _, depth in torch.jit.set_fusion_strategy(strategy))


def cpu_fusion(torch, value):
    private(torch, "_jit_override_can_fuse_on_cpu", bool(value))
    private(torch, "_jit_set_te_must_use_llvm_cpu", not value)
    return bool(private(torch, "_jit_can_fuse_on_cpu"))


@contextmanager
def flush_denormal(torch, value, _device):
    before = flushes_denormals()
    if not torch.set_flush_denormal(value) and value:
        raise RuntimeError("this processor cannot flush denormal numbers to zero")
    try:
        yield
    finally:
        torch.set_flush_denormal(before)


def flushes_denormals():
    return float("5e-310") * float("1.0") == 0.0


def autocast(torch, value, device):
    if value == "off":
        return torch.autocast(device, enabled=False)
    return torch.autocast(device, dtype=getattr(torch, value))


# Those that change numbers and that a process has as a whole.
NUMERICS = {
    "quantized_engine": Numeric("backends.quantized.engine"),
    "matmul_precision": Numeric("get_float32_matmul_precision", "set_float32_matmul_precision"),
    "cudnn": Numeric("backends.cudnn.enabled"),
    "cudnn_tf32": Numeric("backends.cudnn.allow_tf32"),
    "mkldnn": Numeric("_C._get_mkldnn_enabled", "_C._set_mkldnn_enabled"),
    "deterministic": Numeric("are_deterministic_algorithms_enabled", "use_deterministic_algorithms"),
}
# Set once, before anything is loaded.
PROCESS_WIDE = {
    "profiling": toggled("_jit_set_profiling_mode"),
    "profiling_executor": toggled("_jit_set_profiling_executor"),
    "texpr_fuser": switch("_jit_set_texpr_fuser_enabled", "_jit_texpr_fuser_enabled"),
    "fusion_depth": fusion_depth,
    "cpu_fusion": cpu_fusion,
    "onednn_fusion": switch("_jit_set_llga_enabled", "_jit_llga_enabled"),
    **NUMERICS,
}
# A context that every thread enters for itself.
THREAD_LOCAL = {
    "optimized_execution": lambda torch, value, _: torch.jit.optimized_execution(bool(value)),
    "inference_mode": lambda torch, value, _: torch.inference_mode(bool(value)),
    "flush_denormal": flush_denormal,
    "autocast": autocast,
}
# Done to each module that is loaded.
AT_LOAD = ("freeze", "optimize_for_inference")


def after_load(torch, module, switches, methods):
    """Return what the switches make of a module that was just loaded; ``methods`` are those that are called."""
    wanted = [name for name in AT_LOAD if switches.get(name)]
    if not wanted:
        return module
    methods = [name for name in methods if name != "forward" and module._c._has_method(name)]
    if "optimize_for_inference" in wanted:  # which freezes as well
        module = torch.jit.optimize_for_inference(module, methods)
    elif is_free(module):
        module = torch.jit.freeze(module, preserved_attrs=methods)
    else:
        raise RuntimeError("cannot be frozen: the archive is frozen already")
    if is_free(module):
        raise RuntimeError("%s had no effect on the module" % " and ".join(wanted))
    return module


def is_free(module):
    """Whether a module has an attribute that freezing takes away; of the TorchScript, as eval() sets one in Python."""
    return module._c.hasattr("training")
