"""Does what every process does once, whatever the model, before anything is measured or probed.

The first script, load and call of a process compile tables (decompositions, shape functions, builtins) for 30 to 90 ms,
and the first sizing of the pools takes up to 15 ms; the first product of matrices and the first convolution start
libraries and pools, and raise memory. The zygote wakes the compiler, so that not every child has to. Only integers are
computed there: no tensor, no kernel, no thread pool, so ``fork`` stays safe. A process of the benchmark runs operators
as well, so that its first model is not charged with them; on a GPU its context and libraries come with them. It has a
second thread once: a process that never had one allocates faster for ever (0.7 % of a call was measured).
"""

import io
import warnings
from concurrent.futures import ThreadPoolExecutor

import torch

CALLS = 3  # unoptimised, profiled, optimised


class Successor(torch.nn.Module):
    """A module without a tensor in it."""

    def forward(self, number: int):
        return number + 1


def wake():
    torch.set_num_threads(1)  # makes no thread; a child sizes its pools itself, at no cost from here on
    call_loaded(Successor(), 0)


def call_loaded(module, argument, device="cpu"):
    """Script, save and load a module, and call it as often as it takes to be optimised."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # TorchScript's deprecation, from 2.11 on
        archive = io.BytesIO()
        torch.jit.save(torch.jit.script(module), archive)
        archive.seek(0)
        loaded = torch.jit.load(archive, map_location=device)
        for _ in range(CALLS):
            loaded(argument)


QUANTIZING = ("fbgemm", "x86", "onednn", "qnnpack")
# Large enough for all threads of the pool.
FLOATS = {
    "matrices": (
        lambda nn: nn.Sequential(nn.Linear(256, 256), nn.LayerNorm(256), nn.GELU(), nn.Softmax(-1)),
        (256, 256),
    ),
    "convolution": (
        lambda nn: nn.Sequential(nn.Conv2d(3, 16, 3), nn.BatchNorm2d(16), nn.ReLU(), nn.MaxPool2d(2)),
        (4, 3, 32, 32),
    ),
}


def run_operators(device):
    """Run each kind of operator a few times; return kind -> why it could not, empty where it could.

    A release or a device may lack any of them; what can be run is.
    """
    parts = {
        "integers": lambda: call_loaded(Successor(), 0),
        "matrices": lambda: run_floats("matrices", device),
        "convolution": lambda: run_floats("convolution", device),
        "embedding": lambda: run_embedding(device),
        "int8": lambda: run_int8(device),
        "second thread": lambda: run_in_thread(lambda: run_floats("matrices", device)),
    }
    return {name: why_not(part) for name, part in parts.items()}


def why_not(part):
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # deprecation, from 2.11 on
            part()
    except Exception as error:
        return ("%s: %s" % (type(error).__name__, error))[:300]
    return ""


def run_floats(name, device):
    make, shape = FLOATS[name]
    call_loaded(make(torch.nn).eval().to(device), torch.ones(shape, device=device), device)


def run_embedding(device):
    module = torch.nn.Embedding(64, 64).eval().to(device)
    call_loaded(module, torch.zeros(8, 8, dtype=torch.long, device=device), device)


def run_in_thread(part):
    with ThreadPoolExecutor(1) as pool:
        pool.submit(part).result()


def run_int8(device):
    if device != "cpu" or torch.backends.quantized.engine not in QUANTIZING:
        return
    weight = torch.quantize_per_tensor(torch.ones(64, 64), 0.1, 0, torch.qint8)
    packed = torch.ops.quantized.linear_prepack(weight, None)
    for _ in range(CALLS):
        torch.ops.quantized.linear_dynamic(torch.ones(8, 64), packed)
