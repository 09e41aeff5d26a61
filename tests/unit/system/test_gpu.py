"""What ``nvidia-smi`` says of a GPU, from texts in the form that it prints."""

from pathlib import Path

import pytest

from harness.domain.machine import GpuState
from harness.system import gpu
from harness.system.gpu import look, pids_in, state_in

IDLE = "NVIDIA H200, 345, 1980, 0x0000000000000001, 28\n"
HOT = "NVIDIA A10G, 1110, 1710, 0x0000000000000024, 86\n"
UUID = "GPU-b6dfbd9a-2ba4-3b33-8d5a-0d3b4f5b8a11"
OTHER = "GPU-00000000-2ba4-3b33-8d5a-0d3b4f5b8a11"
UNKNOWN = "Tesla K80, 562, 875, [N/A], [N/A]\n"


def test_reasons_become_words() -> None:
    assert state_in(IDLE, [], [1]) == GpuState(
        name="NVIDIA H200", sm_clock_mhz=345, max_sm_clock_mhz=1980, throttle_reasons=("idle",), temperature_c=28
    )
    hot = state_in(HOT, [], [1])
    assert hot is not None
    assert hot.throttle_reasons == ("power cap", "software thermal slowdown")


def test_what_the_driver_does_not_know_is_left_out() -> None:
    assert state_in(UNKNOWN, [], []) == GpuState(name="Tesla K80", sm_clock_mhz=562, max_sm_clock_mhz=875)


@pytest.mark.parametrize("text", ["", "\n", "No devices were found\n", IDLE + HOT])
def test_text_without_one_gpu_is_no_state(text: str) -> None:
    assert state_in(text, [], []) is None


@pytest.mark.parametrize(
    ("processes", "own", "others"),
    [
        ([11, 12], [11, 12], 0),
        ([11, 12, 99], [11, 12], 1),
        ([4011, 4012, 4099], [11, 12], 1),  # another namespace of numbers
        ([], [11, 12], 0),
    ],
)
def test_other_processes_are_counted(processes: list[int], own: list[int], others: int) -> None:
    machine_state = state_in(IDLE, processes, own)
    assert machine_state is not None
    assert machine_state.other_processes == others


def test_processes_of_other_gpus_do_not_count() -> None:
    assert pids_in(f"{UUID}, 11\n{OTHER}, 12\n{UUID}, [N/A]\n[Insufficient Permissions]\n", UUID) == [11]


def install(folder: Path, script: str) -> None:
    program = folder / "nvidia-smi"
    program.write_text(f"#!/bin/sh\n{script}\n")
    program.chmod(0o755)


@pytest.fixture
def programs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    return tmp_path


def test_program_is_asked_for_the_gpu_of_the_run(programs: Path) -> None:
    apps = f"echo {UUID}, 7; echo {UUID}, 8; echo {OTHER}, 9"
    install(programs, f'case "$1$3" in *apps*) {apps};; *--id={UUID}) echo "{HOT.strip()}";; *) exit 6;; esac')
    machine_state = look(UUID, [7])
    assert machine_state is not None
    assert (machine_state.name, machine_state.other_processes) == ("NVIDIA A10G", 1)


def test_of_a_gpu_that_is_not_known_only_its_state_is_reported(programs: Path) -> None:
    install(programs, f'case "$1" in *apps*) echo "{OTHER}, 9";; *) echo "{HOT.strip()}";; esac')
    machine_state = look(None, [7])
    assert machine_state is not None
    assert (machine_state.name, machine_state.other_processes) == ("NVIDIA A10G", 0)
    install(programs, f'echo "{HOT.strip()}"; echo "{IDLE.strip()}"')  # which of the two?
    assert look(None, [7]) is None


def test_driver_with_the_later_name_of_the_reasons_is_understood(programs: Path) -> None:
    install(programs, f'case "$1" in *throttle*) exit 2;; *apps*) ;; *) printf "{IDLE.strip()}\\n";; esac')
    machine_state = look(UUID, [7])
    assert machine_state is not None
    assert machine_state.throttle_reasons == ("idle",)


@pytest.mark.parametrize("script", ["exit 9", "exec sleep 100", "kill -9 $$"])
def test_program_that_fails_is_no_state(programs: Path, script: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gpu, "DEADLINE_S", 0.3)
    install(programs, script)
    assert look(UUID, []) is None


def test_machine_without_the_program_has_no_state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    assert look(UUID, []) is None
