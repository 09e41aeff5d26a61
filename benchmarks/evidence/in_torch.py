"""Run inside an environment under test: ``python in_torch.py FACT [ARGUMENT ...]`` prints what it found as JSON."""

import ast
import ctypes
import glob
import importlib
import io
import json
import os
import resource
import signal
import statistics
import sys
import tempfile
import threading
import time
import warnings
from typing import Tuple

BEGIN = time.monotonic()
import torch  # noqa: E402

IMPORT_S = time.monotonic() - BEGIN
PROJECT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
CALLS, STEADY_FROM, LOADS = 40, 20, 5
FIRST = 8


class Layers(torch.nn.Module):
    def __init__(self, depth=4, width=64):
        super().__init__()
        self.layers = torch.nn.ModuleList([torch.nn.Linear(width, width) for _ in range(depth)])

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        for layer in self.layers:
            x = torch.relu(layer(x))
        return x


class Activations(torch.nn.Module):
    """Its calls need 38 MB for a moment, in four pieces."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return (torch.relu(x) + torch.sigmoid(x)) * torch.tanh(x)


class Products(torch.nn.Module):
    def forward(self, x: torch.Tensor, times: int) -> torch.Tensor:
        for _ in range(times):
            x = torch.tanh(x @ x)
        return x


class Restored(torch.nn.Module):
    """State whose restoring takes a while."""

    def __init__(self, turns: int):
        super().__init__()
        self.turns = turns

    @torch.jit.export
    def __getstate__(self) -> Tuple[int, bool]:
        return self.turns, self.training

    @torch.jit.export
    def __setstate__(self, state: Tuple[int, bool]) -> None:
        self.training = state[1]
        self.turns = state[0]
        x = torch.ones(64, 64)
        for _ in range(self.turns):
            x = torch.tanh(x @ x)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x


class Chain(torch.nn.Module):
    """Elementwise steps, one after the other."""

    def __init__(self, steps: int):
        super().__init__()
        self.steps = steps

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        for _ in range(self.steps):
            x = torch.cos(x)
        return x


class Successor(torch.nn.Module):
    def forward(self, number: int):
        return number + 1


class Product(torch.nn.Module):
    def forward(self, number: int):
        return number * 3


def saved(module):
    archive = io.BytesIO()
    torch.jit.save(module, archive)
    return archive


def loaded(archive):
    archive.seek(0)
    return torch.jit.load(archive)


def seconds(work):
    begin = time.perf_counter()
    work()
    return time.perf_counter() - begin


# -- the first calls ---------------------------------------------------------------------------------------------------


def first_calls():
    """Return by call, after ``torch.jit.load`` and at the second input set, how it compares with the steady call."""
    torch.set_num_threads(1)
    firsts, shapes, loads = {}, {}, {}
    for name, module, how, ((method, args), *others) in models():
        archive = saved(
            torch.jit.trace(module, args, check_trace=False) if how == "trace" else torch.jit.script(module)
        )
        times, shape_times, load_times = [], [], []
        for _ in range(LOADS):
            begin = time.perf_counter()
            copy = loaded(archive)
            load_times.append(time.perf_counter() - begin)
            times.append(against_steady(getattr(copy, method), args))
            if others and others[0][0] == method:
                shape_times.append(against_steady(getattr(copy, method), others[0][1]))
        firsts[name] = [statistics.median(found) for found in zip(*times)]
        loads[name] = 1e3 * statistics.median(load_times)
        if shape_times:
            shapes[name] = [statistics.median(found) for found in zip(*shape_times)]
    return {"calls": firsts, "shape": shapes, "load_ms": loads}


def against_steady(call, args):
    with torch.no_grad():
        times = [seconds(lambda: call(*args)) for _ in range(CALLS)]
    steady = statistics.median(times[STEADY_FROM:])
    return [value / steady for value in times[:FIRST]]


def models():
    """Yield (name, module, how, [(method, arguments)]) of the zoo: what needs no grid, no reset, no newer release."""
    sys.path.insert(0, PROJECT)
    release = tuple(map(int, torch.__version__.split(".")[:2]))
    for path in sorted(glob.glob(os.path.join(PROJECT, "fixtures", "zoo", "*.py"))):
        with open(path) as stream:
            tree = ast.parse(stream.read())
        file = importlib.import_module("fixtures.zoo." + os.path.basename(path)[:-3])
        for node in tree.body:
            for line in getattr(node, "decorator_list", []):
                if getattr(getattr(line, "func", None), "id", "") != "model":
                    continue
                given = {word.arg: ast.literal_eval(word.value) for word in line.keywords}
                needs = tuple(map(int, given.get("requires", "1.13").split(".")[:2]))
                if "grid" in given or "reset" in given or needs > release:
                    continue
                torch.manual_seed(given.get("seed", 0))
                sample = getattr(file, node.name)()
                module = sample.module.eval() if isinstance(sample.module, torch.nn.Module) else sample.module
                requests = [(call.method, call.args) for call in sample.inputs.values()]
                yield line.args[0].value, module, given.get("how", "script"), requests


# -- the global lock of Python -----------------------------------------------------------------------------------------


def gil():
    """Return which share of the C++ part of a load, and of a call, passes before any other Python thread runs."""
    torch.set_num_threads(1)
    products = torch.jit.script(Products())
    x = torch.rand(64, 64)
    for _ in range(4):
        products(x, 10)
    return {
        "load": silence_of_load(Layers(400)),
        "load with a long `__setstate__`": silence_of_load(Restored(20000)),
        "call": longest_silence(lambda: products(x, 20000)),
    }


def silence_of_load(module):
    """Return what ``longest_silence`` finds of the import in C++, without the Python code before and after it."""
    real, found = torch._C.import_ir_module, []

    def watched(*arguments):
        module = []
        found.append(longest_silence(lambda: module.append(real(*arguments))))
        return module[0]

    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "model.pt")
        torch.jit.script(module).save(path)
        torch.jit.load(path)
        torch._C.import_ir_module = watched
        torch.jit.load(path)
        torch._C.import_ir_module = real
    return found[0]


def longest_silence(work):
    """Return how long ``work`` took, and the longest part of it in which a thread that sleeps 1 ms was held up."""
    beats, over = [], threading.Event()

    def beat():
        while not over.is_set():
            beats.append(time.perf_counter())
            time.sleep(0.001)

    thread = threading.Thread(target=beat)
    thread.start()
    time.sleep(0.05)
    begin = time.perf_counter()
    work()
    end = time.perf_counter()
    over.set()
    thread.join()
    marks = [begin, *(mark for mark in beats if begin < mark < end), end]
    return {"seconds": end - begin, "silent": max(b - a for a, b in zip(marks, marks[1:])) / (end - begin)}


def gil_waiters():
    """Return how often a thread wakes up that waits for the lock, and which share of a CPU that takes."""
    shared = {}
    hold = ctypes.PyDLL(None).usleep  # a PyDLL call keeps the lock

    def wait():
        shared["tid"] = threading.get_native_id()
        while "over" not in shared:
            time.sleep(0)

    thread = threading.Thread(target=wait, daemon=True)
    thread.start()
    time.sleep(0.1)
    before = account(shared["tid"])
    hold(1_000_000)
    hold(1_000_000)
    after = account(shared["tid"])
    shared["over"] = True
    cpu, queued, wakes = (b - a for a, b in zip(before, after))
    return {"wakes_per_s": wakes / 2, "cpu_share": cpu / 2e9, "queued_share": queued / 2e9}


def account(tid):
    """Return CPU time, time in the run queue (both in ns) and voluntary switches of a thread of this process."""
    with open("/proc/self/task/%d/schedstat" % tid) as stream:
        cpu, queued, _ = map(int, stream.read().split())
    with open("/proc/self/task/%d/status" % tid) as stream:
        switches = int(stream.read().partition("\nvoluntary_ctxt_switches:")[2].split()[0])
    return cpu, queued, switches


# -- threads and processes ---------------------------------------------------------------------------------------------


def spin():
    """Return for how long, in ms, the threads of the intra-op pool use a CPU after a call has returned."""
    torch.set_num_threads(2)
    x = torch.rand(4_000_000)
    mine = threading.get_native_id()
    times = []
    for _ in range(60):
        torch.exp(x)
        others = [int(tid) for tid in os.listdir("/proc/self/task") if int(tid) != mine]
        before = sum(account(tid)[0] for tid in others)
        time.sleep(0.05)
        times.append((sum(account(tid)[0] for tid in others) - before) / 1e6)
    return {"ms": times[10:]}


def fork():
    """Return what a fork costs, what the first module of a process costs, and whether a child can still compute."""

    def first_modules():
        torch.set_num_threads(1)
        return [1e3 * seconds(lambda module=module: compiled(module)) for module in (Successor(), Product())]

    cold = in_child(first_modules)
    compiled(Successor())
    warm = in_child(first_modules)
    forks = [1e3 * seconds(lambda: in_child(lambda: 0)) for _ in range(9)]
    torch.set_num_threads(2)
    before = in_child(parallel)
    parallel()
    after = in_child(parallel)
    return {
        "import_s": IMPORT_S,
        "fork_ms": statistics.median(forks),
        "first_module_ms": cold[0],
        "second_module_ms": cold[1],
        "first_module_after_waking_ms": warm[0],
        "operator_in_child": before,
        "operator_in_child_after_one_in_parent": after,
    }


def compiled(module):
    copy = loaded(saved(torch.jit.script(module)))
    for _ in range(3):
        copy(1)


def parallel():
    torch.set_num_threads(2)
    torch.exp(torch.ones(4_000_000))
    return "returns"


def in_child(work, limit_s=5.0):
    """Return what ``work`` returns in a forked child, or that it does not within the limit."""
    read, write = os.pipe()
    pid = os.fork()
    if pid == 0:
        os.write(write, json.dumps(work()).encode())
        os._exit(0)
    os.close(write)
    limit = time.monotonic() + limit_s
    while time.monotonic() < limit and os.waitpid(pid, os.WNOHANG)[0] == 0:
        time.sleep(0.0005)
    if time.monotonic() >= limit:
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)
    text = os.read(read, 65536)
    os.close(read)
    return json.loads(text) if text else "hangs"


def serve(width="128"):
    """Answer each line of stdin, the seconds that a block shall take, with the median time of its calls."""
    torch.set_num_threads(1)
    torch.manual_seed(0)
    call = loaded(saved(torch.jit.script(Layers(8, int(width)).eval())))
    x = torch.rand(16, int(width))
    with torch.no_grad():
        for _ in range(200):
            call(x)
        print("ready", flush=True)
        for line in sys.stdin:
            end, times = time.perf_counter() + float(line), []
            while time.perf_counter() < end:
                times.append(seconds(lambda: call(x)))
            print(statistics.median(times), flush=True)


def allocator():
    """Return what a call costs that needs 38 MB for a moment, in ms and in page faults, after some other allocations."""
    torch.set_num_threads(1)
    call = loaded(saved(torch.jit.script(Activations().eval())))
    x = torch.rand(1536, 1536)
    with torch.no_grad():
        for _ in range(5):
            call(x)
        faults = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
        times = [seconds(lambda: call(x)) for _ in range(50)]
        faults = resource.getrusage(resource.RUSAGE_SELF).ru_minflt - faults
    return {"ms": 1e3 * statistics.median(times), "faults": faults / len(times)}


def sleep():
    """Do nothing, with two threads in torch and one in Python, for a debugger to look at."""
    torch.set_num_threads(2)
    torch.exp(torch.ones(4_000_000))
    print("ready", flush=True)
    time.sleep(300)


# -- switches, fused programs, archives ----------------------------------------------------------------------------------

SWITCHES = (
    ("_jit_set_profiling_mode", None),
    ("_jit_set_profiling_executor", None),
    ("_jit_set_texpr_fuser_enabled", "_jit_texpr_fuser_enabled"),
    ("_jit_override_can_fuse_on_cpu", "_jit_can_fuse_on_cpu"),
    ("_jit_set_te_must_use_llvm_cpu", "_jit_get_te_must_use_llvm_cpu"),
    ("_jit_set_nvfuser_enabled", "_jit_nvfuser_enabled"),
)


def switches():
    """Return of each switch whether it exists, and whether it reads back as it was set."""
    found = {}
    for setter, getter in SWITCHES:
        put, get = getattr(torch._C, setter, None), getattr(torch._C, getter or setter, None)
        if put is None:
            found[setter] = "does not exist"
        elif get is None:
            found[setter] = "exists, cannot be read back"
        else:
            seen = []
            try:
                for value in (True, False, True):
                    put(value)
                    seen.append(get() if getter else put(value))
                found[setter] = "reads back" if seen == [True, False, True] else "no error, reads back %s" % seen[0]
            except RuntimeError as error:
                found[setter] = "raises: %s" % str(error).splitlines()[0].rstrip(".")
    return found


MITIGATIONS = {
    "nothing": lambda: None,
    "profiling off": lambda: torch._C._jit_set_profiling_mode(False),
    "profiling executor off": lambda: torch._C._jit_set_profiling_executor(False),
    "fuser off": lambda: torch._C._jit_set_texpr_fuser_enabled(False),
    "fusion depth 0": lambda: torch.jit.set_fusion_strategy([("STATIC", 0), ("DYNAMIC", 0)]),
    "optimized execution off": lambda: torch._C._set_graph_executor_optimize(False),
}


def fused_calls(fusion, *steps):
    """Return the milliseconds of CPU of the slowest of four calls of programs of so many steps."""
    torch.set_num_threads(1)
    torch._C._jit_set_te_must_use_llvm_cpu(False)
    torch._C._jit_override_can_fuse_on_cpu(fusion == "on")
    slowest_ms = {}
    for text in steps:
        x = torch.randn(256, 256)
        traced = torch.jit.trace(Chain(int(text)), (x,))
        times = []
        for _ in range(4):
            begin = time.process_time()
            traced(x)
            times.append(time.process_time() - begin)
        slowest_ms[text] = 1e3 * max(times)
    return slowest_ms


def hang(mitigation):
    """Print each call that returns of a program that never ends where it is fused, after a line when it is ready."""
    sys.path.insert(0, PROJECT)
    from fixtures.planted.fused import ENDLESS, BusyIfFused

    torch._C._jit_override_can_fuse_on_cpu(True)
    torch._C._jit_set_te_must_use_llvm_cpu(False)
    x = torch.randn(13)
    archive = saved(torch.jit.script(BusyIfFused(ENDLESS)))
    MITIGATIONS[mitigation]()
    module = loaded(archive)
    print("ready", flush=True)
    for _ in range(4):
        print(json.dumps(seconds(lambda: module(x))), flush=True)
    os._exit(0)


def save(*folders):
    """Write every model of the zoo into each folder."""
    for name, module, how, requests in models():
        exported = (
            torch.jit.trace(module, requests[0][1], check_trace=False) if how == "trace" else torch.jit.script(module)
        )
        for folder in folders:
            exported.save(os.path.join(folder, name + ".pt"))
    return {}


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    answer = globals()[sys.argv[1]](*sys.argv[2:])
    if answer is not None:
        print(json.dumps(answer), flush=True)
    os._exit(0)
