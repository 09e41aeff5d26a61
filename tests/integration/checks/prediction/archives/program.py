"""In an environment under test: export every declared model, then load files. Keeps to Python 3.8 and to torch.

    ENV_PYTHON program.py ORDER.json

The order has ``declarations`` (as the controller reads them), ``out`` (a folder) and ``load`` (paths); the answer, one
JSON line, maps each path that was loaded to an empty text or to what torch said.
"""

import json
import os
import sys
import warnings

sys.path.insert(
    0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "..", "..", "..", "harness", "worker")
)

import bootstrap

bootstrap.load_package()

import torch
from gate_worker import export


def main(path):
    warnings.simplefilter("ignore")
    with open(path) as stream:
        order = json.load(stream)
    for declaration in order["declarations"]:
        requires = declaration["requires"]
        if requires and tuple(map(int, requires.split("."))) > tuple(map(int, torch.__version__.split(".")[:2])):
            continue
        try:
            artifact = export.convert(export.construct(declaration, "cpu"), declaration)
            artifact.save(os.path.join(order["out"], declaration["name"] + ".pt"))
        except RuntimeError:
            continue  # a break that this release cannot express
    made = [os.path.join(order["out"], name) for name in sorted(os.listdir(order["out"]))] if order["out"] else []
    print("answer:" + json.dumps({name: load(name) for name in made + order["load"]}))
    sys.stdout.flush()
    os._exit(0)


def load(path):
    try:
        torch.jit.load(path)
    except Exception as error:
        return "%s: %s" % (type(error).__name__, error)
    return ""


main(sys.argv[1])
