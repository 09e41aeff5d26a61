"""What the gate sees of GPUs, from an ``nvidia-smi`` that asks a library of ours, and from trees of device files."""

import json
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
import pytest
from harness.core.machine import GpuCard, Gpus, GpuState
from harness.machine import gpu
from harness.machine.gpu import REASON_WORDS, cards_in, driver_in, look, state_in, visible_of, without_asking
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
from tests.unit.builders.machines import CARD

UUID, OTHER = str(H200["uuid"]), str(A10["uuid"])
HOT: Card = {**A10, "sm_clock_mhz": 1110, "reasons": "0x24", "temperature_c": 86}
K80: Card = {
    **A10,
    "name": "Tesla K80",
    "capability": "3.7",
    "sm_clock_mhz": 562,
    "max_sm_clock_mhz": 875,
    "reasons": None,
    "temperature_c": None,
    "ecc_errors": None,
}


def state_of(uuid: str | None = UUID, *own: int) -> GpuState:
    found = look(uuid, own)
    assert found is not None
    return found


def test_reasons_become_words(machine: Machine) -> None:
    machine.has(H200, HOT)
    assert state_of() == GpuState(
        name="NVIDIA H200", sm_clock_mhz=345, max_sm_clock_mhz=1980, throttle_reasons=("idle",), temperature_c=28
    )
    assert state_of(OTHER).throttle_reasons == ("power cap", "software thermal slowdown")


def test_what_the_driver_does_not_know_is_left_out(machine: Machine) -> None:
    machine.has(K80)
    assert state_of(OTHER) == GpuState(name="Tesla K80", sm_clock_mhz=562, max_sm_clock_mhz=875)


@pytest.mark.parametrize("text", ["", "\n", "No devices were found\n"])
def test_text_without_a_gpu_is_no_state(text: str) -> None:
    assert state_in(text, [], []) is None


@pytest.mark.parametrize(
    ("processes", "own", "others"),
    [
        ("11 12", [11, 12], 0),
        ("11 12 99", [11, 12], 1),
        ("4011 4012 4099", [11, 12], 1),  # another namespace of numbers
        (None, [11, 12], 0),
    ],
)
def test_other_processes_are_counted(machine: Machine, processes: str | None, own: list[int], others: int) -> None:
    machine.has({**H200, "pids": processes}, {**A10, "pids": "7 8 9"})
    assert state_of(UUID, *own).other_processes == others


def test_of_a_gpu_that_is_not_known_only_its_state_is_reported(machine: Machine) -> None:
    machine.has({**HOT, "pids": "9"})
    found = state_of(None, 7)
    assert (found.name, found.other_processes) == ("NVIDIA A10", 0)
    machine.has(HOT, H200)  # which of the two?
    assert look(None, [7]) is None


def test_driver_with_the_later_name_of_the_reasons_is_understood(machine: Machine) -> None:
    machine.has(H200, lines=("unknown_field clocks_throttle_reasons.active",))
    assert state_of().throttle_reasons == ("idle",)
    assert machine.survey().cards[0].machine_state.throttle_reasons == ("idle",)


@pytest.mark.parametrize("said", [DRIVER_NOT_LOADED, "hang"])
def test_program_that_fails_is_no_state(machine: Machine, said: int | str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gpu, "DEADLINE_S", 0.3)
    machine.has(H200, lines=(cannot_begin(said),))
    assert look(UUID, []) is None


def install(folder: Path, script: str) -> None:
    program = folder / "nvidia-smi"
    program.write_text(f"#!/bin/sh\n{script}\n")
    program.chmod(0o755)


@pytest.fixture
def programs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    return tmp_path


