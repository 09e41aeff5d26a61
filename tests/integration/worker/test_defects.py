"""The operators of planted artifacts: defined once in a process, healthy unless they are told, and then they end it."""

import signal
import subprocess
from pathlib import Path

import pytest

pytestmark = pytest.mark.integration

WORKER = Path(__file__).resolve().parents[3] / "harness" / "worker"
PROGRAM = f"""
import sys, threading, types
package = types.ModuleType("gate_worker")
package.__path__ = [{str(WORKER)!r}]
sys.modules["gate_worker"] = package
import torch
from gate_worker import defects
start, failed = threading.Barrier(8), []
def register():
    start.wait()
    try:
        defects.register_for(["gatedefect::dies"])
    except RuntimeError as error:
        failed.append(error)
threads = [threading.Thread(target=register) for _ in range(8)]
[thread.start() for thread in threads]
[thread.join() for thread in threads]
assert not failed, failed
x = torch.ones(2)
for answer in (torch.ops.gatedefect.dies(x, "not"), torch.ops.gatedefect.owned_by_python(x)):
    assert torch.equal(answer, x) and answer is not x
torch.ops.gatedefect.dies(x, sys.argv[1])
"""


@pytest.mark.parametrize(("how", "status"), [("not", 0), ("wild_read", -signal.SIGSEGV), ("divides", -signal.SIGFPE)])
def test_threads_define_the_operators_once_and_one_of_them_ends_the_process(
    old_python: str, how: str, status: int
) -> None:
    command = [old_python, "-W", "ignore", "-c", PROGRAM, how]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == status, done.stderr
