"""The fake accelerator of the tests: in every release it shows each planted defect, and no healthy twin fails on it."""

import json
import os
import subprocess
from pathlib import Path
from typing import Any

import pytest

from harness.core.environment import EnvSpec
from harness.environments.builder import EnvironmentBuilder, default_environment_root
from harness.environments.installer import find_uv
from harness.environments.interpreters import find_pythons
from harness.environments.pythons import choose_python
from tests.accelerator.build import build
from tests.integration.gate import PROJECT

# Compiling takes longer than all tests of CI together may take for this.
pytestmark = [pytest.mark.integration, pytest.mark.slow]

PROGRAMS = Path(__file__).with_name("accelerator")
RELEASES = ("2.1.2", "2.6.0", "2.15.0")
WRONG = "wrong values"
TWO_DEVICES = "RuntimeError: Expected all tensors to be on the same device, but found at least two devices"
CAPTURING = "operation not permitted when stream is capturing"
DEAD = "dead capture: RuntimeError: fakedev error: operation failed due to a previous error during capture"
# How each planted defect shows; its twin answers as the CPU does.
SHOWS = {
    "copy_without_synchronization": WRONG,
    "copy_that_returns_early": WRONG,
    "stream_that_does_not_wait": WRONG,
    "input_that_is_overwritten": WRONG,
    "input_on_the_host": TWO_DEVICES,
    "input_on_the_other_device": TWO_DEVICES,
    "host_reads_device_memory": "signal 11",
    "error_one_call_later": "after the call | RuntimeError: fakedev error: an illegal memory access was encountered",
    "index_out_of_range": "after the call | RuntimeError: fakedev error: device-side assert triggered: index out of range",
    "stream_that_hangs": "launched | hang",
    "allocation_that_fails": "RuntimeError: fakedev out of memory. Tried to allocate",
    "more_than_there_is": "OutOfMemoryError: fakedev out of memory. Tried to allocate 4194304 bytes",
    "device_that_vanishes": "RuntimeError: fakedev error: the device is lost",
    "fork_of_a_process_with_a_device": "RuntimeError: fakedev error: cannot re-initialize fakedev in a forked subprocess",
    "kernel_that_is_loaded_while_another_spins": "launched | hang",
    "copy_of_another_thread_while_a_kernel_is_loaded": "waited",
    "capture_and_an_allocation_of_another_thread": f"{DEAD} (allocation",
    "capture_that_opens_a_kernel_library": f"{DEAD} (first use of a kernel library)",
    "capture_in_a_thread_that_has_called_nothing": f"{DEAD} (first use of a kernel library)",
    "capture_in_a_stream_that_has_no_handle": f"{DEAD} (first use of a kernel library)",
    "capture_that_releases_memory": f"{DEAD} (release",
    "capture_and_a_synchronization_of_another_thread": f"{DEAD} (synchronization of the device by another thread)",
    "capture_and_a_synchronization_of_its_own_thread": f"{DEAD} (synchronization of the device)",
    "capture_of_a_number_that_the_host_reads": f"{DEAD} (synchronization of a capturing stream)",
    "capture_on_the_default_stream": "RuntimeError: fakedev error: graphs must be captured on a non-default stream",
    "capture_that_leaves_a_stream_behind": "RuntimeError: fakedev error: operation failed due to a previous error",
}
SAID_BEFORE = {
    "error_one_call_later": "after the call",
    "index_out_of_range": "after the call",
    "stream_that_hangs": "launched",
    "kernel_that_is_loaded_while_another_spins": "launched",
}


def interpreter(release: str) -> str:
    builder = EnvironmentBuilder(default_environment_root(), progress=lambda name, text: None, uv=find_uv())
    python = choose_python(list(RELEASES), list(find_pythons()))
    return builder.build(EnvSpec(name=f"torch {release}", release=release, python=python)).interpreter


def run(release: str, program: str, folder: Path, *words: str) -> str:
    python = interpreter(release)
    built = build(python, default_environment_root() / "native")
    env = {**os.environ, "TMPDIR": str(folder), "FAKEDEV_MEMORY_MB": "64"}
    command = [python, "-s", str(PROGRAMS / program), str(built), *words]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False, env=env)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.parametrize("release", RELEASES)
def test_each_planted_defect_shows_and_its_twin_does_not(release: str, tmp_path: Path) -> None:
    found: dict[str, Any] = json.loads(run(release, "faults.py", tmp_path, "1"))
    assert found["torch"].startswith(release)
    assert found["cases"].keys() == SHOWS.keys()
    for name, runs in found["cases"].items():
        (shown,) = runs["planted"]
        assert shown.startswith(SHOWS[name]), name
        before = [SAID_BEFORE[name]] if name in SAID_BEFORE else []
        assert runs["healthy"] == {" | ".join([*before, "right"]): 1}, name


@pytest.mark.parametrize("release", RELEASES)
def test_workers_find_what_they_use_of_a_device(release: str, tmp_path: Path) -> None:
    assert run(release, "behaviour.py", tmp_path) == "loads with map_location: True\n"