@pytest.mark.parametrize("end", ["exec sleep 100", "kill -9 $$"])
def test_a_program_that_gives_no_answer_is_not_asked_again(
    programs: Path, end: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(gpu, "DEADLINE_S", 0.3)
    install(programs, f"echo asked >> '{programs}/asked'; {end}")
    assert look(UUID, []) is None
    assert (programs / "asked").read_text() == "asked\n"


def test_machine_without_the_program_has_no_state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    assert look(UUID, []) is None


PROPRIETARY = (
    "NVRM version: NVIDIA UNIX x86_64 Kernel Module  550.54.14  Thu Feb 22 01:44:30 UTC 2024\n"
    "GCC version:  gcc version 11.4.0 (Ubuntu 11.4.0-1ubuntu1~22.04)\n"
)
OPEN = (
    "NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  580.95.05  Release Build  (dvs-builder@U22-I3)  Tue Sep 23\n"
    "GCC version:  gcc version 12.3.0 (Ubuntu 12.3.0-1ubuntu1~22.04.2)\n"
)


@pytest.mark.parametrize(("text", "driver"), [(PROPRIETARY, "550.54.14"), (OPEN, "580.95.05"), ("", ""), ("x", "")])
def test_the_driver_is_reported_by_either_kernel_module(text: str, driver: str) -> None:
    assert driver_in(text) == driver


def test_cards_have_capability_mode_memory_errors_and_tenants(machine: Machine) -> None:
    tenant: Card = {"compute_mode": 3, "memory_used_mib": 20112, "pids": "4011 4012", "ecc_errors": 2}
    first, second = machine.has(H200, {**HOT, **tenant}).survey().cards
    assert first == CARD
    assert first.machine_state.other_processes == 0
    assert (second.capability, second.compute_mode, second.mig) == ("8.6", "Exclusive_Process", False)
    assert (second.memory_used_mib, second.ecc_errors, second.machine_state.other_processes) == (20112, 2, 2)
    assert second.machine_state.throttle_reasons == ("power cap", "software thermal slowdown")


def test_what_a_card_does_not_have_or_hides_is_not_known(machine: Machine) -> None:
    hidden: Card = {**H200, "mig": 1, "returns": f"nvmlDeviceGetMemoryInfo {NO_PERMISSION}"}
    inside, old = machine.has(hidden, K80).survey().cards
    assert (inside.mig, inside.memory_used_mib, inside.trouble) == (True, None, "")
    assert (old.mig, old.ecc_errors, old.machine_state.temperature_c, old.trouble) == (False, None, None, "")


@pytest.mark.parametrize("text", ["", "No devices were found\n", f"{UUID}, 9.0\n"])
def test_lines_of_another_form_are_no_cards(text: str) -> None:
    assert cards_in(text, "") == ()


@pytest.mark.parametrize(
    ("visible", "left"),
    [
        (None, "ABC"),
        ("1", "B"),
        ("1, 0", "BA"),
        ("GPU-f15a", "B"),
        ("0,7,1", "A"),  # CUDA stops at the first that it does not know
        ("", ""),
        ("-1", ""),
        ("MIG-7c2e9f0e-5a9b-5d0f-8a0e-2f1d6a3b4c5d", "C"),  # of some card that is cut
        ("MIG-GPU-c1c1/1/0", "C"),  # as drivers before 470 name it
        ("MIG-GPU-b6df/1/0", ""),
        ("MIG-7c2e9f0e,MIG-11111111", "C"),
    ],
)
def test_only_visible_cards_count(visible: str | None, left: str) -> None:
    cut = replace(CARD, uuid="GPU-c1c1", mig=True)
    cards: dict[str, GpuCard] = {"A": replace(CARD, uuid=UUID), "B": replace(CARD, uuid=OTHER), "C": cut}
    assert list(visible_of(list(cards.values()), visible)) == [cards[name] for name in left]


def test_a_machine_without_device_files_is_not_asked(programs: Path) -> None:
    install(programs, f"touch '{programs}/asked'")
    assert gpu.survey(programs / "none", programs / "none") == Gpus()
    assert not (programs / "asked").exists()


def test_files_tell_nodes_driver_and_profilers(machine: Machine) -> None:
    machine.has(H200)
    for name in ("nvidia-caps", "null"):
        (machine.dev / name).touch()
    for pid, name in (("7", "nv-hostengine"), ("8", "dcgm-exporter"), ("9", "python"), ("10", "nsys-launcher")):
        (machine.proc / pid).mkdir()
        (machine.proc / pid / "comm").write_text(f"{name}\n")
    found = without_asking(machine.proc, machine.dev)
    assert (found.nodes, found.driver) == ((f"{machine.dev}/nvidia0",), "550.54.14")
    assert found.profilers == ("dcgm-exporter", "nsys-launcher", "nv-hostengine")


def test_device_files_without_links_are_named(machine: Machine, monkeypatch: pytest.MonkeyPatch) -> None:
    dev = machine.has(H200).dev
    assert without_asking(machine.proc, dev).unlinked == ()  # plain files need none
    monkeypatch.setattr("harness.machine.gpu.stat.S_ISCHR", lambda _: True)  # a test may not make device files
    assert without_asking(machine.proc, dev).unlinked == (f"{dev}/nvidia0", f"{dev}/nvidiactl")
    (dev / "char").mkdir()
    (dev / "char" / "0:0").touch()  # the numbers of a plain file
    assert without_asking(machine.proc, dev).unlinked == ()


def test_a_variable_that_hides_all_cards_is_trouble(machine: Machine) -> None:
    found = machine.has(H200, A10).survey(visible="")
    assert (found.cards, found.trouble) == ((), "CUDA_VISIBLE_DEVICES hides every GPU")
    assert machine.survey(visible="0").trouble == ""


def test_the_control_device_alone_counts_because_a_run_looks_for_it(machine: Machine) -> None:
    (machine.has(H200).dev / "nvidia0").unlink()
    assert without_asking(machine.proc, machine.dev).nodes == (f"{machine.dev}/nvidiactl",)


def test_a_driver_that_does_not_know_capabilities_is_asked_without(machine: Machine) -> None:
    (card,) = machine.has(A10, lines=("unknown_field compute_cap",)).survey().cards
    assert (card.machine_state.name, card.capability, card.trouble) == ("NVIDIA A10", "", "")


def test_an_nvidia_smi_that_does_not_know_our_questions_says_which(machine: Machine) -> None:
    found = machine.has(A10, lines=("unknown_field compute_mode",)).survey()
    assert (found.cards, found.trouble) == ((), 'Field "compute_mode" is not a valid field to query.')


@pytest.mark.parametrize(
    ("code", "said"),
    [
        (UNKNOWN, "Failed to initialize NVML: Unknown Error"),
        (LIBRARY_MISMATCH, "Failed to initialize NVML: Driver/library version mismatch"),
        (DRIVER_NOT_LOADED, "NVIDIA-SMI has failed because it couldn't communicate with the NVIDIA driver."),
    ],
)
def test_what_nvidia_smi_complains_of_is_kept(machine: Machine, code: int, said: str) -> None:
    found = machine.has(H200, lines=(cannot_begin(code),)).survey()
    assert found.trouble.startswith(said)
    assert found.cards == ()


def test_a_silent_nvidia_smi_is_reported(machine: Machine, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gpu, "SURVEY_DEADLINE_S", 0.2)
    assert machine.has(H200, lines=(cannot_begin("hang"),)).survey().trouble == "nvidia-smi did not answer in 0.2 s"


def test_a_missing_nvidia_smi_is_reported(machine: Machine, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(machine.folder))
    assert machine.has(H200).survey().trouble == "nvidia-smi cannot be started: No such file or directory"


def test_a_gpu_that_has_to_be_reset_is_listed_and_in_trouble(machine: Machine) -> None:
    found = machine.has(WANTS_RESET, A10).survey()
    assert [card.trouble for card in found.cards] == ["NVIDIA H200: GPU requires reset", ""]
    assert found.trouble == "NVIDIA H200: GPU requires reset"
    assert machine.survey(visible="1").trouble == ""


@pytest.mark.parametrize(
    ("function", "said"),
    [
        ("nvmlDeviceGetHandleByIndex_v2", "Unable to determine the device handle for GPU0000:01:00.0: GPU is lost."),
        ("nvmlDeviceGetTemperature", "NVIDIA H200: GPU is lost"),
    ],
)
def test_a_gpu_that_fell_off_the_bus_is_trouble(machine: Machine, function: str, said: str) -> None:
    found = machine.has({**H200, "returns": f"{function} {GPU_IS_LOST}"}).survey()
    assert found.trouble.startswith(said)


def test_device_files_without_a_gpu_behind_them_are_trouble(machine: Machine) -> None:
    assert machine.has(nodes=1).survey().trouble == "No devices were found"


def test_a_corrupted_inforom_is_no_trouble(machine: Machine) -> None:
    found = machine.has({**H200, "returns": "nvmlDeviceValidateInforom 14"}).survey()
    assert (found.cards, found.trouble) == ((CARD,), "")


# What NVIDIA's own binding makes of the library, as `machine` has it: so its names, numbers and layouts are right.
BINDING = """
import json, pynvml as nvml
nvml.nvmlInit()
gpu = nvml.nvmlDeviceGetHandleByIndex(0)
assert nvml.nvmlDeviceGetName(nvml.nvmlDeviceGetHandleByUUID(nvml.nvmlDeviceGetUUID(gpu))) == nvml.nvmlDeviceGetName(gpu)
memory = nvml.nvmlDeviceGetMemoryInfo(gpu)
try:
    nvml.nvmlDeviceGetName(nvml.nvmlDeviceGetHandleByIndex(1))
except nvml.NVMLError as error:
    lost = str(error)
print(json.dumps([
    nvml.nvmlSystemGetDriverVersion(), nvml.nvmlSystemGetCudaDriverVersion(), nvml.nvmlDeviceGetCount(),
    nvml.nvmlDeviceGetName(gpu), nvml.nvmlDeviceGetCudaComputeCapability(gpu), nvml.nvmlDeviceGetMigMode(gpu)[0],
    nvml.nvmlDeviceGetComputeMode(gpu) == nvml.NVML_COMPUTEMODE_EXCLUSIVE_PROCESS, memory.used >> 20, memory.total >> 20,
    nvml.nvmlDeviceGetClockInfo(gpu, nvml.NVML_CLOCK_SM), nvml.nvmlDeviceGetMaxClockInfo(gpu, nvml.NVML_CLOCK_SM),
    nvml.nvmlDeviceGetCurrentClocksThrottleReasons(gpu) == nvml.nvmlClocksThrottleReasonSwPowerCap,
    nvml.nvmlDeviceGetTemperature(gpu, nvml.NVML_TEMPERATURE_GPU),
    nvml.nvmlDeviceGetTotalEccErrors(gpu, nvml.NVML_MEMORY_ERROR_TYPE_UNCORRECTED, nvml.NVML_VOLATILE_ECC),
    [process.pid for process in nvml.nvmlDeviceGetComputeRunningProcesses(gpu)], lost,
]))
"""


def test_nvidias_own_binding_reads_the_scenario(machine: Machine, nvml: Path) -> None:
    pytest.importorskip("pynvml", reason="nvidia-ml-py is not installed")
    busy: Card = {**H200, "compute_mode": 3, "mig": 1, "reasons": "0x4", "ecc_errors": 2, "pids": "11 12"}
    machine.has(busy, {**A10, "returns": f"nvmlDeviceGetName {GPU_IS_LOST}"}, lines=("cuda 12040",))
    done = subprocess.run(
        (sys.executable, "-c", BINDING),
        env={"LD_LIBRARY_PATH": str(nvml), "NVML_SCENARIO": str(machine.scenario), "PYTHONPATH": ":".join(sys.path)},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout) == [
        *("550.54.14", 12040, 2, "NVIDIA H200", [9, 0], 1, True, 1, 143771, 345, 1980, True, 28, 2, [11, 12]),
        "GPU is lost",
    ]


def test_every_reason_that_nvidias_binding_knows_has_words() -> None:
    pynvml = pytest.importorskip("pynvml", reason="nvidia-ml-py is not installed")
    names = [name for name in vars(pynvml) if name.startswith(("nvmlClocksThrottleReason", "nvmlClocksEventReason"))]
    bits = {vars(pynvml)[name] for name in names if not name.endswith(("All", "None"))}
    assert len(bits) > 6
    assert bits == set(REASON_WORDS)
