"""GPUs in every kind of trouble, before a run and in the midst of one: each is named, and a healthy twin is not.

What is judged is what the gate's own look finds; ``nvidia-smi`` and the library below it answer from a scenario.
"""

from dataclasses import replace
from typing import Any

import pytest

from harness.apps.doctor.checks import Facts, examined
from harness.apps.doctor.during_run import during_run_notes, happened_between
from harness.core.machine import CheckStatus, MachineCheck, MachineEvent
from harness.apps.doctor.facts import CounterReading
from harness.machine import gpu
from tests.programs.nvml.machine import (
    A10,
    DRIVER_NOT_LOADED,
    GPU_IS_LOST,
    H200,
    LIBRARY_MISMATCH,
    NO_PERMISSION,
    UNKNOWN,
    WANTS_RESET,
    Card,
    Machine,
    cannot_begin,
)
from tests.unit.builders.machines import DISK, HOST, NEW, OLD, TOOLS, WHEEL

BOTH = (OLD.name, NEW.name)
UNREACHABLE: Card = {**H200, "returns": f"nvmlDeviceGetHandleByIndex_v2 {UNKNOWN}"}
LOST: Card = {**H200, "returns": f"nvmlDeviceGetHandleByIndex_v2 {GPU_IS_LOST}"}


def checks(machine: Machine, device: str = "auto", newest_cuda: str = "12.4") -> tuple[MachineCheck, ...]:
    host = replace(HOST, gpus=machine.survey())
    new = replace(NEW, wheel=replace(WHEEL, cuda=newest_cuda))
    return examined(
        Facts(
            host=host,
            candidates=(
                OLD,
                new,
            ),
            disk=DISK,
            tools=TOOLS,
            device=device,
            jobs=4,
        )
    )


def wrong(machine: Machine, **asked: Any) -> list[MachineCheck]:
    return [check for check in checks(machine, **asked) if check.status is not CheckStatus.OK]


def one_wrong(machine: Machine, **asked: Any) -> MachineCheck:
    """The single check that is not ok; it says so what and what to do, a sentence each."""
    (found,) = wrong(machine, **asked)
    for text in (found.so_what, found.do_this):
        assert text.endswith("."), text
    assert bool(found.blocks) is (found.status is CheckStatus.FAIL)
    return found


@pytest.mark.parametrize(
    "cards",
    [
        (),
        (H200,),
        (H200, A10),
        ({**H200, "mig": 1},),
        (
            {**H200, "mig": 1, "returns": f"nvmlDeviceGetMemoryInfo {NO_PERMISSION}"},
        ),  # as in a container with an instance
        ({**H200, "reasons": "0x3"},),  # idle, and clocks that the user has set
        ({**H200, "memory_used_mib": 1024},),
        ({**H200, "ecc_errors": None},),
    ],
)
def test_of_a_healthy_gpu_nothing_is_flagged(machine: Machine, cards: tuple[Card, ...]) -> None:
    assert wrong(machine.has(*cards)) == []


def test_a_prohibited_gpu_blocks_unless_there_is_another(machine: Machine) -> None:
    banned: Card = {**H200, "compute_mode": 2}
    found = one_wrong(machine.has(banned))
    assert (found.name, found.read, found.blocks) == ("nvidia-smi", "compute mode Prohibited", BOTH)
    assert one_wrong(machine, device="cpu").status is CheckStatus.WARN
    assert wrong(machine.has(banned, A10)) == []


@pytest.mark.parametrize(
    ("cards", "line", "read", "means"),
    [
        ((H200,), cannot_begin(UNKNOWN), "NVML: Unknown Error", "The container has lost its GPU"),
        ((H200,), cannot_begin(LIBRARY_MISMATCH), "Driver/library version mismatch", "The driver was updated"),
        ((H200,), cannot_begin(DRIVER_NOT_LOADED), "couldn't communicate", "The kernel module is not loaded"),
        ((H200,), cannot_begin(NO_PERMISSION), "Insufficient Permissions", "This user may not open"),
        (
            (UNREACHABLE,),
            "cuda 12040",
            "GPU0000:01:00.0: Unknown Error",
            "The driver runs and cannot reach the GPU",
        ),
        ((LOST,), "cuda 12040", "GPU is lost", "The driver runs and cannot reach the GPU"),
        ((A10, WANTS_RESET), "cuda 12040", "NVIDIA H200: GPU requires reset", "The driver runs and cannot"),
        ((), "cuda 12040", "No devices were found", "The driver runs and cannot reach the GPU"),
    ],
)
def test_a_gpu_that_cannot_be_reached_blocks_all_unless_the_cpu_was_asked_for(
    machine: Machine, cards: tuple[Card, ...], line: str, read: str, means: str
) -> None:
    found = one_wrong(machine.has(*cards, lines=(line,), nodes=1))
    assert (found.name, found.blocks) == ("nvidia-smi", BOTH)
    assert read in found.read
    assert found.so_what.startswith(means)
    assert one_wrong(machine, device="cpu").status is CheckStatus.WARN


def test_hidden_gpus_block_all(machine: Machine) -> None:
    hidden = replace(HOST, gpus=machine.has(H200).survey(visible=""))
    found = examined(
        Facts(
            host=hidden,
            candidates=(
                OLD,
                NEW,
            ),
            disk=DISK,
            tools=TOOLS,
            device="auto",
            jobs=4,
        )
    )
    (one,) = (check for check in found if check.status is not CheckStatus.OK)
    assert (one.read, one.blocks) == ("CUDA_VISIBLE_DEVICES hides every GPU", BOTH)
    assert one.so_what.startswith("torch sees no GPU")


