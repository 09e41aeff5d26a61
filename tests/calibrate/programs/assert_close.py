"""What ``torch.testing.assert_close`` says of recorded outputs: run by the new release's own interpreter.

Reads ``[{"name", "model", "old", "twin", "new"}, ...]`` from the file that it is given (folders with outputs), prints
``{"torch": release, "said": {name: "" or the first line of what it raised}}``. Python 3.8 grammar, torch only.
"""

# mypy: ignore-errors

import importlib.util
import json
import os
import sys

import torch

PROJECT = os.path.abspath(os.path.join(os.path.dirname(__file__), "..", "..", ".."))


def reader():
    """Return the worker's ``TensorReader``, which knows the format of the files."""
    folder = os.path.join(PROJECT, "harness", "worker")
    spec = importlib.util.spec_from_file_location(
        "gate_worker", os.path.join(folder, "__init__.py"), submodule_search_locations=[folder]
    )
    module = importlib.util.module_from_spec(spec)
    sys.modules["gate_worker"] = module
    spec.loader.exec_module(module)
    from gate_worker import tensors

    return tensors.TensorReader


def answers(folder, model, read):
    """Return (input set, call) -> output."""
    values = read(folder, "cpu")
    return {
        (line["set"], line["call"]): values.value(line["tree"]) for line in read.index(folder) if line["model"] == model
    }


def said(pair, read):
    """Return what the first call that is not close raises, with the defaults that a test would use."""
    old = answers(pair["old"], pair["twin"], read)
    new = answers(pair["new"], pair["model"], read)
    for key, expected in old.items():
        if key not in new:
            return "KeyError: no output"
        try:
            torch.testing.assert_close(new[key], expected)
        except Exception as error:
            return "{}: {}".format(type(error).__name__, str(error).strip().split("\n")[0])
    return ""


def main():
    read = reader()
    with open(sys.argv[1], encoding="utf-8") as stream:
        pairs = json.load(stream)
    print(json.dumps({"torch": torch.__version__, "said": {pair["name"]: said(pair, read) for pair in pairs}}))


main()
