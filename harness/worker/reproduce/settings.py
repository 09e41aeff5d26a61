"""The settings that a case was recorded under, applied and read back. A part of ``reproduce.py``."""

import importlib
from contextlib import ExitStack

from gate_worker.reproduce.process import Untestable

AT_LOAD = ("freeze", "optimize_for_inference")


def prepared(torch, case, order, report):
    """Load the operator libraries and apply the settings; return a context manager for the thread that calls.

    Raises:
        Untestable: there is no such device here, or this release lacks one of them.
    """
    report.phase("the settings", counts=False)
    if case["device"] == "cuda" and not torch.cuda.is_available():
        raise Untestable("torch sees no GPU")
    for name in order["libraries"]:
        torch.ops.load_library(name) if name.endswith(".so") else importlib.import_module(name)
    if case.get("memory_bytes"):
        limit_memory(case["memory_bytes"])
    profile = order["profile"]
    torch.set_num_threads(profile["intra_op_threads"])
    torch.set_num_interop_threads(profile["inter_op_threads"])
    return for_thread(torch, case, profile)


def for_thread(torch, case, profile):
    """Apply the switches; return a context manager for this thread: some of them hold for the thread alone."""
    stack = ExitStack()
    stack.enter_context(torch.no_grad())
    settings = Settings(torch, case["device"])
    for name, value in sorted(profile["switches"].items()) + sorted(profile["numerics"].items()):
        if name in AT_LOAD:
            continue
        try:
            settings.apply(name, value, stack)
        except (AttributeError, RuntimeError, TypeError) as error:
            raise Untestable("torch %s cannot set %s to %s: %s" % (torch.__version__, name, value, error))
    return stack


def limit_memory(limit):
    import resource

    hard = resource.getrlimit(resource.RLIMIT_DATA)[1]
    resource.setrlimit(resource.RLIMIT_DATA, (limit if hard == resource.RLIM_INFINITY else min(limit, hard), hard))


def after_load(torch, module, switches, methods):
    """Return what the switches make of a module that was just loaded; ``methods`` are those that are called."""
    wanted = [name for name in AT_LOAD if switches.get(name)]
    if not wanted:
        return module
    methods = [name for name in methods if name != "forward" and module._c._has_method(name)]
    if "optimize_for_inference" in wanted:  # which freezes as well
        return torch.jit.optimize_for_inference(module, methods)
    return torch.jit.freeze(module, preserved_attrs=methods)


class Settings:
    """Settings of torch by name; those under ``torch._C`` are private and come and go."""

    def __init__(self, torch, device):
        self.torch, self.device = torch, device

    def apply(self, name, value, stack):
        """Apply one for the process, or on ``stack`` for this thread."""
        try:
            make = getattr(self, "_" + name)
        except AttributeError:
            raise Untestable("this script knows no setting %s" % name)
        found = make(value)
        if hasattr(found, "__enter__"):
            stack.enter_context(found)
        elif found != value:
            raise Untestable("%s was set to %s and reads back as %s" % (name, value, found))

    def _toggled(self, setter, value):
        """Set it twice: a setter returns what stood before."""
        getattr(self.torch._C, setter)(bool(value))
        return bool(getattr(self.torch._C, setter)(bool(value)))

    def _profiling(self, value):
        return self._toggled("_jit_set_profiling_mode", value)

    def _profiling_executor(self, value):
        return self._toggled("_jit_set_profiling_executor", value)

    def _texpr_fuser(self, value):
        self.torch._C._jit_set_texpr_fuser_enabled(bool(value))
        return bool(self.torch._C._jit_texpr_fuser_enabled())

    def _fusion_depth(self, value):
        strategy = [("STATIC", int(value)), ("DYNAMIC", int(value))]
        self.torch.jit.set_fusion_strategy(strategy)
        return max(depth for _, depth in self.torch.jit.set_fusion_strategy(strategy))

    def _cpu_fusion(self, value):
        self.torch._C._jit_override_can_fuse_on_cpu(bool(value))
        self.torch._C._jit_set_te_must_use_llvm_cpu(not value)
        return bool(self.torch._C._jit_can_fuse_on_cpu())

    def _optimized_execution(self, value):
        return self.torch.jit.optimized_execution(bool(value))

    def _inference_mode(self, value):
        return self.torch.inference_mode(bool(value))

    def _quantized_engine(self, value):
        self.torch.backends.quantized.engine = value
        return self.torch.backends.quantized.engine

    def _matmul_precision(self, value):
        self.torch.set_float32_matmul_precision(value)
        return self.torch.get_float32_matmul_precision()

    def _cudnn(self, value):
        self.torch.backends.cudnn.enabled = value
        return self.torch.backends.cudnn.enabled

    def _mkldnn(self, value):
        self.torch._C._set_mkldnn_enabled(value)
        return self.torch._C._get_mkldnn_enabled()

    def _cudnn_tf32(self, value):
        self.torch.backends.cudnn.allow_tf32 = value
        return self.torch.backends.cudnn.allow_tf32

    def _deterministic(self, value):
        self.torch.use_deterministic_algorithms(value)
        return self.torch.are_deterministic_algorithms_enabled()

    def _flush_denormal(self, value):
        self.torch.set_flush_denormal(value)
        return float("5e-310") * float("1.0") == 0.0

    def _autocast(self, value):
        if value == "off":
            return self.torch.autocast(self.device, enabled=False)
        return self.torch.autocast(self.device, dtype=getattr(self.torch, value))
