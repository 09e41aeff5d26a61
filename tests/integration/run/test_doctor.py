"""The doctor on real environments: what the table says of wheels is what they say, and it takes no time."""

import json
import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from harness.environments import wheel_requirements
from harness.environments.wheel_requirements import wheel_of
from harness.environments.builder import default_environment_root

pytestmark = pytest.mark.integration

PROJECT = Path(__file__).resolve().parents[3]
BUILT = sorted(default_environment_root().glob("torch-[0-9]*/bin/python"))
ARCHITECTURES = "import torch; print(torch.version.cuda, torch._C._cuda_getArchFlags())"


def release_of(interpreter: Path) -> str:
    return interpreter.parts[-3].split("-")[1]


@pytest.mark.parametrize("interpreter", BUILT, ids=lambda path: path.parts[-3])
def test_the_table_says_what_the_wheels_say(interpreter: Path) -> None:
    folder = wheel_requirements.site_of(interpreter)
    assert folder is not None
    found, table = wheel_requirements.look_at_wheel(folder), wheel_of(release_of(interpreter))
    assert found is not None
    assert table is not None
    assert (found.cuda, found.architectures) == (table.cuda, table.architectures)
    assert found.glibc in (None, table.glibc)


@pytest.mark.slow
def test_the_files_say_what_torch_says(old_python: str, new_python: str) -> None:
    for interpreter in (old_python, new_python):
        said = subprocess.run(
            (interpreter, "-W", "ignore", "-c", ARCHITECTURES), capture_output=True, text=True, timeout=120, check=True
        )
        cuda, *architectures = said.stdout.split()
        folder = wheel_requirements.site_of(Path(interpreter))
        assert folder is not None
        found = wheel_requirements.look_at_wheel(folder)
        assert found is not None
        assert (found.cuda, found.architectures) == (cuda, tuple(architectures))


def test_the_command_judges_ready_made_interpreters_quickly(old_python: str, new_python: str) -> None:
    command = (sys.executable, "-m", "harness", "doctor", "--env", f"old={old_python}", "--env", f"new={new_python}")
    begin = time.monotonic()
    done = subprocess.run(
        (*command, "--device", "cpu", "--format", "json"),
        cwd=PROJECT,
        env={**os.environ},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    took_s = time.monotonic() - begin
    told = json.loads(done.stdout)
    assert (done.returncode, told["blocked"], done.stderr) == (0, [], "")
    assert told["checkup"]["wall_s"] < took_s
    assert {check["about"] for check in told["checkup"]["checks"]} >= {"old", "new"}
