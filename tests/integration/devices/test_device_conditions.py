"""How much of what is decided by a device has run without a GPU: in the controller, and in both workers.

The list of conditions comes from the source. Unit tests and whole runs are made by Pythons that note which of them ran,
and with which outcome; of the C++ worker gcov counts the branches. What was found is printed.
"""

import os
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

from harness.core.devices import TABLE
from harness.core.probe import ServingProfile
from harness.environments.builder import ROOT_VARIABLE, default_environment_root
from tests.accelerator import native_conditions
from tests.accelerator.build import build
from tests.accelerator.conditions import all_conditions, measured
from tests.accelerator.native_conditions import Branches
from tests.docs.running import JUDGED
from tests.integration.gate import PROJECT
from tests.integration.devices.test_device_faults import PROGRAM
from tests.worker.transcripts import replay

pytestmark = [pytest.mark.integration, pytest.mark.slow]

LEAST = 0.9
HARNESS = PROJECT / "harness"
# Beside the tests that are named for a module with such a condition; less those that take long and ask for no device.
MORE_TESTS = ("unit/doctor", "unit/run/test_execute.py", "unit/worker")
CHOSEN = (
    "-m",
    "not integration and not slow and not gpu and not browser",
    "-k",
    "not corruptions and not largest_answer",
)
ALL = ("streams", "events", "memory", "graphs", "contexts", "cpp")
SMALL = ("--fixtures", "fixtures/zoo", "-k", "two_tower and not served")
# A value that names a device, and numbers that are drawn there.
PLACING = """
import torch
from torch import nn

from fixtures.declare import Sample, model


class Placing(nn.Module):
    def forward(self, x, where: torch.device):
        return torch.rand_like(x).to(where) + x.to(where), where


@model("placing", timed=False)
def placing():
    where = torch.device("cpu")
    return Sample(Placing(), example=(torch.randn(2, 3), where), other_values=(torch.randn(2, 3), where))
"""
INPUTS = """
import torch


def inputs():
    return (torch.ones(4, 6, dtype=torch.int64),)
"""
SERVED = (
    *("--fixtures", "fixtures/zoo", "-k", "served_two_tower"),
    *("--scenario", "alone", "--set", "latency.total_s=30"),
)
IN_ORDER = ("--scenario", "sequential", "--scenario", "reinit")
SCENARIOS = (*IN_ORDER, "--scenario", "cuda_graphs")
SET = ("--set", "serving.load=read_adapter")
INFERRED = ("--artifacts", "{folder}/mixing_00.pt", "--scenario", "alone", "--latency", "off")
# Device, what it can do, and further words.
RUNS = (
    (
        "cpu",
        (),
        ("--runtime", "both", *IN_ORDER, "--latency", "off", "--set", "serving.load=buffer", *SMALL),
    ),
    (
        "fakedev",
        ALL,
        ("--runtime", "both", *SCENARIOS, "--latency", "off", *SMALL),
    ),
    (
        "cpu",
        (),
        ("--runtime", "libtorch", "--scenario", "sequential", "--latency", "off", *SET, "--fixtures", "{folder}"),
    ),
    ("cpu", (), ("--artifacts", "{folder}/mixing_01.pt", *INFERRED)),
    ("fakedev", ALL, INFERRED),
    ("fakedev", ALL, SERVED),
    ("fakedev", (), SERVED),
)


# What a thread sets there needs no GPU; before 2.4 there were other functions for it.
PINNED_ON_CUDA = replay.asked(
    "run", "libtorch", device=TABLE["cuda"], profile=ServingProfile(numerics={"autocast": "float16"})
)


