"""Our ``nvidia-smi`` on a real driver: it answers what the real one answers, so tests on machines without a GPU are right.

What moves from one moment to the next (clocks, their reasons, temperature, memory in use) is compared by its form.
"""

import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.programs.nvml.machine import build

pytestmark = pytest.mark.gpu

STILL = "uuid,name,count,compute_cap,compute_mode,mig.mode.current,memory.total,clocks.max.sm,"
STILL += "ecc.errors.uncorrected.volatile.total"
MOVING = "memory.used,clocks.sm,clocks_throttle_reasons.active,temperature.gpu"
PLAIN = "--format=csv,noheader,nounits"


def said(program: str | Path, *arguments: str) -> tuple[int, str]:
    done = subprocess.run((program, *arguments, PLAIN), capture_output=True, text=True, timeout=60, check=False)
    return done.returncode, done.stdout.strip()


@pytest.fixture(scope="module")
def ours(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Our program without our library beside it: it finds the driver's."""
    program = tmp_path_factory.mktemp("alone") / "nvidia-smi"
    shutil.copy(build(tmp_path_factory.mktemp("nvml")) / "nvidia-smi", program)
    return program


def form(text: str) -> str:
    return re.sub(r"[0-9A-F]+", "0", text.replace("0x", "x"))


def test_our_program_says_what_nvidias_says(ours: Path) -> None:
    nvidias = shutil.which("nvidia-smi")
    assert nvidias is not None and os.path.realpath(nvidias) != os.path.realpath(ours)
    uuid = said(nvidias, "--query-gpu=uuid")[1].splitlines()[0]
    for which in ((), (f"--id={uuid}",), ("--id=GPU-00000000-0000-0000-0000-000000000000",)):
        assert said(ours, f"--query-gpu={STILL}", *which) == said(nvidias, f"--query-gpu={STILL}", *which)
    mine, theirs = (said(program, f"--query-gpu={MOVING}") for program in (ours, nvidias))
    assert (mine[0], form(mine[1])) == (theirs[0], form(theirs[1]))
    assert said(ours, "--query-gpu=uuid,no_such_field") == said(nvidias, "--query-gpu=uuid,no_such_field")
    assert said(ours, "--query-compute-apps=gpu_uuid,pid") == said(nvidias, "--query-compute-apps=gpu_uuid,pid")
