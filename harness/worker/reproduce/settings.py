"""The settings that a case was recorded under, applied and read back. A part of ``reproduce.py``."""

from contextlib import ExitStack

from gate_worker.reproduce.process import Untestable
from gate_worker.setters import AT_LOAD, PROCESS_WIDE, THREAD_LOCAL, load_library


def prepared(torch, case, order, report):
    """Load the operator libraries and apply the settings; return a context manager for the thread that calls.

    Raises:
        Untestable: there is no such device here, or this release lacks one of them.
    """
    report.phase("the settings", counts=False)
    for name in order["libraries"]:
        load_library(torch, name)
    if case["device"] != "cpu" and not (
        hasattr(torch, case["device"]) and getattr(torch, case["device"]).is_available()
    ):
        raise Untestable("torch sees no device %s" % case["device"])
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
    for name, value in sorted(profile["switches"].items()) + sorted(profile["numerics"].items()):
        if name in AT_LOAD:
            continue
        if name not in PROCESS_WIDE and name not in THREAD_LOCAL:
            raise Untestable("this script knows no setting %s" % name)
        try:
            if name in THREAD_LOCAL:
                stack.enter_context(THREAD_LOCAL[name](torch, value, case["device"]))
                continue
            read_back = PROCESS_WIDE[name](torch, value)
        except (AttributeError, RuntimeError, TypeError) as error:
            raise Untestable("torch %s cannot set %s to %s: %s" % (torch.__version__, name, value, error))
        if read_back != value:
            raise Untestable("%s was set to %s and reads back as %s" % (name, value, read_back))
    return stack


def limit_memory(limit):
    import resource

    hard = resource.getrlimit(resource.RLIMIT_DATA)[1]
    resource.setrlimit(resource.RLIMIT_DATA, (limit if hard == resource.RLIM_INFINITY else min(limit, hard), hard))
