# mypy: ignore-errors
"""Writes a program that hangs where it is fused as a reproducer's case, without the program, into a folder."""

import ctypes
import json
import os
import sys

import torch

PROFILE = {"intra_op_threads": 1, "inter_op_threads": 1, "env": {}, "numerics": {}, "libraries": []}


def busy_if_fused(x):
    """Is ``BusyIfFused`` of ``fixtures/planted/fused.py`` as a function."""
    turn = 0
    part = torch.frac(-torch.abs(x))
    if bool((part > 0.0).any()):
        while turn >= 0:
            turn += 1
    return torch.relu(x) + 0.0 * float(turn)


def main():
    folder = sys.argv[1]
    given = torch.linspace(0.1, 1.3, 13)
    graph = torch.jit.script(busy_if_fused).graph
    torch._C._create_function_from_graph("forward", graph).save(os.path.join(folder, "minimal.pt"))
    with open(os.path.join(folder, "tensors.bin"), "wb") as stream:
        for tensor in (given, busy_if_fused(given)):
            stream.write(ctypes.string_at(tensor.data_ptr(), 52))

    def spec(offset):
        return ["tensor", {"dtype": "float32", "shape": [13], "stride": [1], "offset": offset, "nbytes": 52}]

    request = {"set": "example", "method": "forward", "arguments": ["tuple", [spec(0)]], "calls": 2}
    case = {
        "title": "busy if fused",
        "good": "2.1.2",
        "bad": "2.6.0",
        "symptom": {"what": "hang"},
        "runs": 1,
        "deadline_s": 10.0,
        "device": "cpu",
        "profiles": {"new": dict(PROFILE, switches={"cpu_fusion": True}), "old": dict(PROFILE, switches={})},
        "tolerances": {"float32": 1e-5},
        "memory_bytes": None,
        "artifact": {"file": "minimal.pt", "note": ""},
        "reset": None,
        "seed": 0,
        "requests": [dict(request, expected=[spec(52), spec(52)], after=[])],
    }
    with open(os.path.join(folder, "case.json"), "w") as stream:
        json.dump(case, stream)


main()