def test_a_silent_nvidia_smi_warns(machine: Machine, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gpu, "SURVEY_DEADLINE_S", 0.2)
    found = one_wrong(machine.has(H200, lines=(cannot_begin("hang"),)))
    assert (found.read, found.blocks) == ("nvidia-smi did not answer in 0.2 s", ())


def test_without_a_gpu_only_a_run_that_asks_for_one_is_blocked(machine: Machine) -> None:
    found = one_wrong(machine.has(), device="cuda")
    assert (found.name, found.blocks) == ("GPU", BOTH)


def test_a_driver_that_is_too_old_for_one_side_blocks_that_side_alone(machine: Machine) -> None:
    found = one_wrong(machine.has(H200, driver="570.86.15"), newest_cuda="13.2")
    assert (found.name, found.status, found.blocks) == ("GPU driver", CheckStatus.FAIL, (NEW.name,))
    assert "570.86.15 here; CUDA 13.2 (the installed wheel) needs 580" in found.read
    assert wrong(machine, newest_cuda="13.2", device="cpu") == []
    assert wrong(machine.has(H200, driver="580.65.06"), newest_cuda="13.2") == []


def happened(machine: Machine, *cards: Card, **now: Any) -> tuple[MachineEvent, ...]:
    """What happened in a run on a healthy H200 and an A10 at whose end the machine has ``cards``."""
    before = CounterReading(at_s=10.0, gpus=machine.has(H200, A10).survey())
    after = CounterReading(at_s=20.0, gpus=machine.has(*cards, **now).survey())
    return happened_between(before, after).events


@pytest.mark.parametrize(
    "cards", [(H200, A10), (A10, H200), ({**H200, "memory_used_mib": 200}, A10), ({**H200, "reasons": "0x0"}, A10)]
)
def test_of_gpus_that_stay_as_they_were_nothing_is_reported(machine: Machine, cards: tuple[Card, ...]) -> None:
    assert happened(machine, *cards) == ()


@pytest.mark.parametrize(
    ("cards", "now", "name", "read", "touches"),
    [
        ((LOST, A10), {}, "GPU lost", "answered before, and now: Unable to determine the device handle", "ends"),
        ((WANTS_RESET, A10), {}, "GPU lost", "and now: NVIDIA H200: GPU requires reset", "errors"),
        ((A10,), {}, "GPU lost", "no longer listed: NVIDIA H200", "ends"),
        ((), {}, "GPU lost", "no longer listed: NVIDIA H200, NVIDIA A10", "errors"),
        ((), {"nodes": 2}, "GPU lost", "and now: No devices were found", "times"),
        ((H200, A10), {"lines": (cannot_begin(UNKNOWN),)}, "GPU lost", "Failed to initialize NVML: Unknown", "ends"),
        ((H200, A10), {"driver": "570.1"}, "GPU driver", "550.54.14 before, 570.1 now", "errors"),
        (({**H200, "ecc_errors": 2}, A10), {}, "GPU memory", "NVIDIA H200: 2 uncorrected errors more", "errors"),
        (({**H200, "pids": "7 8"}, A10), {}, "GPU tenants", "NVIDIA H200: 2 more processes than before", "ends"),
        ((H200, {**A10, "memory_used_mib": 9001}), {}, "GPU tenants", "9000 MiB more taken", "times"),
        (({**H200, "reasons": "0x41", "temperature_c": 88}, A10), {}, "GPU clocks", "at 88 C", "times"),
    ],
)
def test_what_happens_to_a_gpu_in_a_run_is_reported(
    machine: Machine, cards: tuple[Card, ...], now: dict[str, Any], name: str, read: str, touches: str
) -> None:
    (event,) = happened(machine, *cards, **now)
    assert event.name == name
    assert read in event.read
    assert touches in event.touches
    for text in (event.so_what, event.do_this):
        assert text.endswith("."), text


def test_a_gpu_that_is_lost_in_a_run_is_a_note_with_its_advice(machine: Machine) -> None:
    before = CounterReading(at_s=10.0, gpus=machine.has(H200).survey())
    after = CounterReading(at_s=20.0, gpus=machine.has(LOST).survey())
    (note,) = during_run_notes(happened_between(before, after), times=False)
    assert note == (
        "while it ran, GPU lost: nvidia-smi answered before, and now: Unable to determine the device handle for "
        "GPU0000:01:00.0: GPU is lost.  Reboot the system to recover this GPU. The driver runs and cannot reach the GPU: "
        "off the bus, waiting for a reset, or barred from this container. What failed since then is not the release's "
        "doing. Look for NVRM: Xid in the host's dmesg; restart the container, reset the GPU, or reboot the host. Then "
        "repeat what is red."
    )


def test_what_was_so_before_did_not_happen_in_the_run(machine: Machine) -> None:
    errors: Card = {**H200, "ecc_errors": 3, "pids": "7"}
    for was in (errors, LOST, {**H200, "returns": f"nvmlDeviceGetTemperature {GPU_IS_LOST}"}):
        found = machine.has(was).survey()
        before, after = (CounterReading(at_s=at_s, gpus=found) for at_s in (10.0, 20.0))
        assert happened_between(before, after).events == ()
