"""What a replay of a CUDA graph is compared by; the capture itself needs a GPU (tests/gpu)."""

import json
import subprocess
from pathlib import Path

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

PROGRAM = """
import importlib.util, json, math, sys
spec = importlib.util.spec_from_file_location("bootstrap", sys.argv[1])
bootstrap = importlib.util.module_from_spec(spec)
spec.loader.exec_module(bootstrap)
bootstrap.load_package()
import torch
from gate_worker.run import cuda_graphs as graphs
nan, inf, tensor = math.nan, math.inf, torch.tensor
answers = {}
for name, (one, other, _) in json.loads(sys.argv[2]).items():
    try:
        answers[name] = [str(x) if math.isinf(x) else x for x in graphs.distance(eval(one), eval(other))]
    except RuntimeError as error:
        answers[name] = str(error)
print(json.dumps(answers))
"""


@pytest.mark.integration
@pytest.mark.slow
def test_distance_of_a_replay_from_the_plain_call(new_python: str) -> None:
    command = [new_python, "-c", PROGRAM, str(BOOTSTRAP), json.dumps(CASES)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout) == {name: expected for name, (_, _, expected) in CASES.items()}
