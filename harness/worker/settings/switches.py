"""JIT switches by name. Each is applied, read back, or reported as unsupported here; never set silently.

Names under ``torch._C`` come and go between releases, so each is looked up when it is used.
"""

from contextlib import ExitStack

import torch

from gate_worker.settings import environment_effects, numeric_state


def _private(setter, *arguments):
    function = getattr(torch._C, setter, None)
    if function is None:
        raise AttributeError("torch._C.%s does not exist in torch %s" % (setter, torch.__version__))
    return function(*arguments)


def _toggle(setter):
    """Apply through a setter that returns the previous value; read back by setting the same value again."""

    def apply(value):
        _private(setter, bool(value))
        return bool(_private(setter, bool(value)))

    return apply


def _texpr_fuser(value):
    _private("_jit_set_texpr_fuser_enabled", bool(value))
    return bool(_private("_jit_texpr_fuser_enabled"))


def _fusion_depth(value):
    strategy = [("STATIC", int(value)), ("DYNAMIC", int(value))]
    torch.jit.set_fusion_strategy(strategy)
    return max(depth for _, depth in torch.jit.set_fusion_strategy(strategy))


def _cpu_fusion(value):
    _private("_jit_override_can_fuse_on_cpu", bool(value))
    _private("_jit_set_te_must_use_llvm_cpu", not value)
    return bool(_private("_jit_can_fuse_on_cpu"))


# Process-wide: set once, before anything is loaded.
PROCESS_WIDE = {
    "profiling": _toggle("_jit_set_profiling_mode"),
    "profiling_executor": _toggle("_jit_set_profiling_executor"),
    "texpr_fuser": _texpr_fuser,
    "fusion_depth": _fusion_depth,
    "cpu_fusion": _cpu_fusion,
}

# Thread-local: a context that every thread enters for itself.
THREAD_LOCAL = {
    "optimized_execution": lambda value: torch.jit.optimized_execution(bool(value)),
    "inference_mode": lambda value: torch.inference_mode(bool(value)),
}


def _is_free(module):
    """Whether a module has an attribute that freezing takes away; of the TorchScript, as eval() sets one in Python."""
    return module._c.hasattr("training")


def _freeze(module, methods):
    if not _is_free(module):
        raise RuntimeError("cannot be frozen: the archive is frozen already")
    return torch.jit.freeze(module, preserved_attrs=methods)


def _optimize_for_inference(module, methods):
    return torch.jit.optimize_for_inference(module, methods)


# Of a module: done to each one that is loaded, in this order; ``methods`` are those beside forward that are called.
AT_LOAD = {
    "freeze": _freeze,
    "optimize_for_inference": _optimize_for_inference,
}


def after_load(module, request_switches, methods):
    """Return what the switches make of a module that was just loaded."""
    wanted = [name for name in AT_LOAD if request_switches.get(name)]
    if not wanted:
        return module
    methods = [name for name in methods if name != "forward" and module._c._has_method(name)]
    for name in wanted:
        if name == "optimize_for_inference" or "optimize_for_inference" not in wanted:  # which freezes as well
            module = AT_LOAD[name](module, methods)
    if _is_free(module):
        raise RuntimeError("%s had no effect on the module" % " and ".join(wanted))
    return module


def _read_back_thread_local(name):
    if name == "inference_mode":
        return torch.is_inference_mode_enabled()
    return bool(_private("_get_graph_executor_optimize"))


def apply_process_wide(request):
    """Set pools, process-wide switches and numerics; return what was requested and what reads back, per name."""
    report = {}
    pools = request["pools"]
    torch.set_num_threads(pools["intra_op"])
    torch.set_num_interop_threads(pools["inter_op"])
    report["intra_op_threads"] = _entry(pools["intra_op"], torch.get_num_threads())
    report["inter_op_threads"] = _entry(pools["inter_op"], torch.get_num_interop_threads())
    for name, value in sorted(request["switches"].items()):
        if name in THREAD_LOCAL:
            with THREAD_LOCAL[name](value):
                report[name] = _entry(value, _read_back_thread_local(name))
            continue
        if name in AT_LOAD:  # each load tells by itself if it has no effect
            report[name] = dict(_entry(value, value), supported=hasattr(torch.jit, name))
            continue
        try:
            report[name] = _entry(value, PROCESS_WIDE[name](value))
        except (AttributeError, KeyError, RuntimeError, TypeError) as error:
            report[name] = {"requested": value, "supported": False, "reason": str(error)[:300]}
    report.update(numeric_state.apply(request))
    report.update(environment_effects.read_back(request.get("env") or {}))
    return report


def _entry(requested, read_back):
    return {"requested": requested, "read_back": read_back, "supported": True}


def size_thread_pool(request, thread, log):
    """Give the calling thread the intra-op pool of the request; a mark says where another size reads back.

    OpenMP and MKL keep that number per thread, and a new thread has torch's only once torch was asked there.
    """
    requested, read_back = request["pools"]["intra_op"], torch.get_num_threads()
    if read_back != requested:
        log.mark("intra_op_otherwise:%d" % thread, {"requested": requested, "read_back": read_back})


def thread_context(request):
    """Return a context manager with the thread-local switches of the request; enter it in every thread."""
    stack = ExitStack()
    stack.enter_context(torch.no_grad())
    for name, value in sorted(request["switches"].items()):
        if name in THREAD_LOCAL:
            stack.enter_context(THREAD_LOCAL[name](value))
    stack.enter_context(numeric_state.thread_context(request))
    return stack
