"""What a replay of a CUDA graph is compared by, and buffers that it leaves behind; the capture itself needs a GPU (tests/gpu)."""

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest

BOOTSTRAP = Path(__file__).resolve().parents[3] / "harness" / "worker" / "bootstrap.py"

CASES = {
    "apart": ("tensor([1.0, -4.0])", "tensor([1.5, -4.0])", [0.5, 4.0]),
    "NaN in the same place": ("{'a': [tensor([nan, 2.0])]}", "{'a': [tensor([nan, 2.0])]}", [0.0, 2.0]),
    "NaN gone": ("tensor([nan, 2.0])", "tensor([1.0, 2.0])", ["inf", 2.0]),
    "overflow": ("tensor([1.0])", "tensor([inf])", ["inf", 1.0]),
    "infinite in both": ("tensor([inf])", "tensor([inf])", [0.0, 0.0]),
    "empty": ("(torch.zeros(0), 3)", "(torch.zeros(0), 4)", [0.0, 0.0]),
    "complex": ("tensor([1 + 2j])", "tensor([1 + 4j])", [2.0, 2.0]),
    "integers": ("tensor([1, 2])", "tensor([1, 5])", [3.0, 2.0]),
    "another shape": ("tensor([1.0, 2.0])", "tensor([1.0])", "the replay has another structure than the plain call"),
    "fewer tensors": ("[tensor(1.0)] * 2", "[tensor(1.0)]", "the replay has another structure than the plain call"),
}

START = """
import importlib.util, json, math, sys
spec = importlib.util.spec_from_file_location("bootstrap", sys.argv[1])
bootstrap = importlib.util.module_from_spec(spec)
spec.loader.exec_module(bootstrap)
bootstrap.load_package()
import torch
from gate_worker.run import cuda_graphs as graphs
"""
DISTANCES = """
nan, inf, tensor = math.nan, math.inf, torch.tensor
answers = {}
for name, (one, other, _) in json.loads(sys.argv[2]).items():
    try:
        answers[name] = [str(x) if math.isinf(x) else x for x in graphs.distance(eval(one), eval(other))]
    except RuntimeError as error:
        answers[name] = str(error)
print(json.dumps(answers))
"""


MOVED = """
from gate_worker.run.serving import ServedModel
source = '''
def forward(self, x):
    self.anew = self.anew + x
    self.written.copy_(self.written + x)
    return self.anew + self.written + self.left
'''
module = torch.nn.Module()
for name in ("anew", "written", "left"):
    module.register_buffer(name, torch.ones(3))
scripted = torch.jit._recursive.create_script_module(module, lambda _: [], share_types=False)
scripted.define(source)
served = ServedModel.__new__(ServedModel)
served._module = scripted
before = served.buffer_addresses()
kept = [buffer for _, buffer in scripted.named_buffers()]  # so that nothing else takes their memory
scripted(torch.ones(3))
print(json.dumps([name for name, address in served.buffer_addresses().items() if address != before[name]]))
"""


@pytest.mark.integration
@pytest.mark.slow
def test_distance_of_a_replay_from_the_plain_call(new_python: str) -> None:
    assert printed_by(new_python, DISTANCES, json.dumps(CASES)) == {
        name: expected for name, (_, _, expected) in CASES.items()
    }


@pytest.mark.integration
@pytest.mark.slow
def test_buffer_that_a_call_binds_anew_lies_elsewhere_afterwards(new_python: str) -> None:
    assert printed_by(new_python, MOVED) == ["anew"]


def printed_by(python: str, program: str, *words: str) -> Any:
    """Return what a program, which has the worker's package, prints as JSON."""
    command = [python, "-c", START + program, str(BOOTSTRAP), *words]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)