def test_nine_of_ten_branches_on_a_device_have_run(
    old_python: str,
    new_python: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    notes = tmp_path / "notes"
    sides = {"old": old_python, "new": new_python}
    native = default_environment_root() / "native"
    brings = {side: [build(sides[side], native) / name for name in ("libfakedev.so", "fakedev.py")] for side in sides}
    pythons = {side: measured(sides[side], tmp_path / side, HARNESS, notes) for side in sides}
    gate = measured(sys.executable, tmp_path / "gate", HARNESS, notes)
    subprocess.run([gate, "-m", "pytest", "-q", "-n", "auto", *CHOSEN, *unit_tests()], cwd=PROJECT, check=True)
    compiler = native_conditions.counting_compiler(tmp_path)
    monkeypatch.setenv("CXX", str(compiler))
    monkeypatch.setenv(ROOT_VARIABLE, str(tmp_path / "environments"))
    with replay.both_workers(pythons["old"], tmp_path / "alone") as workers:
        workers(PINNED_ON_CUDA)
    (tmp_path / "__init__.py").write_text(PLACING)
    subprocess.run([old_python, "-s", str(PROGRAM), str(tmp_path)], check=True)
    (tmp_path / "models.toml").unlink()  # so that requests are inferred
    (tmp_path / "mixing_01.inputs.py").write_text(INPUTS)
    for device, can, words in RUNS:
        given = [word for side in sides for word in ("--env", f"{side}={pythons[side]}")]
        given += [word for name in can for word in ("--set", f"devices.{device}.{name}=true")]
        if device != "cpu":
            named = [f"{side}={library}" for side in sides for library in brings[side]]
            given += [word for library in named for word in ("--library", library)]
            given += [] if can else ["--set", f"devices.{device}.streams=false"]  # named, and without anything
        line = [
            gate,
            "-m",
            "harness",
            "compat",
            "--device",
            device,
            *given,
            *(word.format(folder=tmp_path) for word in words),
            "--out",
            str(tmp_path / "reports"),
        ]
        done = subprocess.run(line, cwd=PROJECT, capture_output=True, text=True, check=False)
        assert done.returncode in JUDGED, done.stdout + done.stderr  # times of the fake device mean nothing
    rooms = {
        "controller": python_branches(notes, of_worker=False),
        "Python worker": python_branches(notes, of_worker=True),
        "C++ worker": native_conditions.branches(HARNESS / "native", tmp_path / "environments"),
    }
    with capsys.disabled():
        print("\n" + "\n".join(described(name, found) for name, found in rooms.items()))
    # What is only compiled with CUDA is printed; no machine without a GPU can run it.
    for name, room in rooms.items():
        assert share({place: one for place, one in room.items() if one.compiled}) >= LEAST, name


def unit_tests() -> list[Path]:
    """Return the tests of the modules that have a condition on a device."""
    modules = sorted({Path(place.partition(":")[0]) for place in all_conditions(HARNESS)})
    named = [PROJECT / "tests" / "unit" / module.parent / f"test_{module.name}" for module in modules]
    return [*(path for path in named if path.exists()), *(PROJECT / "tests" / more for more in MORE_TESTS)]


def python_branches(notes: Path, *, of_worker: bool) -> dict[str, Branches]:
    """Return what has run of the controller's conditions on a device, or of the Python worker's."""
    ran = Counter(line.split(" ")[0] for line in set(notes.read_text().splitlines()))
    found = all_conditions(HARNESS)
    return {
        place: Branches(text, 2, ran[place], compiled=True)
        for place, text in found.items()
        if place.startswith("worker/") is of_worker
    }


def share(found: dict[str, Branches]) -> float:
    assert found
    return sum(one.run for one in found.values()) / sum(one.there for one in found.values())


def described(room: str, found: dict[str, Branches]) -> str:
    """Return how much of a room has run, and a line for each condition that did not run both ways."""
    there, run = sum(one.there for one in found.values()), sum(one.run for one in found.values())
    title = f"{room}: {run} of {there} branches on a device ran ({run / there:.1%}), of {len(found)} conditions"
    missing = [
        f"  {place}: {one.run} of {one.there}{'' if one.compiled else ', only compiled with CUDA'}: {one.text}"
        for place, one in found.items()
        if one.run < one.there
    ]
    return "\n".join([title, *missing])
