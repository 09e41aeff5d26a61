# mypy: ignore-errors
"""Asks programs that ``migrate`` calls ready or guarded what no request asked: fresh values, and other sizes.

Run with the interpreter of the release that has converted: ``fresh.py FOLDER``, the folder of the results. It prints a
line a model: name and counts of ``same``, ``refused`` (the program raises, TorchScript answers), ``refused alike`` and
``wrong``. Requests are read with the worker's reader; the rest is torch alone.
"""

import collections
import json
import os
import sys
import types
import warnings
import zipfile
from pathlib import Path

import torch
from torch.utils import _pytree as pytree

ROOT = Path(__file__).parents[5]
sys.modules["gate_worker"] = package = types.ModuleType("gate_worker")
package.__path__ = [str(ROOT / "harness" / "worker")]
from gate_worker.values import trees  # noqa: E402

REQUESTS = 10
LEFT_OUT, GIVEN = "left out", "given"


def artifacts(folder):
    """Return model -> artifact, as the requests to convert it have it."""
    found = {}
    for path in folder.glob("probes/*/probe.zip"):
        with zipfile.ZipFile(path) as probe:
            if "request.json" in probe.namelist():
                request = json.loads(probe.read("request.json"))
                if request["verb"] in ("walk", "convert"):
                    artifact = request["runs"][0]["artifact"]
                    found[artifact["model"]] = artifact
    return found


def programs_of(model):
    """Return (method, what its requests have fixed, program) of each program of a model."""
    parts = model["programs"] or [{"method": None, "fixed": [], "program": model["program"]}]
    return [(part["method"], dict(part["fixed"]), torch.export.load(part["program"]).module()) for part in parts]


def takes(method, fixed, entry, arguments):
    if method not in (None, entry["method"]):
        return False
    for path, wanted in fixed.items():
        index = int(path.partition("[")[2].rstrip("]"))
        value = arguments[index] if index < len(arguments) else None
        known = (
            LEFT_OUT if value is None else GIVEN if isinstance(value, (torch.Tensor, list, dict, tuple)) else str(value)
        )
        if wanted != known and not (wanted == GIVEN and value is not None):
            return False
    return True


def fresh(value, generator, sizes):
    """Return a value like it: of tensors others with the same dtype, spread and range, and ``sizes`` changed."""

    def other(tensor):
        shape = [sizes.get(size, size) for size in tensor.shape]
        if tensor.is_floating_point() and tensor.numel():
            spread = tensor.float().std().item() if tensor.numel() > 1 else 1.0
            drawn = torch.randn(shape, generator=generator) * (spread or 1.0) + tensor.float().mean().item()
            return drawn.to(tensor.dtype)
        if tensor.dtype == torch.bool:
            return torch.rand(shape, generator=generator) < 0.5
        if tensor.numel() and not tensor.is_complex() and not tensor.is_quantized:
            low, high = int(tensor.min()), int(tensor.max())
            return torch.randint(low, high + 1, shape, generator=generator).to(tensor.dtype)
        return tensor.clone()

    return trees.mapped(value, other)


def alike(wanted, given):
    left, right = pytree.tree_leaves(wanted), pytree.tree_leaves(given)
    return len(left) == len(right) and all(map(same, left, right))


def same(left, right):
    if not isinstance(left, torch.Tensor):
        return left == right or (isinstance(left, float) and abs(left - right) <= 1e-4 * max(1.0, abs(left)))
    if not isinstance(right, torch.Tensor) or (left.dtype, left.shape) != (right.dtype, right.shape):
        return False
    coarse = left.dtype in (torch.float16, torch.bfloat16)
    bound = 3e-2 if coarse else 1e-3
    return torch.allclose(left.double(), right.double(), rtol=bound, atol=bound, equal_nan=True)


def asked(model, artifact):
    counts = collections.Counter()
    reader = trees.TensorReader(artifact["inputs_dir"], "cpu")
    entries = [(entry, reader.value(entry["tree"])) for entry in reader.index(artifact["inputs_dir"])]
    archive, programs = torch.jit.load(artifact["path"]).eval(), programs_of(model)
    generator = torch.Generator().manual_seed(7)
    for number in range(REQUESTS):
        entry, request = entries[number % len(entries)]
        first = next((leaf for leaf in pytree.tree_leaves(list(request)) if isinstance(leaf, torch.Tensor)), None)
        grows = number >= REQUESTS // 2 and first is not None and first.dim() > 0
        arguments = fresh(request, generator, {first.shape[0]: first.shape[0] + 1 + number % 3} if grows else {})
        program = next((call for *part, call in programs if takes(*part, entry, arguments)), None)
        copies = [trees.mapped(arguments, torch.clone) for _ in range(2)]
        try:
            wanted = getattr(archive, entry["method"])(*copies[0])
        except Exception:
            counts["refused alike"] += 1
            continue
        try:
            given = program(*copies[1])
        except Exception:
            counts["refused"] += 1
            continue
        counts["same" if alike(wanted, given) else "wrong"] += 1
    return counts


def main(folder):
    os.chdir(folder)
    warnings.simplefilter("ignore")
    known = artifacts(Path())
    models = json.loads(Path("migration.json").read_text())["models"]
    for model in models:
        if model["outcome"] in ("ready", "guarded"):
            with torch.no_grad():
                print(json.dumps([model["model"], asked(model, known[model["model"]])]), flush=True)


if __name__ == "__main__":
    main(sys.argv[1])
