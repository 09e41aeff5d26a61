# mypy: ignore-errors
"""Writes the natural hang (pytorch issue 75903) as a reproducer's case, without the program, into a folder."""

import ctypes
import json
import os
import sys

import torch

PROFILE = {"intra_op_threads": 1, "inter_op_threads": 1, "env": {}, "numerics": {}, "libraries": []}


def rotations(x, y):
    a = x + y
    for _ in range(30):
        x = torch.cos(a)
        y = torch.sin(a)
        a = x + y
    return a


def main():
    folder = sys.argv[1]
    given = torch.linspace(0, 1, 13), torch.linspace(1, 2, 13)
    graph = torch.jit.trace(rotations, given).graph
    torch._C._create_function_from_graph("forward", graph).save(os.path.join(folder, "minimal.pt"))
    with open(os.path.join(folder, "tensors.bin"), "wb") as stream:
        for tensor in (*given, rotations(*given)):
            stream.write(ctypes.string_at(tensor.data_ptr(), 52))

    def spec(offset):
        return ["tensor", {"dtype": "float32", "shape": [13], "stride": [1], "offset": offset, "nbytes": 52}]

    request = {"set": "example", "method": "forward", "arguments": ["tuple", [spec(0), spec(52)]], "calls": 2}
    case = {
        "title": "the natural hang",
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
        "requests": [dict(request, expected=[spec(104), spec(104)], after=[])],
    }
    with open(os.path.join(folder, "case.json"), "w") as stream:
        json.dump(case, stream)


main()
