"""Does in a process of the benchmark what every process does once, so that its first model is not charged with it.

The first load, the first product of matrices, the first convolution compile tables, start libraries and pools, and
raise memory, whatever the model. On a GPU its context and libraries come with them.
"""

import warnings

import torch

from gate_worker import compiler_warmup

QUANTIZING = ("fbgemm", "x86", "onednn", "qnnpack")
FLOAT_PARTS = {
    "matrices": lambda nn: nn.Sequential(nn.Linear(256, 256), nn.LayerNorm(256), nn.GELU(), nn.Softmax(-1)),
    "convolution": lambda nn: nn.Sequential(nn.Conv2d(3, 16, 3), nn.BatchNorm2d(16), nn.ReLU(), nn.MaxPool2d(2)),
}
SHAPES = {"matrices": (256, 256), "convolution": (4, 3, 32, 32)}  # large enough for all threads of the pool


def run(device):
    """Run each kind of operator a few times; return kind -> why it could not, empty where it could.

    A release or a device may lack any of them; what can be run is.
    """
    parts = {
        "integers": lambda: compiler_warmup.call_loaded(compiler_warmup.Successor(), 0),
        "matrices": lambda: run_floats("matrices", device),
        "convolution": lambda: run_floats("convolution", device),
        "embedding": lambda: run_embedding(device),
        "int8": lambda: run_int8(device),
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
    module = FLOAT_PARTS[name](torch.nn).eval().to(device)
    compiler_warmup.call_loaded(module, torch.ones(SHAPES[name], device=device), device)


def run_embedding(device):
    module = torch.nn.Embedding(64, 64).eval().to(device)
    compiler_warmup.call_loaded(module, torch.zeros(8, 8, dtype=torch.long, device=device), device)


def run_int8(device):
    if device != "cpu" or torch.backends.quantized.engine not in QUANTIZING:
        return
    weight = torch.quantize_per_tensor(torch.ones(64, 64), 0.1, 0, torch.qint8)
    packed = torch.ops.quantized.linear_prepack(weight, None)
    for _ in range(compiler_warmup.CALLS):
        torch.ops.quantized.linear_dynamic(torch.ones(8, 64), packed)
