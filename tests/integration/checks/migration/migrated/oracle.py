# mypy: ignore-errors
"""What torch alone says of artifacts that ``migrate`` has judged: ``PYTHON oracle.py PROBES [--package]``.

PYTHON is torch's own. For every archive in the folders of the probes it tries each request as the example of the
conversion, saves and loads the program, and asks both every request; with ``--package`` it then compiles what is left,
loads that and asks again. It prints a line of JSON for each: its name, and the best outcome that any example comes to.
Nothing of the gate is used but the files that it has left.
"""

import io
import json
import sys
import tempfile
import warnings
from pathlib import Path

import torch
import torch._inductor
from torch._export.converter import TS2EPConverter
from torch.utils._pytree import tree_leaves, tree_map

ONLY_LISTS = "only lists"
BEST_FIRST = ("ready", ONLY_LISTS, "not packageable", "dimensions fixed", "answers otherwise", "not convertible")
"""``ONLY_LISTS``: it answers every request, with lists where there were tuples."""
TOLERANCE = 1e-4
"""Looser than the gate's: an answer that is another one is far beyond it."""


def requests_of(folder):
    data = bytearray((folder / "tensors.bin").read_bytes())

    def value(tree):
        kind, content = tree
        if kind == "tensor":
            dtype = getattr(torch, content["dtype"])
            if not content["nbytes"]:
                return torch.empty(content["shape"], dtype=dtype)
            count = content["nbytes"] // torch.empty(0, dtype=dtype).element_size()
            flat = torch.frombuffer(data, dtype=dtype, count=count, offset=content["offset"])
            return flat.reshape(content["shape"]).clone()
        if kind in ("tuple", "list"):
            return (tuple if kind == "tuple" else list)(map(value, content))
        if kind == "namedtuple":
            return tuple(value(item) for _, item in content[1])
        if kind == "dict":
            return {value(key): value(item) for key, item in content}
        return float(content) if kind == "float" else content

    lines = [json.loads(line) for line in (folder / "tensors.jsonl").read_text().splitlines()]
    return [(line.get("method", "forward"), lambda line=line: value(line["tree"])) for line in lines]


def same(one, other):
    if isinstance(one, torch.Tensor):
        if not isinstance(other, torch.Tensor) or one.dtype != other.dtype or one.shape != other.shape:
            return False
        if one.is_quantized:
            return torch.equal(one.int_repr(), other.int_repr())
        if one.layout != torch.strided:
            one, other = one.to_dense(), other.to_dense()
        if not one.is_floating_point() and not one.is_complex():
            return torch.equal(one, other)
        largest = one[torch.isfinite(one)].abs().max().item() if torch.isfinite(one).any() else 0.0
        return torch.allclose(one, other, rtol=0, atol=TOLERANCE * largest, equal_nan=True)
    if isinstance(one, tuple | list):
        return isinstance(other, tuple | list) and len(one) == len(other) and all(map(same, one, other))
    if isinstance(one, dict):
        return isinstance(other, dict) and one.keys() == other.keys() and all(same(one[key], other[key]) for key in one)
    return one == other


def tuples_are_lists(one, other):
    if isinstance(one, tuple) and isinstance(other, list):
        return True
    if isinstance(one, tuple | list):
        return any(map(tuples_are_lists, one, other))
    return isinstance(one, dict) and any(tuples_are_lists(one[key], other[key]) for key in one)


def outcome_with(path, requests, example, package):
    module = torch.jit.load(path).eval()
    try:
        program = TS2EPConverter(module, example()).convert()
        buffer = io.BytesIO()
        torch.export.save(program, buffer)
    except Exception:
        return "not convertible"
    buffer.seek(0)
    loaded = torch.export.load(buffer)
    answered = outcome_of_requests(path, requests, loaded.module())
    if package and answered in ("ready", ONLY_LISTS):
        try:
            with tempfile.TemporaryDirectory() as folder:
                where = torch._inductor.aoti_compile_and_package(loaded, package_path=folder + "/it.pt2")
                packaged = torch._inductor.aoti_load_package(where)
                again = outcome_of_requests(path, requests, packaged)
        except Exception:
            return "not packageable"
        return answered if again in ("ready", ONLY_LISTS) else "not packageable"
    return answered


def outcome_of_requests(path, requests, loaded):
    refused = lists = False
    for _, request in requests:
        torch.manual_seed(0)
        expected = torch.jit.load(path).eval()(*request())
        torch.manual_seed(0)
        try:
            answered = loaded(*request())
        except Exception:
            refused = True
            continue
        if not same(expected, answered):
            return "answers otherwise"
        lists = lists or tuples_are_lists(expected, answered)
    if refused or not answers_the_batches_of(torch.jit.load(path).eval(), loaded, requests[0][1]):
        return "dimensions fixed"
    return ONLY_LISTS if lists else "ready"


def answers_the_batches_of(archive, loaded, request):
    """Whether a program answers one more in a batch, as first size or as any that equals it, where the archive does."""
    first = next((leaf for leaf in tree_leaves(request()) if isinstance(leaf, torch.Tensor) and leaf.dim()), None)
    for axes in ((0,), range(8)) if first is not None and len(first) else ():

        def larger(leaf, axes=axes):
            for axis in axes if isinstance(leaf, torch.Tensor) else ():
                if axis < leaf.dim() and leaf.shape[axis] == len(first):
                    leaf = torch.cat([leaf, leaf.narrow(axis, 0, 1)], axis)
            return leaf

        try:
            archive(*tree_map(larger, request()))
        except Exception:
            continue
        try:
            loaded(*tree_map(larger, request()))
        except Exception:
            return False
        return True
    return True


def outcome_of(path, package):
    requests = requests_of(path.parent / "inputs")
    module = torch.jit.load(path)
    if any(method != "forward" for method, _ in requests) or hasattr(module, "reset"):
        return "not convertible"
    found = set()
    for _, example in requests:
        found.add(outcome_with(path, requests, example, package))
        if "ready" in found:
            break
    return min(found, key=BEST_FIRST.index)


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    with torch.no_grad():
        archives = sorted(path for path in Path(sys.argv[1]).glob("*/*.pt") if (path.parent / "inputs").is_dir())
        for path in archives:
            print(json.dumps([path.stem, outcome_of(path, "--package" in sys.argv)]), flush=True)
